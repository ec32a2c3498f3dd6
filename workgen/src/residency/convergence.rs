//! The category of a trial (SpeCon's algorithm 3).

use sojourn_protocol::{
    quantity::Micros,
    residency::Category,
    spec::{Growth, Listing, SpeCon},
};

/// The measurements of one look at a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The mean loss since the last look.
    pub loss: f64,
    /// Batches that were reported since.
    pub batches: u32,
    /// The part of the whole trial that was done since, above 0; needed by [`Growth::PerTrial`].
    pub done: Option<f64>,
}

/// The findings of all looks at a trial, which go with it from host to host.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Convergence {
    /// How far it seems to be.
    pub category: Category,
    /// Since when it is in the last category.
    pub converged_at: Option<Micros>,
    /// Has it used the one move that a guess gives it?
    pub has_moved: bool,
    /// Has it been moved to rebalance the hosts?
    pub is_rebalanced: bool,
    highest: Option<f64>,
    lowest: Option<f64>,
    loss: Option<f64>,
    growth: Option<f64>,
    /// Looks since it came into the last category.
    confirmed: u32,
}

/// Below this part of the threshold growth counts as falling, whatever it was before.
const FLAT: f64 = 0.1;

impl Convergence {
    /// How much its loss had fallen at the last look, once there were two.
    #[must_use]
    pub const fn growth(&self) -> Option<f64> {
        self.growth
    }

    /// Looks at the trial. Is it to move, if others on its host still learn? Too few batches, or a loss that is no number, are no look.
    pub fn look(&mut self, now: Micros, look: &Look, rules: &SpeCon) -> bool {
        if self.has_moved || look.batches < rules.least_batches || !look.loss.is_finite() {
            return false;
        }
        let highest = self.highest.map_or(look.loss, |highest| highest.max(look.loss));
        let lowest = self.lowest.map_or(look.loss, |lowest| lowest.min(look.loss));
        (self.highest, self.lowest) = (Some(highest), Some(lowest));
        // A loss that may be negative has no part of its highest value.
        let scale = if lowest < 0.0 { highest - lowest } else { highest };
        let Some(before) = self.loss.replace(look.loss) else { return false };
        let Some(growth) = growth(before, look, scale, rules) else { return false };
        let Some(last) = self.growth.replace(growth) else { return false };
        if growth >= rules.alpha {
            (self.category, self.converged_at) = (Category::Progressing, None);
            return false;
        }
        if growth >= last && growth >= rules.alpha * FLAT {
            return false;
        }
        match self.category {
            Category::Progressing => {
                self.category = Category::Watching;
                false
            }
            // Line 11 of the listing puts it where it was.
            Category::Watching if rules.listing == Listing::Printed => false,
            Category::Watching => {
                (self.category, self.converged_at) = (Category::Converged, Some(now));
                self.confirmed = 0;
                rules.confirm == 0
            }
            Category::Converged => {
                self.confirmed = self.confirmed.saturating_add(1);
                self.confirmed >= rules.confirm
            }
        }
    }
}

/// How much a trial's loss has fallen since the last look, as a part of `scale`; none where that is no number.
fn growth(before: f64, look: &Look, scale: f64, rules: &SpeCon) -> Option<f64> {
    let fallen = (before - look.loss) / scale;
    let fallen = if rules.absolute { fallen.abs() } else { fallen.max(0.0) };
    let growth = match rules.growth {
        Growth::PerLook => fallen,
        Growth::PerTrial => fallen / look.done.filter(|done| *done > 0.0)?,
    };
    Some(growth).filter(|growth| scale > 0.0 && growth.is_finite())
}
