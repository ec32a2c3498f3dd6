//! What nobody can do for less who buys in the same world and is done by the same time: a clairvoyant's cost, from below.
//!
//! The clairvoyant knows all prices and all interruptions. Whatever it buys is the work of lanes: as many slots at a time as
//! there are trials, for in hop order no trial is in two slots at once. A lane is a row of machines in time, each of some
//! pool, bought at some step at that step's price, and kept for some steps. From each machine's life the shortest boot is
//! lost, and nothing else: no transfers, no evaluation that waits, no work that is trained twice, no slot without a trial.
//! A machine ends before it is interrupted; the clairvoyant stands in whichever place of the pool is left alone for
//! longest, and all lanes may stand there at once, for capacity counts only as far as there is any. It may leave lanes
//! empty while machines are dear, as long as all work is done in time.
//!
//! All lanes together have to do the job's work at the least cost. The bound is the Lagrangian dual of that: for each price
//! `m` of work, the cheapest lane by dynamic programming over time, minimising cost less `m` times work; the best of these
//! bounds over `m` is taken. A dual is never above the least cost (Boyd and Vandenberghe, 2004, section 5.1.3).

use super::{number::float, setting::Setting};
use sojourn_fleet::cloud::Pool;
use sojourn_protocol::{
    quantity::to_usize,
    time::{Millis, UnixMillis},
};

/// Rounds of the search for the best price of work.
const ROUNDS: u32 = 40;

/// A pool as a lane sees it.
struct LanePool {
    /// Dollars of one slot for a step, at each step.
    prices: Vec<f64>,
    /// Exaflops of one slot in a step.
    speed: f64,
    /// Steps that a machine may be kept that is bought at each step.
    lives: Vec<usize>,
}

/// The least that the job's work can cost, in dollars, done in so much time.
pub(super) fn bound(setting: &Setting, within: Millis) -> f64 {
    let step = setting.world.step();
    let steps = to_usize(within.0.div_ceil(step.0));
    let pools: Vec<LanePool> =
        setting.world.pools().filter_map(|pool| lane_pool(setting, pool, steps)).collect();
    let boot = float(setting.file.machines.boot.0.0) / 1000.0 / float(step.0);
    let (work, lanes) = (setting.work() / 1e18, setting.trials_float());
    // Work is worth at most what the dearest machine asks for it.
    let dearest = pools.iter().flat_map(|pool| pool.prices.iter().map(|price| price / pool.speed));
    let (mut least, mut most) =
        (0.0, dearest.filter(|price| price.is_finite()).fold(0.0, f64::max) * 2.0);
    let dual = |m: f64| m.mul_add(work, lanes * cheapest_lane(&pools, steps, boot, m));
    // The dual is concave in the price: the golden section finds its highest point (Kiefer, 1953).
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (most - golden * (most - least), least + golden * (most - least));
    let (mut at_low, mut at_high) = (dual(low), dual(high));
    for _ in 0..ROUNDS {
        if at_low > at_high {
            (most, high, at_high) = (high, low, at_low);
            low = most - golden * (most - least);
            at_low = dual(low);
        } else {
            (least, low, at_low) = (low, high, at_high);
            high = least + golden * (most - least);
            at_high = dual(high);
        }
    }
    at_low.max(at_high).max(0.0)
}

/// Cost less `m` times work of the lane for which that is least.
fn cheapest_lane(pools: &[LanePool], steps: usize, boot: f64, m: f64) -> f64 {
    // From each step on to the end.
    let mut from = vec![0.0_f64; steps + 1];
    for step in (0..steps).rev() {
        let mut best = from.get(step + 1).copied().unwrap_or(0.0);
        for pool in pools {
            let price = pool.prices.get(step).copied().unwrap_or(f64::INFINITY);
            let gain = price - m * pool.speed;
            if gain >= 0.0 {
                continue;
            }
            let lost = m * pool.speed * boot;
            let life = pool.lives.get(step).copied().unwrap_or(0).min(steps - step);
            let ends = from.iter().skip(step + 1).take(life);
            let mut kept = lost;
            for end in ends {
                kept += gain;
                best = best.min(kept + end);
            }
        }
        if let Some(of) = from.get_mut(step) {
            *of = best;
        }
    }
    from.first().copied().unwrap_or(0.0)
}

fn lane_pool(setting: &Setting, pool: &Pool, steps: usize) -> Option<LanePool> {
    let world = &setting.world;
    let of = setting.type_of(&pool.instance_type)?;
    let (from, step) = (world.from(), world.step());
    let hours = float(step.0) / 3_600_000.0;
    let times = (0..).take(steps).map(|n: u64| from + Millis(n * step.0));
    let price = |at: UnixMillis| {
        let micros = world.price(pool, at)?.min(world.on_demand(pool)?);
        let dollars = float(micros.0) / 1e6 / f64::from(of.gpus) * hours;
        // None is sold: none is bought.
        Some(if world.capacity(pool, at) == 0 { f64::INFINITY } else { dollars })
    };
    let until = from + Millis(step.0.saturating_mul(sojourn_protocol::quantity::to_u64(steps)));
    let mut lives = vec![0_usize; steps];
    for place in 0..setting.file.market.capacity.machines {
        let mut at = from;
        while at < until {
            let taken = world.fate(pool, place, at).taken_at.unwrap_or(UnixMillis(u64::MAX));
            // In each step until then one may be bought that is kept until then.
            let (first, end) =
                (steps_in(at, from, step), steps_in(taken.min(until), from, step) + 1);
            for (n, life) in (first..end.min(steps)).zip(lives.iter_mut().skip(first)) {
                *life = (*life).max(end - n);
            }
            at = taken;
        }
    }
    Some(LanePool {
        prices: times.map(|at| price(at).unwrap_or(f64::INFINITY)).collect(),
        speed: of.tflops / 1e6 * hours * 3600.0,
        lives,
    })
}

fn steps_in(at: UnixMillis, from: UnixMillis, step: Millis) -> usize {
    to_usize((at - from).0 / step.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(prices: &[f64], lives: &[usize]) -> LanePool {
        LanePool { prices: prices.to_vec(), speed: 1.0, lives: lives.to_vec() }
    }

    #[test]
    fn a_lane_takes_the_cheap_steps_and_keeps_what_it_bought_cheaply() {
        // Work is worth 2. The second pool is cheap at the second step, and may be kept for two.
        let pools = [pool(&[1.0, 3.0, 3.0], &[1, 1, 1]), pool(&[9.0, 0.5, 9.0], &[3, 2, 1])];
        let least = cheapest_lane(&pools, 3, 0.0, 2.0);
        assert!((least - (-1.0 - 3.0)).abs() < 1e-9, "{least}");
        let booted = cheapest_lane(&pools, 3, 0.25, 2.0);
        assert!((booted - (least + 1.0)).abs() < 1e-9, "{booted}");
        assert!(cheapest_lane(&pools, 3, 0.0, 0.4).abs() < 1e-9, "nothing is worth it");
    }
}
