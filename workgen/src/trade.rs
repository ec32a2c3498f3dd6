//! The trade of money for time: the same search on fewer or more machines, of each type that was measured.
//!
//! ```text
//!   cost |  *                       * a choice that no other beats in both
//!        |     *    .   .           . beaten
//!        |          *       .
//!        |                 *
//!        +---------------------- time
//!         fastest   between  cheapest
//! ```

use crate::price::{HOUR, PriceEstimate, SearchWork};
use sojourn_protocol::{
    demand::TypeSpeed,
    money::MicroUsd,
    quantity::{SaturatingFrom as _, mul_div, to_u64, to_usize},
    time::Millis,
};
use std::{cmp::Reverse, collections::BinaryHeap};

/// A choice of machines, and why it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// No other costs less.
    Cheapest,
    /// Of those that keep the deadline the cheapest; without one the least product of cost and time.
    Between,
    /// No other ends sooner.
    Fastest,
}

impl Choice {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::Between => "between",
            Self::Fastest => "fastest",
        }
    }
}

/// At most three choices of machines, the cheapest first: no other is both cheaper and faster than one of them.
#[must_use]
pub fn trade(
    work: &SearchWork,
    types: &[TypeSpeed],
    deadline: Option<Millis>,
) -> Vec<(Choice, PriceEstimate)> {
    let measured: Vec<&TypeSpeed> =
        types.iter().filter(|of| of.flops > 0 && of.slots > 0).collect();
    let beats = |other: &TypeSpeed, of: &TypeSpeed| {
        let is_no_worse = other.price <= of.price && other.flops >= of.flops;
        is_no_worse && other.slots == of.slots && (other.price < of.price || other.flops > of.flops)
    };
    let candidates = measured.iter().filter(|of| !measured.iter().any(|other| beats(other, of)));
    let all = candidates.flat_map(|of| counts(work, of).map(|machines| on(work, of, machines)));
    let mut unbeaten = unbeaten(all.collect()).into_iter();
    let (Some(fastest), cheapest) = (unbeaten.next(), unbeaten.next_back()) else {
        return Vec::new();
    };
    let Some(cheapest) = cheapest else { return vec![(Choice::Cheapest, fastest)] };
    let others: Vec<PriceEstimate> = unbeaten.collect();
    let between = match deadline.filter(|deadline| cheapest.time > *deadline) {
        Some(deadline) => others.into_iter().rfind(|of| of.time <= deadline),
        None => others.into_iter().min_by_key(|of| u128::from(of.cost.0) * u128::from(of.time.0)),
    };
    let cheapest = std::iter::once((Choice::Cheapest, cheapest));
    let between = between.map(|of| (Choice::Between, of));
    cheapest.chain(between).chain([(Choice::Fastest, fastest)]).collect()
}

/// Numbers of machines of a type: powers of two, and one for each of as many trials as a machine has slots.
fn counts(work: &SearchWork, of: &TypeSpeed) -> impl Iterator<Item = u64> + use<> {
    let most = to_u64(work.trials().len().div_ceil(to_usize(of.slots))).max(1);
    let doubled = std::iter::successors(Some(1_u64), |count| count.checked_mul(2));
    doubled.take_while(move |count| *count < most).chain([most])
}

/// The search on so many machines of a type: each trial, the longest first, on the slot that is free first (Graham, 1969). A machine is
/// paid until the last of its trials ends.
fn on(work: &SearchWork, of: &TypeSpeed, machines: u64) -> PriceEstimate {
    let slots = machines.saturating_mul(of.slots.into()).min(to_u64(work.trials().len()).max(1));
    let mut free: BinaryHeap<Reverse<(u128, u64)>> =
        (0..slots).map(|slot| Reverse((0, slot))).collect();
    let mut ends = vec![0_u128; to_usize(machines)];
    for trial in work.trials() {
        let Some(mut first) = free.peek_mut() else { break };
        let Reverse((until, slot)) = &mut *first;
        *until = until.saturating_add(*trial);
        if let Some(end) = ends.get_mut(to_usize(*slot / u64::from(of.slots))) {
            *end = (*end).max(*until);
        }
    }
    let time = |operations: u128| {
        u64::saturating_from(operations.saturating_mul(1000) / u128::from(of.flops))
    };
    let last = time(work.last());
    let paid = ends.iter().fold(last, |sum, end| sum.saturating_add(time(*end)));
    PriceEstimate {
        instance_type: of.instance_type.clone(),
        machines,
        time: Millis(ends.iter().max().map_or(0, |end| time(*end)).saturating_add(last)),
        cost: MicroUsd(mul_div(of.price.0, paid, HOUR)),
        on_demand_cost: MicroUsd(mul_div(of.on_demand_price.0, paid, HOUR)),
    }
}

