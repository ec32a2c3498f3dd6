//! What goes to stdout: text and JSON; and errors to stderr. Never panics on a closed pipe.

use super::failure::Failure;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Prints a line (or several) on stdout.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output(&error))
}

/// Prints a value as JSON, in several lines.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::work(error.to_string()))?;
    line(&text)
}

/// Prints a value as JSON in one line, for streams of values.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::work(error.to_string()))?;
    line(&text)
}

/// Prints an error on stderr.
pub(crate) fn error(message: &str) {
    let stderr = io::stderr();
    let word = if colours(&stderr) { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    // Nobody is left to tell where this fails.
    let _ = writeln!(stderr.lock(), "{word} {message}");
}

/// Prints a remark on stderr.
pub(crate) fn remark(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// May this stream be coloured? Only a terminal, and not where `NO_COLOR` is set (no-color.org).
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb && stream.is_terminal()
}

/// Is stdout looked at by a person?
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}
