//! PyTorch's eager mode beside the trainer, where a Python with `torch` 2.11 is installed: `python3`, or the
//! one that `SOJOURN_BENCH_PYTHON` names.

use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// The version that the trainer links, and with which alone it is compared.
const TORCH: &str = "2.11.";

/// A Python process with a script of `benches/anchors`.
pub(crate) struct Eager {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Eager {
    /// Starts it; `None`, and a word on stderr, where there is none.
    pub(crate) fn start(script: &str) -> Option<Self> {
        let python = std::env::var("SOJOURN_BENCH_PYTHON").unwrap_or("python3".to_owned());
        let anchors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/anchors");
        let mut process = Command::new(&python)
            .arg(anchors.join(script))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let requests = process.stdin.take();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let eager = Self { process, requests, answers };
        let version: Option<String> = serde_json::from_str(&line).ok();
        if version.as_ref().is_some_and(|version| version.starts_with(TORCH)) {
            return Some(eager);
        }
        let found = version.map_or("no torch".to_owned(), |version| format!("torch {version}"));
        eprintln!("`{python}` has {found}, not {TORCH}x: nothing is measured beside it");
        None
    }

    /// Rows a second of one pass over what the request says.
    pub(crate) fn turn(&mut self, request: &Value) -> f64 {
        writeln!(self.requests.as_ref().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Eager {
    fn drop(&mut self) {
        // At the end of its input it ends.
        self.requests = None;
        let _ = self.process.wait();
    }
}
