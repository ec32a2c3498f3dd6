//! A place of a pool: which machines in it gain most, one after the other, at given prices of work and slots.

use super::{Response, hull::Hull, steps_in};
use crate::spot::{number::float, setting::Setting};
use sojourn_fleet::cloud::Pool;
use sojourn_protocol::{
    quantity::to_u64,
    time::{Millis, UnixMillis},
};

/// A pool.
#[derive(Debug)]
pub(super) struct LanePool {
    /// Dollars of a machine for a step, if it is bought at each step; infinite where there is none.
    pub(super) prices: Vec<f64>,
    /// Exaflops of one slot in a step.
    pub(super) speed: f64,
    /// Slots of a machine.
    pub(super) slots: f64,
    /// Steps that its boot takes.
    pub(super) boot: f64,
    pub(super) places: Vec<Place>,
}

/// One place.
#[derive(Debug)]
pub(super) struct Place {
    /// The steps by whose end it is cleared, rising; the last is the end of all.
    pub(super) ends: Vec<usize>,
}

/// The prices of work and slots.
#[derive(Debug, Clone)]
pub(super) struct Prices {
    /// Dollars of an exaflop.
    pub(super) work: f64,
    /// Dollars of a slot, by step.
    pub(super) rents: Vec<f64>,
    /// The sums of the rents before each step, and of all.
    sums: Vec<f64>,
}

impl Prices {
    pub(super) fn new(work: f64, rents: Vec<f64>) -> Self {
        let mut sum = 0.0;
        let sums = std::iter::once(0.0).chain(rents.iter().map(|rent| {
            sum += rent;
            sum
        }));
        let sums = sums.collect();
        Self { work, rents, sums }
    }

    fn before(&self, step: usize) -> f64 {
        self.sums.get(step).or(self.sums.last()).copied().unwrap_or(0.0)
    }
}

impl LanePool {
    /// A pool of the setting's world, over so many steps.
    pub(super) fn of(setting: &Setting, pool: &Pool, steps: usize) -> Option<Self> {
        let world = &setting.world;
        let of = setting.type_of(&pool.instance_type)?;
        let (from, step) = (world.from(), world.step());
        let hours = float(step.0) / 3_600_000.0;
        let price = |n: usize| {
            let at = from + Millis(to_u64(n).saturating_mul(step.0));
            let micros = world.price(pool, at)?.min(world.on_demand(pool)?);
            // None is sold: none is bought.
            let has_some = world.capacity(pool, at) > 0;
            Some(if has_some { float(micros.0) / 1e6 * hours } else { f64::INFINITY })
        };
        let until = from + Millis(to_u64(steps).saturating_mul(step.0));
        let place = |place: u32| {
            let (mut ends, mut at) = (Vec::new(), from);
            while at < until {
                let taken = world.fate(pool, place, at).taken_at.unwrap_or(UnixMillis(u64::MAX));
                // A machine is kept to the end of the step in which it is taken back.
                let end = (steps_in(taken.min(until), from, step) + 1).min(steps);
                if ends.last() != Some(&end) {
                    ends.push(end);
                }
                at = taken;
            }
            Place { ends }
        };
        Some(Self {
            prices: (0..steps).map(|n| price(n).unwrap_or(f64::INFINITY)).collect(),
            speed: of.tflops / 1e6 * hours * 3600.0,
            slots: f64::from(of.gpus),
            boot: float(setting.file.machines.boot.0.0) / 1000.0 / float(step.0),
            places: (0..setting.file.market.capacity.machines).map(place).collect(),
        })
    }

    pub(super) fn price(&self, step: usize) -> Option<f64> {
        self.prices.get(step).copied().filter(|price| price.is_finite())
    }

    /// The dollars of an exaflop in this pool, at each step at which it sells machines.
    pub(super) fn costs(&self) -> impl Iterator<Item = f64> {
        let prices = self.prices.iter().filter(|price| price.is_finite());
        prices.map(|price| price / self.speed / self.slots)
    }

    /// Does any machine of it gain anything where work is worth this?
    pub(super) fn can_gain(&self, work: f64) -> bool {
        self.costs().fold(f64::INFINITY, f64::min) < work
    }
}

impl Place {
    /// The machines that gain most, by dynamic programming from the end: at each step none is bought, or one that is kept
    /// to a later step. What it gains until step `e` is linear in `e` but for what comes after, so the best `e` is a point
    /// of an upper hull.
    pub(super) fn best(&self, pool: &LanePool, prices: &Prices) -> Response {
        let steps = pool.prices.len();
        let worth = prices.work * pool.speed * pool.slots;
        let mut from = vec![0.0_f64; steps + 1];
        let mut keeps = vec![0_usize; steps];
        let mut hull = Hull::default();
        let position = |step: usize| float(to_u64(step));
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        for (begin, end) in begins.zip(&self.ends).collect::<Vec<_>>().into_iter().rev() {
            hull.clear();
            let rented = |step: usize| pool.slots * prices.before(step);
            let after = |from: &[f64], step: usize| from.get(step).copied().unwrap_or(0.0);
            hull.push((position(*end), after(&from, *end) - rented(*end)));
            for step in (begin..*end).rev() {
                let mut best = after(&from, step + 1);
                if let Some(price) = pool.price(step) {
                    let slope = worth - price;
                    if let Some((to, rest)) = hull.highest(slope) {
                        let gain =
                            slope * (to - position(step)) + rest + rented(step) - worth * pool.boot;
                        if gain > best {
                            best = gain;
                            if let Some(keeps) = keeps.get_mut(step) {
                                *keeps = sojourn_protocol::quantity::to_usize(
                                    crate::spot::number::whole(to),
                                );
                            }
                        }
                    }
                }
                if let Some(of) = from.get_mut(step) {
                    *of = best;
                }
                hull.push((position(step), best - rented(step)));
            }
        }
        let mut response = Response::nothing(steps);
        response.gain = from.first().copied().unwrap_or(0.0);
        let mut step = 0;
        while step < steps {
            match keeps.get(step).copied().unwrap_or(0) {
                0 => step += 1,
                end => {
                    let life = position(end - step);
                    response.work += pool.speed * pool.slots * (life - pool.boot);
                    let slots = response.slots.iter_mut().skip(step).take(end - step);
                    slots.for_each(|slots| *slots += pool.slots);
                    step = end;
                }
            }
        }
        response
    }
}
