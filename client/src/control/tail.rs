//! The end of this program's log, for whoever asks. The program's logger puts its lines here too.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// Lines that are kept.
const LINES: usize = 500;
/// Bytes of a line that are kept.
const LONGEST: usize = 2_000;

static TAIL: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Keeps what is written to the log, a line or several.
pub fn remember(text: &str) {
    let mut tail = TAIL.lock().unwrap_or_else(PoisonError::into_inner);
    for line in text.lines() {
        let line = plain(line);
        let end = line.floor_char_boundary(LONGEST);
        tail.push_back(line.get(..end).unwrap_or_default().to_owned());
        if tail.len() > LINES {
            tail.pop_front();
        }
    }
}

/// Without the colours that a terminal gets.
fn plain(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// The lines, the oldest first.
pub(super) fn lines() -> Vec<String> {
    TAIL.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        for number in 0..LINES + 5 {
            remember(&format!("line {number}\n"));
        }
        remember("\u{1b}[2m12:00\u{1b}[0m \u{1b}[32m INFO\u{1b}[0m started");
        remember(&"é".repeat(LONGEST));
        let lines = lines();
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[0], "line 7");
        assert_eq!(lines[LINES - 2], "12:00  INFO started");
        assert_eq!(lines[LINES - 1].len(), LONGEST);
    }
}
