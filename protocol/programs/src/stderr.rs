//! Messages on stderr, and whether a stream may be coloured. Never panics on a closed pipe. Messages may repeat what another machine
//! said: what a terminal would obey is left out.

use sojourn_protocol::text::plain_text;
use std::io::{self, IsTerminal, Write};

/// Prints an error on stderr.
pub(super) fn error(message: &str) {
    let stderr = io::stderr();
    let word = if colours(&stderr) { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    // Nobody is left to tell where this fails.
    let _ = writeln!(stderr.lock(), "{word} {}", plain_text(message, usize::MAX));
}

/// Prints a remark on stderr.
pub fn remark(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain_text(message, usize::MAX));
}

/// May this stream be coloured? Only a terminal, and not where `NO_COLOR` is set (no-color.org).
pub fn colours(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb && stream.is_terminal()
}
