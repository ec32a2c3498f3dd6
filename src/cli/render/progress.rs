//! Progress of whatever takes long, on stderr: a bar on a terminal, else a line now and then. Both say the time so far and the time
//! that is left.

use crate::cli::{
    render::text,
    terminal::{columns, output},
};
use indicatif::{ProgressBar, ProgressStyle};
use sojourn_protocol::quantity::{SaturatingFrom as _, mul_div};
use std::time::{Duration, Instant};

/// The pause between two lines where stderr is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Before so much time has passed, its rate says nothing about what is left.
const MIN_MEASURED: Duration = Duration::from_secs(2);
/// A terminal of fewer columns has no room for a bar.
const MIN_BAR_COLUMNS: u16 = 70;

/// The unit of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Steps,
}

/// One thing that takes long.
pub(crate) struct Meter {
    name: String,
    pace: Pace,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines { last: Instant },
}

impl Meter {
    /// Begins; `of` may be 0 where it isn't known yet.
    pub(crate) fn new(name: &str, unit: Unit, of: u64) -> Self {
        let shown = match columns::of_stderr() {
            Some(columns) => {
                let bar = ProgressBar::new(of);
                bar.set_style(style(unit, columns));
                bar.set_prefix(name.to_owned());
                Shown::Bar(bar)
            }
            None => Shown::Lines { last: Instant::now() },
        };
        Self { name: name.to_owned(), pace: Pace::new(), shown }
    }

    /// Says how far it is. The time that is left follows from the rate so far.
    pub(crate) fn set(&mut self, done: u64, of: u64, message: &str) {
        let left = self.pace.left(self.pace.begun.elapsed(), done, of);
        self.show((done, of), left, message);
    }

    /// As [`Meter::set`], where somebody else may know how much time is left.
    pub(crate) fn set_with_left(
        &mut self,
        (done, of): (u64, u64),
        left: Option<Duration>,
        message: &str,
    ) {
        let own = self.pace.left(self.pace.begun.elapsed(), done, of);
        self.show((done, of), left.or(own), message);
    }

    fn show(&mut self, (done, of): (u64, u64), left: Option<Duration>, message: &str) {
        let times = times(self.pace.begun.elapsed(), left);
        let message = if message.is_empty() { times } else { format!("{times}, {message}") };
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_length(of);
                bar.set_position(done);
                bar.set_message(message);
            }
            Shown::Lines { last } => {
                if last.elapsed() >= LINE_INTERVAL {
                    *last = Instant::now();
                    let percent = done.saturating_mul(100).checked_div(of).unwrap_or(0);
                    output::remark(&format!("{}: {percent} %, {message}", self.name));
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

/// The rate of what takes long.
struct Pace {
    begun: Instant,
    /// The first figure, and when it came: a part may have been done before.
    first: Option<(Duration, u64)>,
}

impl Pace {
    fn new() -> Self {
        Self { begun: Instant::now(), first: None }
    }

    /// The time that is left at this rate; `None` while too little was measured.
    fn left(&mut self, elapsed: Duration, done: u64, of: u64) -> Option<Duration> {
        let (since, before) = *self.first.get_or_insert((elapsed, done));
        let measured = elapsed.checked_sub(since).filter(|measured| *measured >= MIN_MEASURED)?;
        let advanced = done.checked_sub(before).filter(|advanced| *advanced > 0)?;
        let millis = u64::saturating_from(measured.as_millis());
        Some(Duration::from_millis(mul_div(millis, of.saturating_sub(done), advanced)))
    }
}

/// `45 s elapsed, about 2 min left`.
fn times(elapsed: Duration, left: Option<Duration>) -> String {
    let duration = |time: Duration| text::duration(u64::saturating_from(time.as_millis()));
    let left = left.map(|left| format!(", about {} left", duration(left)));
    format!("{} elapsed{}", duration(elapsed), left.unwrap_or_default())
}

/// A line of one terminal row: the message is cut at its end.
fn style(unit: Unit, columns: u16) -> ProgressStyle {
    let template = match (columns < MIN_BAR_COLUMNS, unit) {
        (true, _) => "{prefix} {percent} % {wide_msg}",
        (false, Unit::Bytes) => {
            "{prefix} {bar:16} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {wide_msg}"
        }
        (false, Unit::Steps) => "{prefix} {bar:16} {pos}/{len} {wide_msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_time_left_follows_from_what_was_done_since_the_first_figure() {
        let mut pace = Pace::new();
        assert_eq!(pace.left(secs(1), 40, 100), None);
        assert_eq!(pace.left(secs(2), 50, 100), None, "a second says nothing");
        assert_eq!(pace.left(secs(4), 40, 100), None, "nothing was done");
        assert_eq!(pace.left(secs(11), 60, 100), Some(secs(20)));
        assert_eq!(pace.left(secs(31), 100, 100), Some(secs(0)));
    }

    #[test]
    fn times_are_said_in_words() {
        assert_eq!(times(secs(3), None), "3.0 s elapsed");
        assert_eq!(times(secs(45), Some(secs(120))), "45 s elapsed, about 2 min left");
    }
}
