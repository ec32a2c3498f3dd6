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

/// Starts the log on stderr. `SOJOURN_LOG` sets its level, e.g. `debug` or `sojourn_server=trace`. Levels of other targets stay as
/// `default` has them.
pub fn start(program: Program, default: &str) {
    let chosen = std::env::var("SOJOURN_LOG").ok().and_then(|text| text.parse().ok());
    let filter = filter(default, chosen);
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

fn filter(default: &str, chosen: Option<Targets>) -> Targets {
    let default: Targets =
        default.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    let Some(chosen) = chosen else { return default };
    let level = chosen.default_level().or(default.default_level());
    default.with_targets(chosen.iter()).with_default(level.unwrap_or(LevelFilter::OFF))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_comes_on_top_of_the_default() {
        let with = |chosen: &str| filter("info,noisy=off", chosen.parse().ok());
        let is_enabled = |filter: &Targets, target: &str, level: LevelFilter| {
            filter.would_enable(target, &level.into_level().unwrap())
        };
        let debug = with("debug");
        assert!(is_enabled(&debug, "sojourn_server", LevelFilter::DEBUG));
        assert!(!is_enabled(&debug, "noisy", LevelFilter::ERROR));
        let noisy = with("noisy=trace");
        assert!(is_enabled(&noisy, "noisy", LevelFilter::TRACE));
        assert!(is_enabled(&noisy, "sojourn_server", LevelFilter::INFO));
        assert!(!is_enabled(&noisy, "sojourn_server", LevelFilter::DEBUG));
        assert!(!is_enabled(&with("off"), "sojourn_server", LevelFilter::ERROR));
    }
}
