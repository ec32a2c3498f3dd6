//! The log: stderr, and the end of it where `sojourn client ctl log` finds it.

use super::output;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;

/// Logs go to stderr; `SOJOURN_LOG` says how much, e.g. `debug` or `sojourn_server=trace`.
pub(crate) fn start(default: &str) {
    let filter = EnvFilter::try_from_env("SOJOURN_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A log that can't be written is no reason to end: by default its own trouble is printed to
        // stderr, which panics where that is what broke.
        .log_internal_errors(false)
        .with_ansi(output::colours(&std::io::stderr()))
        .with_writer(|| Log(io::stderr()))
        .init();
}

/// Where lines go.
struct Log(io::Stderr);

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        sojourn_client::control::remember(&String::from_utf8_lossy(line));
        // All of it: what is left over would come again, as a line of its own.
        self.0.write_all(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
