//! A real Redis, on a socket in a folder of its own, that tests kill, stop and start again.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A running `redis-server`; it ends with this.
pub(crate) struct RedisServer {
    folder: TempDir,
    settings: Vec<String>,
    child: Child,
}

impl RedisServer {
    /// One that syncs each write.
    pub(crate) fn start() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// One with these settings.
    pub(crate) fn with(settings: &[&str]) -> Self {
        Self::try_with(settings).unwrap_or_else(|told| panic!("redis-server has ended:\n{told}"))
    }

    /// The same; where it ends at once, what it said.
    pub(crate) fn try_with(settings: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings.iter().map(ToString::to_string).collect();
        let child = run(&folder, &settings)?;
        Ok(Self { folder, settings, child })
    }

    /// The server's URL, for a deployment's journal.
    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket())
    }

    /// The socket that it listens on.
    pub(crate) fn socket(&self) -> String {
        self.folder.path().join("redis.sock").display().to_string()
    }

    /// As a power cut does, less what the system has in its buffers.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, with what it had written.
    pub(crate) fn start_again(&mut self) {
        self.child = run(&self.folder, &self.settings).unwrap();
    }

    /// One command.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let (first, rest) = words.split_first().unwrap();
        let mut connection = redis::Client::open(self.url()).unwrap().get_connection().unwrap();
        redis::cmd(first).arg(rest).query(&mut connection).unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Started, and ready; where it ends, what it said.
fn run(folder: &TempDir, settings: &Vec<String>) -> Result<Child, String> {
    let mut child = Command::new("redis-server")
        .args(["--port", "0", "--unixsocket", "redis.sock", "--logfile", "", "--save", ""])
        .arg("--dir")
        .arg(folder.path())
        .args(settings)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("can't start `redis-server` ({error}); install it with: apt-get install redis-server")
        });
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = |line: &String| line.contains("eady to accept connections");
    let mut told = String::new();
    loop {
        let Some(line) = lines.next() else {
            child.wait().unwrap();
            return Err(told);
        };
        let line = line.unwrap();
        told.push_str(&line);
        told.push('\n');
        if ready(&line) {
            break;
        }
    }
    // It must never wait for somebody who reads.
    std::thread::spawn(move || for _ in lines {});
    Ok(child)
}
