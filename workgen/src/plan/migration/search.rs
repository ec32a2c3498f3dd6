//! A search around shares that were found: simulated annealing (Kirkpatrick, Gelatt and Vecchi, "Optimization by
//! simulated annealing", Science 220, 1983), each change measured by working all shares off.

use super::{
    change,
    instance::Instance,
    share::Share,
    simulation::{Outcome, Patience, Simulation},
};
use crate::plan::WHOLE;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use sojourn_protocol::quantity::mul_div;

/// The most changes for one iteration. To work shares off is about as much work as so many hops for each trial and
/// each machine.
const CHANGES: u64 = 24;
const HOPS: u64 = 2;
/// The temperature at first and at last: such parts of what is aimed at.
const HOT: u64 = 400;
const COLD: u64 = 5_000;
/// The last end counts this many times, the ends of all that are late once.
const END: u64 = 4;
/// A move costs such a part of what is aimed at.
const MOVE: u64 = 1_024;

/// Shares of all trials, and how patient machines are.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) shares: Vec<Share>,
    pub(super) patience: Patience,
    /// When the last trial is done and sent.
    pub(super) ends: u64,
}

impl Found {
    /// Takes other shares where they end earlier; says whether they do.
    pub(super) fn improve(
        &mut self,
        shares: Vec<Share>,
        simulation: &mut Simulation<'_, '_>,
        aim: u64,
    ) -> bool {
        let before = self.ends;
        for patience in Patience::ALL {
            if let Some(outcome) =
                simulation.outcome(&shares, patience, aim, self.ends.saturating_sub(1))
            {
                (self.ends, self.patience) = (outcome.ends, patience);
            }
        }
        if self.ends < before {
            self.shares = shares;
        }
        self.ends < before
    }
}

/// The search.
pub(super) struct Search<'a, 'b> {
    instance: &'b Instance<'a>,
    simulation: Simulation<'a, 'b>,
    aim: u64,
    rng: ChaCha8Rng,
    /// For one iteration.
    changes: u64,
    shares: Vec<Share>,
    cost: u64,
    /// The trial that ends last.
    last: usize,
    best: Found,
    best_cost: u64,
    /// The candidate; it is kept so that its memory is used again.
    tried: Vec<Share>,
}

impl<'a, 'b> Search<'a, 'b> {
    /// Around what was found, towards an end at `aim`.
    pub(super) fn new(
        instance: &'b Instance<'a>,
        mut simulation: Simulation<'a, 'b>,
        aim: u64,
        rng: ChaCha8Rng,
        best: Found,
    ) -> Self {
        let outcome = simulation.outcome(&best.shares, best.patience, aim, u64::MAX);
        let (cost, last) = outcome.map_or((u64::MAX, 0), |of| (cost(&of, aim), of.last));
        let (shares, tried) = (best.shares.clone(), Vec::new());
        let hops: u64 = instance.hops.iter().sum();
        let busy = instance.hops.iter().filter(|hops| **hops > 0).count();
        let one = HOPS * (busy + instance.problem.machines.len()) as u64;
        let changes = (hops / one.max(1)).clamp(1, CHANGES);
        Self {
            instance,
            simulation,
            aim,
            rng,
            changes,
            shares,
            cost,
            last,
            best,
            best_cost: cost,
            tried,
        }
    }

    /// When the best ends.
    pub(super) fn ends(&self) -> u64 {
        self.best.ends
    }

    /// The best found, and what it was measured on.
    pub(super) fn best(self) -> (Found, Simulation<'a, 'b>) {
        (self.best, self.simulation)
    }

    /// One iteration, when so much of the budget is spent.
    pub(super) fn iterate(&mut self, spent: u32) {
        let left = u64::from(WHOLE - spent);
        let cooled = mul_div(mul_div(self.aim / HOT, left, WHOLE.into()), left, WHOLE.into());
        let heat = (self.aim / COLD + cooled) * END;
        for _ in 0..self.changes {
            if self.ends() <= self.aim {
                break;
            }
            self.step(heat);
        }
    }

    fn step(&mut self, heat: u64) {
        self.tried.clone_from(&self.shares);
        let rng = &mut self.rng;
        if !change::change(self.instance, &mut self.tried, self.last, rng) {
            return;
        }
        let most = self.cost.saturating_add(mul_div(heat, exponential(rng), 1 << 8));
        let limit = self.aim.saturating_add(most / END);
        let tried = self.simulation.outcome(&self.tried, self.best.patience, self.aim, limit);
        let Some((outcome, cost)) = tried.map(|of| (of, cost(&of, self.aim))) else { return };
        if cost > most {
            return;
        }
        if cost < self.best_cost && outcome.ends <= self.best.ends {
            self.best_cost = cost;
            self.best.ends = outcome.ends;
            self.best.shares.clone_from(&self.tried);
        }
        (self.cost, self.last) = (cost, outcome.last);
        std::mem::swap(&mut self.shares, &mut self.tried);
    }
}

/// The objective to minimise. It counts all late trials, so that it falls even if several trials end last.
fn cost(outcome: &Outcome, aim: u64) -> u64 {
    let over = outcome.ends.saturating_sub(aim);
    over * END + outcome.late + outcome.moves * (aim / MOVE)
}

/// About an exponential variate of mean one, times 256: as far as the logarithm is straight between powers of two.
fn exponential(rng: &mut ChaCha8Rng) -> u64 {
    const LN_2: u64 = 177;
    let random = rng.next_u32() | 1;
    let zeros = random.leading_zeros();
    let part = (random << zeros << 1) >> 24;
    (u64::from(zeros + 1) * 256 - u64::from(part)) * LN_2 / 256
}
