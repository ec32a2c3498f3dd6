//! The estimated price of a search on bought machines, and its time there, from measured speeds.
//!
//! The estimate is of hop order with a slot for each trial. A machine is kept until the longest of its trials ends; trials
//! that take about as long share a machine. Starts, transfers and interruptions aren't in it.

use crate::search::Trial;
use sojourn_model::{ModelError, validate};
use sojourn_protocol::{
    demand::TypeSpeed,
    money::MicroUsd,
    quantity::{SaturatingFrom as _, mul_div, to_u64, to_usize},
    time::Millis,
};

/// Training on a row takes about as long as so many forward passes.
const FORWARD_PASSES: u64 = 3;

/// The operations of each trial of a search, all epochs with their evaluations, the most first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWork {
    trials: Vec<u128>,
    /// The operations of one that begins when all others have ended; 0 where there is none.
    last: u128,
}

impl SearchWork {
    /// The work of trials that train all their epochs over rows of this shape.
    ///
    /// # Errors
    /// Where a trial's model can't be built for this shape.
    pub fn of(
        trials: &[Trial],
        shape: &[u32],
        outputs: u32,
        (train_rows, valid_rows): (u64, u64),
    ) -> Result<Self, ModelError> {
        let mut work = Vec::with_capacity(trials.len());
        for trial in trials {
            let flops = validate(&trial.config, shape, outputs)?.flops_per_row();
            let passes = train_rows.saturating_mul(FORWARD_PASSES).saturating_add(valid_rows);
            let epochs = u128::from(trial.config.training.epochs);
            work.push(u128::from(flops) * u128::from(passes) * epochs);
        }
        Ok(Self::from_operations(work))
    }

    /// The work of trials of so many operations each.
    pub(crate) fn from_operations(trials: impl IntoIterator<Item = u128>) -> Self {
        let mut trials: Vec<u128> = trials.into_iter().collect();
        trials.sort_unstable_by(|a, b| b.cmp(a));
        Self { trials, last: 0 }
    }

    /// The operations of each trial, the most first.
    pub(crate) fn trials(&self) -> &[u128] {
        &self.trials
    }

    /// The operations of a trial that begins when all others have ended.
    pub(crate) const fn last(&self) -> u128 {
        self.last
    }

    /// With the longest trial of another search, when all of these have ended.
    #[must_use]
    pub fn then_largest_of(self, other: &Self) -> Self {
        Self { last: other.trials.first().copied().unwrap_or(0), ..self }
    }
}

/// The estimated price of a search on machines of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceEstimate {
    /// The type.
    pub instance_type: String,
    /// Machines of it, at most at a time.
    pub machines: u64,
    /// From the first start to the last end.
    pub time: Millis,
    /// At the price of the last one that was bought.
    pub cost: MicroUsd,
    /// At the list price.
    pub on_demand_cost: MicroUsd,
}

/// The estimates for these types, the cheapest first; those of a type that isn't measured are left out.
#[must_use]
pub fn prices(work: &SearchWork, types: &[TypeSpeed]) -> Vec<PriceEstimate> {
    let mut estimates: Vec<PriceEstimate> =
        types.iter().filter(|of| of.flops > 0 && of.slots > 0).map(|of| price(work, of)).collect();
    estimates.sort_by(|a, b| {
        (a.cost, a.time, &a.instance_type).cmp(&(b.cost, b.time, &b.instance_type))
    });
    estimates
}

fn price(work: &SearchWork, of: &TypeSpeed) -> PriceEstimate {
    let time = |operations: u128| {
        Millis(u64::saturating_from(operations.saturating_mul(1000) / u128::from(of.flops)))
    };
    // Of each machine the longest trial, as the most work comes first.
    let longest = work.trials.chunks(to_usize(of.slots)).filter_map(|trials| trials.first());
    let last = time(work.last);
    let all: u64 = longest.clone().fold(last.0, |sum, trial| sum.saturating_add(time(*trial).0));
    PriceEstimate {
        instance_type: of.instance_type.clone(),
        machines: to_u64(longest.count()),
        time: Millis(work.trials.first().map_or(0, |trial| time(*trial).0).saturating_add(last.0)),
        cost: MicroUsd(mul_div(of.price.0, all, HOUR)),
        on_demand_cost: MicroUsd(mul_div(of.on_demand_price.0, all, HOUR)),
    }
}

/// Milliseconds in an hour, the time that prices are for.
pub(crate) const HOUR: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, slots: u32, flops: u64, price: u64) -> TypeSpeed {
        TypeSpeed {
            instance_type: name.into(),
            slots,
            machines: 1,
            flops,
            price: MicroUsd(price),
            on_demand_price: MicroUsd(3 * price),
        }
    }

    #[test]
    fn machines_are_paid_until_their_longest_trial_ends() {
        let hour = 3_600 * 1_000_000_000;
        let work = SearchWork::from_operations([4 * hour, 3 * hour, hour]);
        let types = [
            of("small", 1, 1_000_000_000, 100_000),
            of("large", 2, 2_000_000_000, 150_000),
            of("unmeasured", 2, 0, 1),
        ];
        let [large, small] = &prices(&work, &types)[..] else { panic!("two are measured") };
        assert_eq!((large.instance_type.as_str(), large.machines), ("large", 2));
        assert_eq!((large.time, large.cost), (Millis(2 * HOUR), MicroUsd(375_000)));
        assert_eq!(large.on_demand_cost, MicroUsd(1_125_000));
        assert_eq!(
            (small.machines, small.time, small.cost),
            (3, Millis(4 * HOUR), MicroUsd(800_000))
        );
        assert_eq!(prices(&work, &[]), []);
        // A last trial begins on one machine when all others have ended.
        let then = work.then_largest_of(&SearchWork::from_operations([5 * hour, hour]));
        let [large, small] = &prices(&then, &types)[..] else { panic!("two are measured") };
        assert_eq!((large.time, large.cost), (Millis(9 * HOUR / 2), MicroUsd(750_000)));
        assert_eq!((small.time, small.cost), (Millis(9 * HOUR), MicroUsd(1_300_000)));
    }
}
