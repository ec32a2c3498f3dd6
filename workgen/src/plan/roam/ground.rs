//! A problem with what each trial has left worked out: hops in a row, of which places take shares.

use super::share::Share;
use crate::plan::{
    Machine, Problem,
    problem::{PACE_ONE, PlanTrial},
};
use std::cmp::Reverse;

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
    /// By trial, then place: microseconds of a hop, on the mean of all that the trial has left.
    hop_takes: Vec<u64>,
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
        let (hops, work): (Vec<u64>, Vec<u64>) = (hops.collect(), work.collect());
        let hop_takes = problem.trials.iter().enumerate().flat_map(|(number, trial)| {
            let hop = work[number] / hops[number].max(1);
            (0..problem.places.len()).map(move |place| scaled(hop, pace(trial, place)))
        });
        let hop_takes = hop_takes.collect();
        Self { problem, hops, open: open.collect(), work, paces: paces.collect(), hop_takes }
    }

    /// About the microseconds of a hop: as if all of a trial took equally long.
    pub(super) fn hop_takes(&self, trial: usize, place: usize) -> u64 {
        self.hop_takes[trial * self.problem.places.len() + place]
    }

    /// Microseconds of all that a trial has left, at pace one.
    pub(super) fn work(&self, trial: usize) -> u64 {
        self.work[trial]
    }

    /// Work that a place does in so many microseconds.
    pub(super) fn work_of(&self, micros: u64, place: usize) -> u64 {
        by(micros, PACE_ONE, self.paces[place])
    }

    /// Microseconds that a place needs for some work.
    pub(super) fn work_takes(&self, work: u64, place: usize) -> u64 {
        scaled(work, self.paces[place])
    }

    /// Microseconds of all that a trial has left at a place.
    pub(super) fn time(&self, trial: usize, place: usize) -> u64 {
        scaled(self.work[trial], pace(&self.problem.trials[trial], place))
    }

    /// Do the paces of two places differ by less than such a part?
    pub(super) fn is_as_fast(&self, a: usize, b: usize, part: u64) -> bool {
        self.paces[a].abs_diff(self.paces[b]) <= self.paces[a] / part
    }

    /// The fastest place, on the mean of all trials.
    pub(super) fn fastest(&self) -> usize {
        (0..self.paces.len()).min_by_key(|place| self.paces[*place]).unwrap_or(0)
    }

    /// Microseconds from now until a trial can begin at a place.
    pub(super) fn arrives(&self, trial: usize, place: usize) -> u64 {
        let known = &self.problem.trials[trial];
        match known.at {
            Some(at) if at as usize != place => known.free_at + known.fetch,
            Some(_) | None => known.begins_at(),
        }
    }

    /// Microseconds between a trial's epochs, all together.
    pub(super) fn between(&self, trial: usize) -> u64 {
        let known = &self.problem.trials[trial];
        let epochs = u64::from(known.epochs_after) + u64::from(!known.open.is_empty());
        known.stay * epochs.saturating_sub(1)
    }

    /// Trials, the most weighted work first.
    pub(super) fn by_work(&self, weights: &[u64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.work.len()).filter(|n| self.hops[*n] > 0).collect();
        order.sort_by_key(|&trial| (Reverse(self.work[trial] * weights[trial]), trial));
        order
    }

    /// Microseconds of what a trial has left from a hop on, at pace one.
    pub(super) fn work_from(&self, trial: usize, hop: u64) -> u64 {
        let hops = self.hops[trial].max(1);
        by(self.work[trial], hops - hop.min(hops), hops)
    }

    /// Whole trials, in this order, each to the place where it ends earliest; places are free from these times.
    pub(super) fn finish_earliest(
        &self,
        trials: &[usize],
        free: &mut [u64],
        shares: &mut Vec<Share>,
    ) {
        for &trial in trials {
            let mut best = (u64::MAX, 0);
            for (place, free) in free.iter().enumerate() {
                let from = (*free).max(self.arrives(trial, place));
                best = best.min((from + self.time(trial, place), place));
            }
            let (ends, place) = best;
            free[place] = ends;
            let urgency = self.work[trial];
            shares.push(Share { trial, place, first: 0, end: self.hops[trial], urgency });
        }
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

    /// No plan ends, its last checkpoint sent, before this.
    pub(super) fn aim(&self) -> u64 {
        let busy = (0..self.hops.len()).filter(|trial| self.hops[*trial] > 0);
        let send = busy.clone().map(|trial| self.problem.trials[trial].send).min();
        let alone = busy.map(|trial| {
            let ends = |(place, known): (usize, &Machine)| {
                known.free_at.max(self.arrives(trial, place)) + self.time(trial, place)
            };
            let soonest = self.problem.places.iter().enumerate().map(ends).min();
            soonest.unwrap_or(0) + self.between(trial) + self.problem.trials[trial].send
        });
        alone.max().unwrap_or(0).max(self.problem.lower_bound() + send.unwrap_or(0))
    }
}

fn pace(trial: &PlanTrial, place: usize) -> u64 {
    trial.pace.get(place).copied().unwrap_or(PACE_ONE)
}

fn scaled(work: u64, pace: u64) -> u64 {
    match work.checked_mul(pace) {
        Some(micros) => micros.div_ceil(PACE_ONE),
        None => by(work, pace, PACE_ONE) + 1,
    }
}

/// `value * times / over`; in 64 bits where they do.
pub(super) fn by(value: u64, times: u64, over: u64) -> u64 {
    match value.checked_mul(times) {
        Some(product) => product / over,
        None => {
            let wide = u128::from(value) * u128::from(times) / u128::from(over);
            u64::try_from(wide).unwrap_or(u64::MAX - 1)
        }
    }
}
