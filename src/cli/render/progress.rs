//! Progress of whatever takes long, on stderr: a bar on a terminal, else a line now and then.

use crate::cli::terminal::output;
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

/// The pause between two lines where stderr is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The unit of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Steps,
}

/// One thing that takes long.
pub(crate) struct Meter {
    name: String,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines { last: Instant },
}

impl Meter {
    /// Begins; `of` may be 0 where it isn't known yet.
    pub(crate) fn new(name: &str, unit: Unit, of: u64) -> Self {
        let shown = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(of);
            bar.set_style(style(unit));
            bar.set_prefix(name.to_owned());
            Shown::Bar(bar)
        } else {
            Shown::Lines { last: Instant::now() }
        };
        Self { name: name.to_owned(), shown }
    }

    /// Says how far it is.
    pub(crate) fn set(&mut self, done: u64, of: u64, message: &str) {
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_length(of);
                bar.set_position(done);
                bar.set_message(message.to_owned());
            }
            Shown::Lines { last } => {
                if last.elapsed() >= LINE_INTERVAL {
                    *last = Instant::now();
                    let percent = done.saturating_mul(100).checked_div(of).unwrap_or(0);
                    let message =
                        if message.is_empty() { String::new() } else { format!(", {message}") };
                    output::remark(&format!("{}: {percent} %{message}", self.name));
                }
            }
        }
    }

    /// A remark above the bar.
    pub(crate) fn remark(&self, text: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.println(text),
            Shown::Lines { .. } => output::remark(text),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn style(unit: Unit) -> ProgressStyle {
    let template = match unit {
        Unit::Bytes => {
            "{prefix} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} {msg}"
        }
        Unit::Steps => "{prefix} {wide_bar} {pos}/{len} {elapsed} {msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
