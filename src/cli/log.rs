//! The log.

use super::output;
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
        .with_writer(std::io::stderr)
        .init();
}
