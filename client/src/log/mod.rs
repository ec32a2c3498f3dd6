//! The daemon's log, as JSON lines: its end in memory, for `sojourn client ctl log` and `--watch`, and all of it
//! in a folder of the data folder, in a bounded number of files of bounded size. Whatever happens to that folder
//! never stops the daemon.
//!
//! | file | holds |
//! |---|---|
//! | `choice.rs` | whether there are files |
//! | `rolling.rs` | the files |
//! | `line.rs` | one line, and its text for people |

mod choice;
mod line;
mod rolling;

pub use choice::LogChoice;
pub use line::Line;

use crate::control::{LogEnd, LogPart};
use parking_lot::{Mutex, MutexGuard};
use rolling::Rolling;
use sojourn_protocol::quantity::to_usize;
use std::{collections::VecDeque, path::Path};

/// The name of the log's folder in the data folder.
pub(crate) const LOG_FOLDER: &str = "log";
/// Lines that are kept in memory.
const MAX_LINES: usize = 500;

static LOG: Mutex<Log> = Mutex::new(Log::new());

/// The writer for the program's logger.
#[derive(Debug)]
struct Log {
    end: VecDeque<Line>,
    /// The number of the first line of `end`.
    first: u64,
    files: Option<Rolling>,
}

impl Log {
    const fn new() -> Self {
        Self { end: VecDeque::new(), first: 0, files: None }
    }

    fn push(&mut self, line: Line) {
        self.end.push_back(line);
        if self.end.len() > MAX_LINES {
            self.end.pop_front();
            self.first += 1;
        }
    }
}

/// Keeps a line of JSON that the program's logger has made.
pub fn keep(json: &[u8]) {
    let Some(line) = Line::parse(json) else { return };
    let mut log = log();
    if let Some(files) = &mut log.files {
        files.write(jiff::Timestamp::now(), &line);
    }
    log.push(line);
}

/// Writes into files from now on, including the lines since the start of the program, and reads the last lines of earlier
/// runs.
pub(crate) fn open(folder: &Path) {
    let before = rolling::end(folder, MAX_LINES);
    let mut log = log();
    let mut files = Rolling::new(folder.to_owned());
    let now = jiff::Timestamp::now();
    for line in &log.end {
        files.write(now, line);
    }
    log.files = Some(files);
    for line in before.into_iter().rev() {
        if log.end.len() == MAX_LINES {
            break;
        }
        log.end.push_front(line);
    }
}

/// Writes into no files from now on.
pub(crate) fn close() {
    log().files = None;
}

/// A part of what is in memory.
pub(crate) fn end(part: LogPart) -> LogEnd {
    let log = log();
    let skipped = match part {
        LogPart::Last(most) => log.end.len().saturating_sub(most),
        LogPart::Since(since) => to_usize(since.saturating_sub(log.first)),
    };
    let lines = log.end.iter().skip(skipped).cloned().collect();
    LogEnd { lines, next: log.first + log.end.len() as u64 }
}

/// The last lines that are in the files of a data folder, also where no daemon runs on it.
#[must_use]
pub fn written(data: &Path) -> Vec<Line> {
    rolling::end(&data.join(LOG_FOLDER), MAX_LINES)
}

fn log() -> MutexGuard<'static, Log> {
    LOG.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(what: &str) -> Vec<u8> {
        format!("{{\"level\":\"INFO\",\"fields\":{{\"message\":\"{what}\"}}}}\n").into_bytes()
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.message().to_owned()).collect()
    }

    /// One test, because the log is the whole program's.
    #[test]
    fn the_end_is_kept_and_goes_on_where_the_run_before_ended() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(LOG_FOLDER);
        keep(&said("before the folder is known"));
        open(&folder);
        keep(&said("then"));
        keep(b"no JSON\n");
        assert_eq!(texts(&written(data.path())), ["before the folder is known", "then"]);
        // Another run.
        *log() = Log::new();
        keep(&said("again"));
        open(&folder);
        let LogEnd { lines, next } = end(LogPart::Last(2));
        assert_eq!(texts(&lines), ["then", "again"]);
        for number in 0..MAX_LINES {
            keep(&said(&format!("line {number}")));
        }
        let LogEnd { lines, next } = end(LogPart::Since(next));
        assert_eq!((lines.len(), lines[0].message()), (MAX_LINES, "line 0"));
        assert_eq!(end(LogPart::Since(next + 5)), LogEnd { lines: Vec::new(), next });
        assert_eq!(end(LogPart::Last(usize::MAX)).lines, lines);
        assert_eq!(written(data.path()), lines);
        close();
        keep(&said("in memory alone"));
        assert_eq!(
            written(data.path()).last().unwrap().message(),
            format!("line {}", MAX_LINES - 1)
        );
    }
}
