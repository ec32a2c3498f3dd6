//! CPU shares by pauses between batches, where the operating system can't divide the processor: each process computes for a part of the time.

use crate::divide::{Demand, divide};

/// A process that runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runner {
    /// How much it gets beside others, above 0.
    pub weight: f64,
    /// The most that it may have of the processor, as a part of its capacity, where it has a cap.
    pub cap: Option<f64>,
    /// The cores that it would use alone, above 0.
    pub most: f64,
}

/// The part of the time in which each process is to compute, so that they divide a processor of this capacity by their weights and keep
/// their caps. Above 0, at most 1.
///
/// Processes with the largest weight have no pauses but those of their caps: they take what the others leave, so that
/// no core is idle.
/// Where there are cores for all nobody pauses.
///
/// ```
/// use sojourn_shares::{Runner, paces};
///
/// let runner = |weight| Runner { weight, cap: None, most: 2.0 };
/// // A third of the CPU share of the other, on two cores: half a core of the two that it could use.
/// assert_eq!(paces(2.0, &[runner(1.0), runner(3.0)]), [0.25, 1.0]);
/// assert_eq!(paces(4.0, &[runner(1.0), runner(3.0)]), [1.0, 1.0]);
/// let capped = Runner { cap: Some(0.5), ..runner(3.0) };
/// assert_eq!(paces(2.0, &[capped]), [0.5]);
/// ```
#[must_use]
pub fn paces(capacity: f64, runners: &[Runner]) -> Vec<f64> {
    let cap = |runner: &Runner| runner.cap.map_or(f64::INFINITY, |cap| cap * capacity);
    let demand = |of: &Runner| Demand { weight: of.weight, most: of.most.min(cap(of)) };
    let rates = divide(capacity, &runners.iter().map(demand).collect::<Vec<_>>());
    let largest = runners.iter().map(|runner| runner.weight).fold(0.0, f64::max);
    let pace = |(runner, rate): (&Runner, f64)| {
        let rate = if runner.weight < largest { rate } else { runner.most.min(cap(runner)) };
        rate / runner.most
    };
    runners.iter().zip(rates).map(pace).collect()
}
