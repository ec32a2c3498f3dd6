//! The clairvoyant's cost, from below: nobody pays less who buys in the same world and is done by the same time.
//!
//! The clairvoyant knows all prices and all interruptions. It may buy in any place of any pool, at the price of that step, and
//! keep the machine until the place is cleared at the latest; one machine at a time stands in a place. So it sees each
//! machine's end before it buys it. From each machine's life the shortest boot is lost, and nothing else: no transfers, no work
//! that is trained twice, no slot without a trial. At no time more slots work than there are trials, for in hop order no
//! trial is in two slots at once. All work has to be done in time; when, and which slot does how much of it, is free.
//!
//! The least cost of that is bounded by its Lagrangian dual (Boyd and Vandenberghe, 2004, section 5.1.3): work has a price `m`,
//! and at each step a slot has a rent `v`. Then each place is a problem of its own, which [`Place::best`] solves exactly.
//! For any `m` and `v` that aren't negative,
//!
//! ```text
//!   least cost  >=  m * work  -  trials * sum of v  -  sum over places of the most that one gains:
//!                                                     m * its work - its cost - its rents
//! ```
//!
//! Good prices are found by a search and by steps along subgradients; how good they are decides how near the bound comes, and
//! never whether it holds.

mod hull;
mod place;

use super::{
    number::{float, whole},
    setting::Setting,
};
use place::{LanePool, Prices};
use rayon::prelude::*;
use sojourn_protocol::{
    quantity::{to_u64, to_usize},
    time::{Millis, UnixMillis},
};

/// Rounds of the search for the price of work, and steps along subgradients after it.
const SEARCH: u32 = 24;
const STEPS: u32 = 120;

/// The places' gain at some prices, and the work and slots with which they reach it.
#[derive(Debug, Clone)]
pub(super) struct Response {
    gain: f64,
    work: f64,
    /// Slots that work, by step.
    slots: Vec<f64>,
}

impl Response {
    fn nothing(steps: usize) -> Self {
        Self { gain: 0.0, work: 0.0, slots: vec![0.0; steps] }
    }

    fn add(mut self, other: &Response) -> Self {
        self.gain += other.gain;
        self.work += other.work;
        self.slots.iter_mut().zip(&other.slots).for_each(|(sum, of)| *sum += of);
        self
    }
}

/// The problem.
struct Problem {
    pools: Vec<LanePool>,
    steps: usize,
    /// Exaflops to be done.
    work: f64,
    /// Slots that may work at a time.
    slots: f64,
}

/// The least that the job's work can cost, in dollars, done in so much time.
pub(super) fn bound(setting: &Setting, within: Millis) -> f64 {
    let step = setting.world.step();
    let steps = to_usize(within.0.div_ceil(step.0));
    let pools = setting.world.pools();
    let pools = pools.filter_map(|pool| LanePool::of(setting, pool, steps)).collect();
    let (work, slots) = (setting.work() / 1e18, setting.trials_float());
    Problem { pools, steps, work, slots }.bound()
}

impl Problem {
    /// The best bound that is found.
    fn bound(&self) -> f64 {
        // Work is worth no more than what the dearest machine asks for it.
        let dearest = self.pools.iter().flat_map(LanePool::costs).fold(0.0, f64::max);
        let (mut least, mut most) = (0.0, dearest);
        let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
        let try_price = |m: f64| {
            let prices = Prices::new(m, self.rents(m));
            let response = self.response(&prices);
            (self.dual(&prices, &response), prices)
        };
        let mut best = (0.0, Prices::new(0.0, vec![0.0; self.steps]));
        let (mut low, mut high) = (most - golden * (most - least), least + golden * (most - least));
        let (mut at_low, mut at_high) = (try_price(low), try_price(high));
        for _ in 0..SEARCH {
            if at_low.0 > at_high.0 {
                (most, high, at_high) = (high, low, at_low.clone());
                low = most - golden * (most - least);
                at_low = try_price(low);
            } else {
                (least, low, at_low) = (low, high, at_high.clone());
                high = least + golden * (most - least);
                at_high = try_price(high);
            }
        }
        for of in [at_low, at_high] {
            if of.0 > best.0 {
                best = of;
            }
        }
        self.climb(best)
    }

