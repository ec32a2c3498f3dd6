//! The log: stderr, and for the client JSON lines, whose end the daemon has ready for `sojourn client ctl log`, and
//! which it writes into files.

use crate::terminal::output;
use sojourn_client::log::{ENDED, keep};
use std::io::{self, Write};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets, filter_fn},
    fmt::layer,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// The program that logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The client.
    Client,
    /// Any other.
    Other,
}

/// Starts the log on stderr. `SOJOURN_LOG` sets its level, e.g. `debug` or `sojourn_server=trace`.
pub fn start(program: Program, default: &str) {
    let chosen = std::env::var("SOJOURN_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = chosen
        .or_else(|| default.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let stderr = layer()
        // A log that can't be written is no reason to end: by default its own trouble is printed to
        // stderr, which panics where that is what broke.
        .log_internal_errors(false)
        .with_ansi(output::colours(&io::stderr()))
        .with_writer(|| Whole(io::stderr()))
        // There it is said as every command's failure is.
        .with_filter(filter_fn(|event| event.target() != ENDED));
    let kept = (program == Program::Client).then(|| {
        let json = layer().json().with_current_span(false).with_span_list(false);
        json.log_internal_errors(false).with_writer(|| Kept)
    });
    tracing_subscriber::registry().with(filter).with(stderr).with(kept).init();
}

/// Takes a line at once, or fails: what is left over would come again, as a line of its own.
struct Whole<W>(W);

impl<W: Write> Write for Whole<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The end of the log, which the daemon keeps.
struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        keep(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
