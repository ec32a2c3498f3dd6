//! The log: lines on stderr.

use std::io::{self, IsTerminal as _};
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt::layer,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// Starts the log. `SOJOURN_LOG` sets its level, e.g. `debug` or `sojourn_autoscaler=trace`.
pub fn start() {
    let chosen = std::env::var("SOJOURN_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = chosen.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let stderr = layer()
        // A log that can't be written is no reason to end.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal() && !plain)
        .with_writer(io::stderr)
        .with_filter(filter);
    tracing_subscriber::registry().with(stderr).init();
}
