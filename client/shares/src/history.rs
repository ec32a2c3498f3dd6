//! The latest reports of a trial, by its own running time.

use sojourn_protocol::{
    cpu_shares::{Carried, List, Window},
    quantity::Micros,
};
use std::collections::VecDeque;

/// The time and loss that a running trial had in a short time, usually a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// How long it ran.
    pub span: Micros,
    /// The processor time of all its threads in it.
    pub busy: Micros,
    /// The mean loss of the batches that ended in it, if any did and the loss is a number.
    pub loss: Option<f64>,
}

/// How a loss falls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fall {
    pub(crate) per_second: f64,
    /// Seconds of processor time in a second.
    pub(crate) busy: f64,
}

/// The samples of two windows, the newest last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct History {
    window: Micros,
    samples: VecDeque<Sample>,
    highest: Option<f64>,
    /// The first report here.
    first: Option<f64>,
    attained: Micros,
}

impl History {
    /// Of a trial that comes with this.
    pub(crate) fn new(window: Micros, carried: &Carried) -> Self {
        let earlier = [carried.before, carried.last].into_iter().flatten();
        let samples = earlier.map(|mean| {
            let busy = mean.busy * seconds(window) * 1e6;
            Sample { span: window, busy: Micros(whole(busy)), loss: mean.loss }
        });
        Self {
            window,
            samples: samples.collect(),
            highest: carried.highest,
            first: None,
            attained: carried.attained,
        }
    }

    pub(crate) fn record(&mut self, sample: Sample) {
        let loss = sample.loss.filter(|loss| loss.is_finite());
        self.attained += sample.busy;
        if sample.span.is_zero() {
            return;
        }
        if let Some(loss) = loss {
            self.first = self.first.or(Some(loss));
            self.highest = Some(self.highest.map_or(loss, |highest| highest.max(loss)));
        }
        self.samples.push_back(Sample { loss, ..sample });
        let both = Micros(self.window.0.saturating_mul(2));
        let mut length: Micros = self.samples.iter().map(|sample| sample.span).sum();
        while let Some(oldest) = self.samples.front()
            && length - oldest.span >= both
        {
            length -= oldest.span;
            self.samples.pop_front();
        }
    }

    pub(crate) const fn highest(&self) -> Option<f64> {
        self.highest
    }

    pub(crate) const fn attained(&self) -> Micros {
        self.attained
    }

    /// The means of the last window and of the one before. A sample that lies in both counts in each for its part.
    pub(crate) fn windows(&self) -> [Option<Window>; 2] {
        let mut sums = [Sum::default(); 2];
        let mut from = Micros::ZERO;
        for sample in self.samples.iter().rev() {
            let to = from + sample.span;
            for (sum, begin) in sums.iter_mut().zip([Micros::ZERO, self.window]) {
                let part = to.min(begin + self.window) - from.max(begin);
                // Most samples lie in one of them alone.
                if !part.is_zero() {
                    sum.add(sample, part);
                }
            }
            from = to;
        }
        sums.map(|sum| sum.mean(self.window))
    }

    /// How much the loss has fallen from one window to the next, in a second, and the processor time of a second in the later one.
    /// While the window before is empty the trial's first report stands for it. `None` before a window is full, and where it has no
    /// report.
    pub(crate) fn fall(&self) -> Option<Fall> {
        let length: Micros = self.samples.iter().map(|sample| sample.span).sum();
        // A timer may come a little early for the samples.
        if length.0.saturating_mul(10) < self.window.0.saturating_mul(9) {
            return None;
        }
        let [now, before] = self.windows();
        let now = now?;
        let per_second = (self.loss_before(before)? - now.loss?) / seconds(self.window);
        Some(Fall { per_second, busy: now.busy })
    }

    fn loss_before(&self, before: Option<Window>) -> Option<f64> {
        before.map_or(self.first, |before| before.loss)
    }

    pub(crate) fn carried(&self, list: List) -> Carried {
        let [last, before] = self.windows();
        let first = Window { loss: self.first, busy: 0.0 };
        let before = before.or(last.map(|_| first));
        Carried { list, highest: self.highest, last, before, attained: self.attained }
    }
}

/// Of the parts of samples that lie in a window, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    busy: f64,
    losses: f64,
    reported: f64,
    length: f64,
}

impl Sum {
    fn add(&mut self, sample: &Sample, part: Micros) {
        let part = seconds(part);
        let ratio = part / seconds(sample.span);
        self.busy += seconds(sample.busy) * ratio;
        self.length += part;
        if let Some(loss) = sample.loss {
            self.losses += loss * part;
            self.reported += part;
        }
    }

    fn mean(self, window: Micros) -> Option<Window> {
        let loss = (self.reported > 0.0).then(|| self.losses / self.reported);
        (self.length > 0.0).then(|| Window { loss, busy: self.busy / seconds(window) })
    }
}

#[expect(clippy::cast_precision_loss, reason = "times of running are far below 2^53 microseconds")]
pub(crate) const fn seconds(time: Micros) -> f64 {
    time.0 as f64 / 1e6
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time that is not negative; one that is too long is the longest"
)]
const fn whole(micros: f64) -> u64 {
    micros as u64
}
