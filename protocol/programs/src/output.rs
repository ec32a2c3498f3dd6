//! Output on stdout: text and JSON. Never panics on a closed pipe.

pub use crate::stderr::{colours, remark};

use crate::exit::Failure;
use serde::Serialize;
use sojourn_protocol::decimal;
use std::io::{self, IsTerminal, Write};

/// Prints a line (or several) on stdout.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output(&error))
}

/// Prints a value as JSON, in several lines; seeds of 64 bits as decimal text.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = decimal::as_text(|| serde_json::to_string_pretty(value));
    let text = text.map_err(|error| Failure::work(error.to_string()))?;
    line(&text)
}

/// The same in one line, for streams of values.
pub fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = decimal::as_text(|| serde_json::to_string(value));
    let text = text.map_err(|error| Failure::work(error.to_string()))?;
    line(&text)
}

/// Is stdout looked at by a person?
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}
