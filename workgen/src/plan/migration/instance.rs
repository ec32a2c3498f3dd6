//! A problem with what each trial has left worked out: hops in a row, of which machines take shares.

use super::share::Share;
use crate::plan::{
    Machine, Problem,
    problem::{PACE_ONE, PlanTrial},
};
use sojourn_protocol::quantity::{SaturatingFrom as _, mul_div, mul_div_ceil};
use std::cmp::Reverse;

pub(super) struct Instance<'a> {
    pub(super) problem: &'a Problem,
    /// By trial: hops left.
    pub(super) hops: Vec<u64>,
    /// By trial: the open shards of its epoch, in their order.
    open: Vec<Vec<u32>>,
    /// By trial: microseconds of all that it has left, at pace one.
    work: Vec<u64>,
    /// By machine: its pace, on the mean of all trials.
    paces: Vec<u64>,
    /// By trial, then machine: microseconds of a hop, on the mean of all that the trial has left.
    hop_takes: Vec<u64>,
}

impl<'a> Instance<'a> {
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
        let paces = (0..problem.machines.len()).map(|machine| {
            let sum: u64 = problem.trials.iter().map(|trial| pace(trial, machine)).sum();
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
            (0..problem.machines.len())
                .map(move |machine| mul_div_ceil(hop, pace(trial, machine), PACE_ONE))
        });
        let hop_takes = hop_takes.collect();
        Self { problem, hops, open: open.collect(), work, paces: paces.collect(), hop_takes }
    }

    /// About the microseconds of a hop: as if all of a trial took equally long.
    pub(super) fn hop_takes(&self, trial: usize, machine: usize) -> u64 {
        self.hop_takes[trial * self.problem.machines.len() + machine]
    }

    /// Microseconds of all that a trial has left, at pace one.
    pub(super) fn work(&self, trial: usize) -> u64 {
        self.work[trial]
    }

    /// Work that a machine does in so many microseconds.
    pub(super) fn work_of(&self, micros: u64, machine: usize) -> u64 {
        mul_div(micros, PACE_ONE, self.paces[machine])
    }

    /// Microseconds that a machine needs for some work.
    pub(super) fn work_takes(&self, work: u64, machine: usize) -> u64 {
        mul_div_ceil(work, self.paces[machine], PACE_ONE)
    }

    /// Microseconds of all that a trial has left at a machine.
    pub(super) fn time(&self, trial: usize, machine: usize) -> u64 {
        mul_div_ceil(self.work[trial], pace(&self.problem.trials[trial], machine), PACE_ONE)
    }

    /// Do the paces of two machines differ by less than such a part?
    pub(super) fn is_as_fast(&self, a: usize, b: usize, part: u64) -> bool {
        self.paces[a].abs_diff(self.paces[b]) <= self.paces[a] / part
    }

    /// The fastest machine, on the mean of all trials.
    pub(super) fn fastest(&self) -> usize {
        (0..self.paces.len()).min_by_key(|machine| self.paces[*machine]).unwrap_or(0)
    }

    /// Microseconds from now until a trial can begin at a machine.
    pub(super) fn arrives(&self, trial: usize, machine: usize) -> u64 {
        let known = &self.problem.trials[trial];
        match known.at {
            Some(at) if at as usize != machine => known.free_at + known.fetch,
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
        mul_div(self.work[trial], hops - hop.min(hops), hops)
    }

    /// Whole trials, in this order, each to the machine where it ends earliest; machines are free from these times.
    pub(super) fn finish_earliest(
        &self,
        trials: &[usize],
        free: &mut [u64],
        shares: &mut Vec<Share>,
    ) {
        for &trial in trials {
            let mut best = (u64::MAX, 0);
            for (machine, free) in free.iter().enumerate() {
                let from = (*free).max(self.arrives(trial, machine));
                best = best.min((from + self.time(trial, machine), machine));
            }
            let (ends, machine) = best;
            free[machine] = ends;
            let urgency = self.work[trial];
            shares.push(Share { trial, machine, first: 0, end: self.hops[trial], urgency });
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
                let epoch = u32::saturating_from(after / shards + 1);
                (epoch, u32::saturating_from(after % shards))
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
            let ends = |(machine, known): (usize, &Machine)| {
                known.free_at.max(self.arrives(trial, machine)) + self.time(trial, machine)
            };
            let soonest = self.problem.machines.iter().enumerate().map(ends).min();
            soonest.unwrap_or(0) + self.between(trial) + self.problem.trials[trial].send
        });
        alone.max().unwrap_or(0).max(self.problem.lower_bound() + send.unwrap_or(0))
    }
}

fn pace(trial: &PlanTrial, machine: usize) -> u64 {
    trial.pace.get(machine).copied().unwrap_or(PACE_ONE)
}
