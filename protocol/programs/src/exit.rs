//! Failures: the message that ends a command early, and the exit code that says whose fault it is.

use crate::stderr;
use std::{io, process::ExitCode};

/// Why a command stops.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// Lines for stderr; none where all was printed before.
    messages: Vec<String>,
}

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The reader of the output has closed the pipe.
    Done,
    /// The work failed.
    Work,
    /// The call was wrong.
    Call,
    /// The server could not be reached.
    Server,
    /// A person has ended it; shells use the same code for SIGINT.
    Interrupted,
}

impl Exit {
    const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Work => 1,
            Exit::Call => 2,
            Exit::Server => 3,
            Exit::Interrupted => 130,
        }
    }
}

impl Failure {
    /// The work failed.
    pub fn work(message: impl Into<String>) -> Self {
        Self { exit: Exit::Work, messages: vec![message.into()] }
    }

    /// The call was wrong.
    pub fn call(message: impl Into<String>) -> Self {
        Self { exit: Exit::Call, messages: vec![message.into()] }
    }

    /// The server could not be reached.
    pub fn server(message: impl Into<String>) -> Self {
        Self { exit: Exit::Server, messages: vec![message.into()] }
    }

    /// A person has ended it.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self { exit: Exit::Interrupted, messages: vec![message.into()] }
    }

    /// The call was wrong in several ways; no messages where they were printed before.
    pub fn calls(messages: Vec<String>) -> Self {
        Self { exit: Exit::Call, messages }
    }

    /// Writing to stdout failed: at the end of a pipe that is no fault.
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Done, messages: Vec::new() };
        }
        Self::work(format!("can't write the output: {error}"))
    }

    /// The messages.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// The same failure without messages.
    pub fn silent(self) -> Self {
        Self { messages: Vec::new(), ..self }
    }

    /// A failure with this exit code.
    pub fn new(exit: Exit, message: String) -> Self {
        Self { exit, messages: vec![message] }
    }

    /// Prints the messages; the exit code.
    pub fn report(&self) -> ExitCode {
        for message in &self.messages {
            stderr::error(message);
        }
        ExitCode::from(self.exit.code())
    }
}
