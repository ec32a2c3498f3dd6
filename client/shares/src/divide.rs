//! The parts of a busy processor that CPU shares amount to.

/// The demand that a process has of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// How much it gets beside others, above 0.
    pub weight: f64,
    /// The most that it can use or may have, at least 0.
    pub most: f64,
}

/// The part of a processor with this capacity that each process gets: in proportion to the weights. The parts that
/// processes don't take go to the others (weighted max-min fairness, as a processor is shared by the scheduler of an
/// operating system).
///
/// ```
/// use sojourn_shares::{Demand, divide};
///
/// let all = |weight, most| Demand { weight, most };
/// assert_eq!(divide(1.0, &[all(1.0, 1.0), all(3.0, 1.0)]), [0.25, 0.75]);
/// // The first has a cap of a quarter; the rest goes to the others.
/// assert_eq!(divide(1.0, &[all(1.0, 0.25), all(1.0, 1.0), all(1.0, 1.0)]), [0.25, 0.375, 0.375]);
/// ```
#[must_use]
pub fn divide(capacity: f64, demands: &[Demand]) -> Vec<f64> {
    // Who takes least for their weight is served first: what they leave is known before the others divide it.
    let mut order: Vec<(usize, &Demand)> = demands.iter().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| (a.most / a.weight).total_cmp(&(b.most / b.weight)));
    let mut weights: f64 = demands.iter().map(|demand| demand.weight).sum();
    let mut left = capacity;
    let mut rates = vec![0.0; demands.len()];
    for (n, demand) in order {
        let rate = demand.most.min(left * demand.weight / weights).clamp(0.0, left.max(0.0));
        left -= rate;
        weights -= demand.weight;
        if let Some(of) = rates.get_mut(n) {
            *of = rate;
        }
    }
    rates
}