    /// Steps along subgradients, each as long as would close a part of the gap to a bound that is a little higher (Polyak,
    /// 1969).
    fn climb(&self, from: (f64, Prices)) -> f64 {
        let (mut best, mut prices) = from;
        let mut aim = 0.05;
        let mut since = 0;
        for _ in 0..STEPS {
            let response = self.response(&prices);
            let dual = self.dual(&prices, &response);
            since += 1;
            if dual > best {
                (best, since) = (dual, 0);
            }
            if since >= 8 {
                (aim, since) = (aim / 2.0, 0);
            }
            let missing = self.work - response.work;
            let over: Vec<f64> = response.slots.iter().map(|slots| slots - self.slots).collect();
            // The price of work counts in its own unit: as much as all rents together.
            let unit = float(to_u64(self.steps)).sqrt() * self.slots / self.work;
            let norm =
                over.iter().map(|over| over * over).sum::<f64>() + missing * missing * unit * unit;
            let step = (best * (1.0 + aim) - dual) / norm.max(f64::MIN_POSITIVE);
            let m = (prices.work + step * missing * unit * unit).max(0.0);
            let rents = prices.rents.iter().zip(&over);
            let rents = rents.map(|(rent, over)| (rent + step * over).max(0.0)).collect();
            prices = Prices::new(m, rents);
        }
        best
    }

    fn dual(&self, prices: &Prices, response: &Response) -> f64 {
        let rents: f64 = prices.rents.iter().sum();
        prices.work * self.work - self.slots * rents - response.gain
    }

    /// The response of all places to these prices.
    fn response(&self, prices: &Prices) -> Response {
        let pools = self.pools.par_iter().filter(|pool| pool.can_gain(prices.work));
        let of_pool = pools.map(|pool| {
            let places = pool.places.iter().map(|place| place.best(pool, prices));
            places.fold(Response::nothing(self.steps), |sum, of| sum.add(&of))
        });
        // One after the other: sums of real numbers depend on the order.
        let all: Vec<Response> = of_pool.collect();
        all.iter().fold(Response::nothing(self.steps), Response::add)
    }

    /// Rents to begin with: what a slot gains at a step beside the dearest of those that are needed, were all machines
    /// bought at that step.
    fn rents(&self, m: f64) -> Vec<f64> {
        let needed = whole(self.slots);
        let rent = |step: usize| {
            let gains = self.pools.iter().filter_map(|pool| {
                let gain = m * pool.speed - pool.price(step)? / pool.slots;
                Some((gain, to_u64(pool.places.len()) * whole(pool.slots)))
            });
            let mut gains: Vec<(f64, u64)> = gains.filter(|(gain, _)| *gain > 0.0).collect();
            gains.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut taken = 0;
            for (gain, slots) in gains {
                taken += slots;
                if taken >= needed {
                    return gain;
                }
            }
            0.0
        };
        (0..self.steps).map(rent).collect()
    }
}

fn steps_in(at: UnixMillis, from: UnixMillis, step: Millis) -> usize {
    to_usize((at - from).0 / step.0)
}

#[cfg(test)]
mod tests {
    use super::{place::Place, *};

    fn pool(prices: &[f64], ends: &[&[usize]]) -> LanePool {
        let places = ends.iter().map(|ends| Place { ends: ends.to_vec() }).collect();
        LanePool { prices: prices.to_vec(), speed: 1.0, slots: 1.0, boot: 0.0, places }
    }

    fn bound_of(pools: Vec<LanePool>, work: f64, slots: f64) -> f64 {
        Problem { pools, steps: 4, work, slots }.bound()
    }

    #[test]
    fn the_bound_is_the_least_cost_of_small_problems() {
        let near = |bound: f64, cost: f64| {
            assert!(bound <= cost + 1e-9 && bound > cost * 0.98, "{bound} for {cost}");
        };
        // All four steps of the cheap pool.
        let two = || vec![pool(&[1.0; 4], &[&[4]]), pool(&[3.0; 4], &[&[4]])];
        near(bound_of(two(), 4.0, 1.0), 4.0);
        // One slot at a time: the dear one is of no use. Two: it does what is left.
        near(bound_of(two(), 6.0, 2.0), 4.0 + 2.0 * 3.0);
        // What is bought cheaply is kept, until the place is cleared.
        let kept = vec![pool(&[1.0, 5.0, 5.0, 5.0], &[&[2, 4]]), pool(&[4.0; 4], &[&[4]])];
        near(bound_of(kept, 4.0, 1.0), 1.0 + 1.0 + 4.0 + 4.0);
        // There is time to wait for the cheap steps.
        near(bound_of(vec![pool(&[9.0, 1.0, 9.0, 1.0], &[&[1, 2, 3, 4]])], 2.0, 1.0), 2.0);
    }
}