/// The choices that no other beats in both time and cost, the fastest first.
fn unbeaten(mut all: Vec<PriceEstimate>) -> Vec<PriceEstimate> {
    all.sort_by_key(|of| (of.time, of.cost, of.machines));
    let mut unbeaten: Vec<PriceEstimate> = Vec::new();
    for one in all {
        if unbeaten.last().is_none_or(|last| one.cost < last.cost) {
            unbeaten.push(one);
        }
    }
    unbeaten
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// Trials of so many hours on a machine of 10^9 operations a second.
    fn hours(trials: &[u128]) -> SearchWork {
        SearchWork::from_operations(trials.iter().map(|hours| hours * 3_600 * 1_000_000_000))
    }

    fn shown(
        work: &SearchWork,
        deadline: Option<u64>,
    ) -> Vec<(&'static str, String, u64, u64, u64)> {
        let types = [of("cheap", 1, 1_000_000_000, 100_000), of("fast", 1, 4_000_000_000, 600_000)];
        let all = trade(work, &types, deadline.map(|hours| Millis(hours * HOUR)));
        let row = |(choice, of): (Choice, PriceEstimate)| {
            (choice.name(), of.instance_type, of.machines, of.time.0 / HOUR, of.cost.0)
        };
        all.into_iter().map(row).collect()
    }

    #[test]
    fn cheap_machines_are_slow_and_fast_ones_dear() {
        let work = hours(&[8; 8]);
        let all = shown(&work, None);
        assert_eq!(all.first(), Some(&("cheapest", "cheap".into(), 8, 8, 6_400_000)));
        assert_eq!(all.last(), Some(&("fastest", "fast".into(), 8, 2, 9_600_000)));
        // More machines of a type cost no more where each is used to the end: the few are beaten.
        assert_eq!(all.len(), 2, "{all:?}");
    }

    #[test]
    fn the_one_between_keeps_the_deadline_for_the_least_money() {
        // The long trial alone would keep a machine of each short one waiting for nothing.
        let work = hours(&[24, 4, 4, 4]);
        let all = shown(&work, None);
        assert_eq!((all[0].0, all[0].3), ("cheapest", 24), "{all:?}");
        let within = shown(&work, Some(10));
        assert!(within.iter().any(|(_, _, _, time, _)| *time <= 10), "{within:?}");
        assert_eq!(shown(&hours(&[]), None).len(), 1, "nothing to do is no choice");
        assert_eq!(trade(&work, &[], None), []);
    }

    proptest! {
        #[test]
        fn none_that_is_shown_is_beaten(
            trials in prop::collection::vec(1_u128..50, 1..40),
            types in prop::collection::vec((1_u32..5, 1_u64..9, 1_u64..900_000), 1..6),
            deadline in prop::option::of(1_u64..100),
        ) {
            let work = hours(&trials);
            let types: Vec<TypeSpeed> = types.iter().enumerate()
                .map(|(n, (slots, speed, price))| of(&n.to_string(), *slots, speed * 1_000_000_000, *price)).collect();
            let shown = trade(&work, &types, deadline.map(|hours| Millis(hours * HOUR)));
            let all: Vec<PriceEstimate> = types.iter()
                .flat_map(|of| counts(&work, of).map(|machines| on(&work, of, machines))).collect();
            for (_, one) in &shown {
                let beats = |other: &&PriceEstimate| other.time < one.time && other.cost < one.cost;
                prop_assert!(!all.iter().any(|other| beats(&other)), "{one:?}");
            }
            prop_assert!(shown.windows(2).all(|two| two[0].1.cost <= two[1].1.cost && two[0].1.time >= two[1].1.time));
            let least = all.iter().map(|of| of.cost).min();
            prop_assert_eq!(shown.first().map(|(_, of)| of.cost), least);
            let soonest = all.iter().map(|of| of.time).min();
            prop_assert_eq!(shown.last().map(|(_, of)| of.time), soonest);
            // All work is done, and by no machine for nothing.
            for one in &all {
                let total: u128 = trials.iter().sum();
                prop_assert!(u128::from(one.time.0) * u128::from(one.machines) * 4 * 8 >= total);
            }
        }
    }
}
