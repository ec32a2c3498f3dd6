//! The log: stderr, and for a program that keeps its log also JSON lines. The spans of traces go to a collector, where one is named.
//!
//! | file | holds |
//! |---|---|
//! | `args.rs` | the flags |
//! | `traces.rs` | the log of a program whose traces go to a collector |
//! | `spans.rs` | spans as OpenTelemetry has them |
//! | `otlp.rs` | their way to the collector |

mod args;
#[cfg_attr(not(feature = "traces"), path = "otlp_absent.rs")]
mod otlp;
#[cfg(feature = "traces")]
mod spans;
mod traces;

pub use args::{FormArgs, LogArgs};
pub use traces::{Log, Program, start_with_traces};

use crate::output;
use args::LogFormat;
use sojourn_http::trace::{ENDED, SPANS, UNITS};
use std::io::{self, Write};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, FilterFn, LevelFilter, Targets, filter_fn},
    fmt::layer,
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

/// Starts the log on stderr. `SOJOURN_LOG` sets its level, e.g. `debug` or `sojourn_server=trace`. Levels of other targets stay as
/// `default` has them.
pub fn start(default: &str, args: FormArgs) {
    let (is_json, filter) = chosen(default, args);
    tracing_subscriber::registry().with(on_stderr(is_json, filter)).init();
}

/// Whether lines are JSON, and which are logged.
fn chosen(default: &str, args: FormArgs) -> (bool, Targets) {
    let chosen = std::env::var("SOJOURN_LOG").ok().and_then(|text| text.parse().ok());
    let is_json = args.log_format == LogFormat::Json;
    let default = if is_json { format!("{default},{UNITS}=debug") } else { default.to_owned() };
    (is_json, filter(&default, chosen))
}

/// The log on stderr.
fn on_stderr<S>(is_json: bool, filter: Targets) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if is_json {
        return json(|| Whole(io::stderr())).with_filter(filter.or(traces())).boxed();
    }
    // An error that ends the program is said as every command's failure is. Spans of traces would begin each line.
    let shown = filter_fn(|about| about.target() != ENDED && !is_of_traces(about));
    layer()
        // A log that can't be written is no reason to end: by default its own trouble is printed to
        // stderr, which panics where that is what broke.
        .log_internal_errors(false)
        .with_ansi(output::colours(&io::stderr()))
        .with_writer(|| Whole(io::stderr()))
        .with_filter(filter.and(shown))
        .boxed()
}

/// A log of JSON lines: `{"timestamp", "level", "fields": {"message", ...}, "target", "span": {"trace_id", ...}}`.
fn json<S, W>(writer: impl Fn() -> W + Send + Sync + 'static) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    let json = layer().json().with_current_span(true).with_span_list(false);
    json.log_internal_errors(false).with_writer(writer)
}

/// The spans of traces, of whatever level the log is.
fn traces() -> FilterFn<fn(&Metadata<'_>) -> bool> {
    let is_of_traces: fn(&Metadata<'_>) -> bool = is_of_traces;
    filter_fn(is_of_traces).with_max_level_hint(LevelFilter::INFO)
}

fn is_of_traces(about: &Metadata<'_>) -> bool {
    about.is_span() && about.target() == SPANS
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
