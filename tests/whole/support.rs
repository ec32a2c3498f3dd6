//! Support for the tests of the command line: the program, folders, and a fake server with given answers.

use assert_cmd::Command;
use sojourn_protocol::PROTOCOL_VERSION;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex},
    thread,
};
use tempfile::TempDir;

/// The program, with nothing of the user's environment that would change what it says.
pub(crate) fn sojourn(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn"));
    let variables = [
        "SERVER",
        "TOKEN",
        "ENROL_TOKEN",
        "DATA",
        "LOG",
        "LOG_FORMAT",
        "CA",
        "TLS_CERT",
        "TLS_KEY",
    ]
    .map(|name| format!("SOJOURN_{name}"));
    for variable in variables {
        command.env_remove(variable);
    }
    command.args(args);
    command
}

/// Writes a program for the shell: by another process, since what this one has open for writing a child of
/// another test may hold for a moment, and then it can't be started.
pub(crate) fn script(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    let copied = std::process::Command::new("cp").arg("-p").args([&draft, path]).status();
    assert!(copied.unwrap().success());
    fs::remove_file(draft).unwrap();
}

/// A folder with files.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Names of the files in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A request as the fake server got it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `GET /v1/jobs` and the like.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An answer of the fake server; with the status 0 it never arrives.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// JSON with the protocol header.
    pub(crate) fn json(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: format!("sojourn-protocol: {PROTOCOL_VERSION}\r\n"),
            body: body.into().into_bytes(),
        }
    }

    /// The connection breaks instead.
    pub(crate) fn lost() -> Self {
        Self::json(0, "")
    }
}

/// A server on a free port; every request is given to `answer` and kept.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
}

impl FakeServer {
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                // A client that goes away ends its connection, not the test.
                thread::spawn(move || {
                    let _ = converse(stream, |request| {
                        let answer = answer(&request);
                        kept.lock().unwrap().push(request);
                        answer
                    });
                });
            }
        });
        Self { url, requests }
    }

    /// The request lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|request| request.line.clone()).collect()
    }
}

fn converse(stream: TcpStream, answer: impl FnOnce(Request) -> Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.trim_end().split_once(": ") {
            headers.push((name.to_lowercase(), value.to_owned()));
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let Answer { status, headers: extra, body } = answer(Request { line, headers, body });
    if status == 0 {
        return Ok(());
    }
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status} x\r\n{extra}connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}
