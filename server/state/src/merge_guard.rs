//! The guard of trials that the server merges by itself: merging ends where validation shows that it does harm.

use super::Trial;
use crate::event::MergeFault;
use sojourn_protocol::view::CurvePoint;

/// A validation loss of more than so many times the lowest one before ends merging. An epoch in hop order seldom raises
/// the loss so much, while a model whose results overshoot soon does.
const MAX_LOSS_RATIO: f64 = 1.5;

impl Trial {
    /// Why its results aren't to be merged any more, where the server chooses; `None` as long as they may be. The first
    /// such epoch of the curve decides, so a trial that has gone back to hop order stays there.
    #[must_use]
    pub fn merge_fault(&self) -> Option<MergeFault> {
        let mut best: Option<f64> = None;
        for point in &self.curve {
            let loss = mean_loss(point);
            if let Some(best) =
                best.filter(|best| loss.is_none_or(|loss| loss > best * MAX_LOSS_RATIO))
            {
                let epoch = point.epoch.0.saturating_add(1);
                return Some(MergeFault::LossRose { epoch, loss: loss.unwrap_or_default(), best });
            }
            best = [best, loss].into_iter().flatten().reduce(f64::min);
        }
        None
    }
}

/// The mean validation loss of a row; `None` where it is no number.
fn mean_loss(point: &CurvePoint) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "rows are far below 2^53")]
    let rows = point.valid.rows as f64;
    Some(point.valid.loss / rows).filter(|loss| loss.is_finite())
}
