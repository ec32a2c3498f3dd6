//! The width of the terminal that text is written to, in columns, and text in lines of a width.

use rustix::termios::{isatty, tcgetwinsize};
use std::{io, os::fd::AsFd};

/// The width of a terminal that doesn't say its own: `script`, a container's terminal, a serial line.
pub const DEFAULT_COLUMNS: u16 = 80;

/// The width of stdout's terminal; `None` where stdout is no terminal.
#[must_use]
pub fn of_stdout() -> Option<u16> {
    of(io::stdout())
}

/// The width of stderr's terminal; `None` where stderr is no terminal.
#[must_use]
pub fn of_stderr() -> Option<u16> {
    of(io::stderr())
}

/// The width of texts that clap writes: of the terminal, or else the variable `COLUMNS`. `None` leaves it to clap.
#[must_use]
pub fn of_help() -> Option<usize> {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    of_stdout().or_else(of_stderr).or_else(columns).map(usize::from)
}

fn of(stream: impl AsFd) -> Option<u16> {
    if !isatty(&stream) {
        return None;
    }
    let columns = tcgetwinsize(&stream).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { DEFAULT_COLUMNS } else { columns })
}

/// Puts items side by side, as many as a line of `width` characters has room for.
#[must_use]
pub fn packed(items: Vec<String>, between: &str, width: u16) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line)
                if line.chars().count() + between.len() + item.chars().count()
                    <= usize::from(width) =>
            {
                line.push_str(between);
                line.push_str(&item);
            }
            _ => lines.push(item),
        }
    }
    lines
}

/// A text in as many lines of `width` characters as it needs. A longer word is a line of its own.
#[must_use]
pub fn wrapped(text: &str, width: u16) -> Vec<String> {
    packed(text.split_whitespace().map(str::to_owned).collect(), " ", width)
}

/// The command with its help as wide as the terminal, also where that says no width.
#[must_use]
pub fn fitted(command: clap::Command) -> clap::Command {
    match of_help() {
        Some(columns) => command.term_width(columns),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_packed_into_lines() {
        assert_eq!(wrapped("a server  is gone", 9), ["a server", "is gone"]);
        assert_eq!(wrapped("unreachable now", 4), ["unreachable", "now"]);
    }
}
