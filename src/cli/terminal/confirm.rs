//! Asking before harm is done.

use super::{exit::Failure, output};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Is somebody there to ask?
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal()
}

/// Says what would happen, and asks whether it should. Programs say it with `--yes`.
///
/// # Errors
/// Where the answer isn't yes, or nobody is there to ask.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let input = io::stdin();
    if !is_possible() {
        return Err(Failure::call(format!("{what}; `--yes` has it done without a question")));
    }
    output::remark(what);
    // Where the question can't be shown, no answer can be yes.
    let _ = write!(io::stderr(), "go on? [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = input.lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::work("nothing was changed")),
    }
}
