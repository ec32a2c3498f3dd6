//! The trainer as a child process, which trains one hop after another.

use sojourn_protocol::trainer::{InstructionSet, TrainerLine, TrainerRequest};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A trainer, on one thread as a slot starts it.
pub(crate) struct Trainer {
    process: Child,
    requests: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Trainer {
    /// Starts it, pinned to an instruction set or to none.
    pub(crate) fn start(pinned: Option<InstructionSet>) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sojourn-trainer"))
            .args(["--threads", "1"])
            .envs([("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1")])
            .envs(pinned.into_iter().flat_map(|set| set.environment().iter().copied()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        Self { process, requests, lines }
    }

    /// Rows a second of one hop.
    pub(crate) fn turn(&mut self, request: &TrainerRequest) -> f64 {
        let requests = self.requests.as_mut().unwrap();
        writeln!(requests, "{}", serde_json::to_string(request).unwrap()).unwrap();
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            match serde_json::from_str(&line).unwrap() {
                TrainerLine::Update(_) => {}
                TrainerLine::Trained(trained) => {
                    return speed(trained.sums.rows, trained.train_micros);
                }
                other => unreachable!("{other:?}"),
            }
        }
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        // At the end of its input it ends.
        self.requests = None;
        let _ = self.process.wait();
    }
}

/// Rows a second.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn speed(rows: u64, micros: u64) -> f64 {
    rows as f64 * 1e6 / micros as f64
}
