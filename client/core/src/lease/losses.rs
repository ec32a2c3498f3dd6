//! The training losses of a unit, which the server hears with each heartbeat.

use sojourn_protocol::api::LossSum;

/// The sum of the training losses that a unit's samples have said so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Losses {
    sum: LossSum,
    /// Batches that were done at the last sample, and before the first one when the unit began here.
    heard_at: u32,
}

impl Losses {
    /// Of a unit that begins with so many batches done.
    pub(crate) fn from(done: u32) -> Self {
        Self { sum: LossSum::default(), heard_at: done }
    }

    /// The mean over the batches since the last sample. `done`: those that are done by now.
    pub(crate) fn heard(&mut self, mean: Option<f64>, done: u32) {
        let before = std::mem::replace(&mut self.heard_at, done);
        if let Some(mean) = mean.filter(|mean| mean.is_finite()) {
            self.sum = self.sum.plus(mean, done.saturating_sub(before));
        }
    }

    /// All of them; none where there are no batches yet.
    pub(crate) fn sum(&self) -> Option<LossSum> {
        Some(self.sum).filter(|sum| sum.batches > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_for_the_batches_since_the_one_before() {
        let mut losses = Losses::from(0);
        assert_eq!(losses.sum(), None);
        losses.heard(Some(2.0), 10);
        // Of these nothing is known, and they count for no later sample.
        losses.heard(None, 15);
        losses.heard(Some(f64::NAN), 18);
        losses.heard(Some(1.0), 20);
        assert_eq!(losses.sum(), Some(LossSum { sum: 22.0, batches: 12 }));
    }

    #[test]
    fn batches_that_were_done_before_the_unit_began_here_do_not_count() {
        let mut losses = Losses::from(100);
        losses.heard(Some(3.0), 104);
        assert_eq!(losses.sum(), Some(LossSum { sum: 12.0, batches: 4 }));
    }
}
