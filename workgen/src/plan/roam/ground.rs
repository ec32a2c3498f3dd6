//! A problem with what each trial has left worked out: hops in a row, of which places take shares.

use crate::plan::{
    Problem,
    problem::{PACE_ONE, PlanTrial, id},
};
use std::cmp::Reverse;

/// Hops of a trial in a row that are for one place. Hops are counted over all that the trial has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) trial: usize,
    /// The first of them, and the one behind the last.
    pub(super) first: u64,
    pub(super) end: u64,
    /// When it should begin.
    pub(super) from: u64,
}

pub(super) struct Ground<'a> {
    pub(super) problem: &'a Problem,
    /// By trial: hops left.
    pub(super) hops: Vec<u64>,
    /// By trial: the open shards of its epoch, in their order.
    open: Vec<Vec<u32>>,
    /// By trial: microseconds of all that it has left, at pace one.
    work: Vec<u64>,
    /// By place: its pace, on the mean of all trials.
    paces: Vec<u64>,
}

impl<'a> Ground<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let shards = problem.holders.len() as u64;
        let hops = problem
            .trials
            .iter()
            .map(|trial| trial.open.len() as u64 + u64::from(trial.epochs_after) * shards);
        let work = problem.trials.iter().map(|trial| {
            let whole: u64 = trial.work.iter().sum();
            let open: u64 = trial.open.iter().map(|shard| trial.work[*shard as usize]).sum();
            open + whole * u64::from(trial.epochs_after)
        });
        let count = problem.trials.len().max(1) as u64;
        let paces = (0..problem.places.len()).map(|place| {
            let sum: u64 = problem.trials.iter().map(|trial| pace(trial, place)).sum();
            (sum / count).max(1)
        });
        let open = problem.trials.iter().map(|trial| {
            let mut open = trial.open.clone();
            open.sort_unstable();
            open
        });
        Self {
            problem,
            hops: hops.collect(),
            open: open.collect(),
            work: work.collect(),
            paces: paces.collect(),
        }
    }

    /// Microseconds of all that a trial has left, at pace one.
    pub(super) fn work(&self, trial: usize) -> u64 {
        self.work[trial]
    }

    /// Work that a place does in so many microseconds.
    pub(super) fn work_of(&self, micros: u64, place: usize) -> u64 {
        if let Some(scaled) = micros.checked_mul(PACE_ONE) {
            return scaled / self.paces[place];
        }
        let work = u128::from(micros) * u128::from(PACE_ONE) / u128::from(self.paces[place]);
        u64::try_from(work).unwrap_or(u64::MAX)
    }

    /// Microseconds that a place needs for some work.
    pub(super) fn work_takes(&self, work: u64, place: usize) -> u64 {
        scaled(work, self.paces[place])
    }

    /// Microseconds of all that a trial has left at a place.
    pub(super) fn time(&self, trial: usize, place: usize) -> u64 {
        scaled(self.work[trial], pace(&self.problem.trials[trial], place))
    }

    /// Microseconds from now until a trial can begin at a place.
    pub(super) fn arrives(&self, trial: usize, place: usize) -> u64 {
        let known = &self.problem.trials[trial];
        let moves = match known.at {
            Some(at) if at as usize != place => known.fetch,
            Some(_) | None => 0,
        };
        known.free_at + moves
    }

    /// Microseconds between a trial's epochs, all together.
    pub(super) fn between(&self, trial: usize) -> u64 {
        let known = &self.problem.trials[trial];
        let epochs = u64::from(known.epochs_after) + u64::from(!known.open.is_empty());
        known.send * epochs.saturating_sub(1)
    }

    /// Trials, the most weighted work first.
    pub(super) fn by_work(&self, weights: &[u64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.work.len()).filter(|n| self.hops[*n] > 0).collect();
        order.sort_by_key(|&trial| (Reverse(self.work[trial] * weights[trial]), trial));
        order
    }

    /// All of a trial.
    pub(super) fn whole(&self, trial: usize, from: u64) -> Share {
        Share { trial, first: 0, end: self.hops[trial], from }
    }

    /// By place: whole trials, each where it ends earliest.
    pub(super) fn by_earliest_finish(&self, weights: &[u64]) -> Vec<Vec<Share>> {
        let mut free: Vec<u64> = self.problem.places.iter().map(|place| place.free_at).collect();
        let mut places = vec![Vec::new(); free.len()];
        for trial in self.by_work(weights) {
            let mut best = (u64::MAX, 0, 0);
            for (place, free) in free.iter().enumerate() {
                let from = (*free).max(self.arrives(trial, place));
                best = best.min((from + self.time(trial, place), place, from));
            }
            let (ends, place, from) = best;
            free[place] = ends;
            places[place].push(self.whole(trial, from));
        }
        places
    }

    /// The epoch, from 0 for the current one, and the shard of a trial's hop.
    pub(super) fn hop(&self, trial: usize, hop: u64) -> (u32, u32) {
        let open = &self.open[trial];
        match usize::try_from(hop).ok().and_then(|hop| open.get(hop)) {
            Some(shard) => (0, *shard),
            None => {
                let shards = self.problem.holders.len().max(1) as u64;
                let after = hop - open.len() as u64;
                let epoch = u32::try_from(after / shards).unwrap_or(u32::MAX - 1) + 1;
                (epoch, u32::try_from(after % shards).unwrap_or(u32::MAX))
            }
        }
    }

    /// The first hop of the epoch after that of a hop.
    pub(super) fn next_epoch(&self, trial: usize, hop: u64) -> u64 {
        let open = self.problem.trials[trial].open.len() as u64;
        if hop < open {
            return open;
        }
        let shards = self.problem.holders.len().max(1) as u64;
        open + ((hop - open) / shards + 1) * shards
    }

    /// Microseconds of some hops of a trial at a place; whole microseconds for each, as steps have it.
    pub(super) fn takes(&self, trial: usize, hops: std::ops::Range<u64>, place: usize) -> u64 {
        hops.map(|hop| self.problem.time(id(trial), self.hop(trial, hop).1, id(place))).sum()
    }

    /// About the same, worked out at once: as if all hops of a trial took equally long.
    pub(super) fn takes_about(
        &self,
        trial: usize,
        hops: std::ops::Range<u64>,
        place: usize,
    ) -> u64 {
        let part = u128::from(self.work[trial]) * u128::from(hops.end - hops.start)
            / u128::from(self.hops[trial].max(1));
        scaled(u64::try_from(part).unwrap_or(u64::MAX), pace(&self.problem.trials[trial], place))
    }
}

fn pace(trial: &PlanTrial, place: usize) -> u64 {
    trial.pace.get(place).copied().unwrap_or(PACE_ONE)
}

fn scaled(work: u64, pace: u64) -> u64 {
    let micros = (u128::from(work) * u128::from(pace)).div_ceil(u128::from(PACE_ONE));
    u64::try_from(micros).unwrap_or(u64::MAX)
}
