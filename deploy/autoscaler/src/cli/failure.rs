//! Failures: the message that ends a command, and the exit code that says whose fault it is. The codes are those of `sojourn`.

use sojourn_http::CallError;
use sojourn_protocol::error::error_chain;
use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

/// Why a command stops.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    messages: Vec<String>,
}

impl Failure {
    /// The work failed.
    pub fn work(message: impl Into<String>) -> Self {
        Self { code: 1, messages: vec![message.into()] }
    }

    /// The failure's messages as one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.messages.join("; ")
    }

    /// The call or the file was wrong.
    pub fn call(message: impl Into<String>) -> Self {
        Self::calls(vec![message.into()])
    }

    /// The same in several ways.
    #[must_use]
    pub const fn calls(messages: Vec<String>) -> Self {
        Self { code: 2, messages }
    }

    /// Writing to stdout failed: at the end of a pipe that is no fault.
    #[must_use]
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { code: 0, messages: Vec::new() };
        }
        Self::work(format!("can't write the output: {error}"))
    }

    /// Prints the messages; the exit code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        let stderr = io::stderr();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let word =
            if stderr.is_terminal() && !plain { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
        for message in &self.messages {
            // Nobody is left to tell where this fails.
            let _ = writeln!(stderr.lock(), "{word} {message}");
        }
        ExitCode::from(self.code)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let code = if error.is_away() { 3 } else { 2 };
        let advice = error.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
        Self { code, messages: vec![error_chain(&error) + &advice] }
    }
}
