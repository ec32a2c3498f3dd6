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
    /// By machine: its pace, on the mean of all trials, as far as its line lets it.
    paces: Vec<u64>,
    /// By trial, then machine: microseconds of a hop, on the mean of all that the trial has left.
    hop_takes: Vec<u64>,
    /// By trial, then machine.
    transfers: Vec<Transfer>,
}

/// Microseconds of a trial's checkpoint over a machine's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    /// To the server.
    pub(super) send: u64,
    /// From the server.
    pub(super) fetch: u64,
    /// Between two that the machine sends, while others share the line.
    pub(super) interval: u64,
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
        let transfers = problem.trials.iter().flat_map(|trial| {
            let bytes = trial.checkpoint_bytes;
            problem.machines.iter().map(move |machine| Transfer {
                send: machine.line.send(bytes),
                fetch: machine.line.fetch(bytes),
                interval: machine.line.send_interval(bytes),
            })
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
        let (hop_takes, transfers) = (hop_takes.collect(), transfers.collect());
        let (open, paces) = (open.collect(), Vec::new());
        let mut instance = Self { problem, hops, open, work, paces, hop_takes, transfers };
        let count = problem.trials.len().max(1) as u64;
        let paces = (0..problem.machines.len()).map(|machine| {
            let paces = (0..problem.trials.len()).map(|trial| instance.pace(trial, machine));
            (paces.sum::<u64>() / count).max(1)
        });
        instance.paces = paces.collect();
        instance
    }

    /// A machine's pace with all that a trial has left: how fast it trains, or how fast its line takes the checkpoints.
    fn pace(&self, trial: usize, machine: usize) -> u64 {
        let train = pace(&self.problem.trials[trial], machine);
        let sends = self.epochs(trial) * self.transfer(trial, machine).interval;
        train.max(mul_div(sends, PACE_ONE, self.work[trial].max(1)))
    }

    /// Epochs of which a trial has something left.
    fn epochs(&self, trial: usize) -> u64 {
        let known = &self.problem.trials[trial];
        u64::from(known.epochs_after) + u64::from(!known.open.is_empty())
    }

    /// Microseconds of a trial's checkpoint over a machine's line.
    pub(super) fn transfer(&self, trial: usize, machine: usize) -> Transfer {
        self.transfers[trial * self.problem.machines.len() + machine]
    }

    /// About the microseconds of a share, trained or sent.
    pub(super) fn share_takes(&self, share: &Share) -> u64 {
        let hops = share.end - share.first;
        let sends = self.epochs_of(share.trial, share.first, share.end);
        let train = hops * self.hop_takes(share.trial, share.machine);
        train.max(sends * self.transfer(share.trial, share.machine).interval)
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
        mul_div_ceil(self.work[trial], self.pace(trial, machine), PACE_ONE)
    }

    /// Do the paces of two machines differ by less than such a part?
    pub(super) fn is_as_fast(&self, a: usize, b: usize, part: u64) -> bool {
        self.paces[a].abs_diff(self.paces[b]) <= self.paces[a] / part
    }

    /// Microseconds from now until a trial can begin at a machine.
    pub(super) fn arrives(&self, trial: usize, machine: usize) -> u64 {
        let known = &self.problem.trials[trial];
        match known.at {
            Some((at, _)) if at as usize != machine => {
                known.free_at + self.transfer(trial, machine).fetch
            }
            Some(_) | None => known.begins_at(),
        }
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

    /// Epochs in which a trial's hops from `first` to `end` are.
    pub(super) fn epochs_of(&self, trial: usize, first: u64, end: u64) -> u64 {
        let epoch = |hop| u64::from(self.hop(trial, hop).0);
        if end > first { epoch(end - 1) - epoch(first) + 1 } else { 0 }
    }

    /// The epoch of a trial's hop, counted from the trial's first.
    pub(super) fn epoch(&self, trial: usize, hop: u64) -> u32 {
        self.problem.trials[trial].epoch + self.hop(trial, hop).0
    }

    /// The epoch, from 0 for the current one, and the shard of a trial's hop.
    pub(super) fn hop(&self, trial: usize, hop: u64) -> (u32, u32) {
        let (epoch, shard) = self.hop_by_number(trial, hop);
        let at = usize::try_from(hop).ok();
        (epoch, at.and_then(|at| self.problem.trials[trial].ordered(at)).unwrap_or(shard))
    }

    /// The same, as if the shards of an epoch were visited by number.
    fn hop_by_number(&self, trial: usize, hop: u64) -> (u32, u32) {
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
        let machines = 0..self.problem.machines.len();
        let sends = busy.clone().flat_map(|trial| {
            machines.clone().map(move |machine| self.transfer(trial, machine).send)
        });
        let send = sends.min().unwrap_or(0);
        let alone = busy.clone().map(|trial| {
            let ends = |(machine, known): (usize, &Machine)| {
                let from = known.free_at.max(self.arrives(trial, machine));
                from + self.time(trial, machine) + self.transfer(trial, machine).send
            };
            self.problem.machines.iter().enumerate().map(ends).min().unwrap_or(0)
        });
        let alone = alone.max().unwrap_or(0);
        alone.max(self.problem.lower_bound() + send).max(self.all_sent(busy))
    }

    /// All lines together don't take the checkpoints of these trials before this.
    fn all_sent(&self, trials: impl Iterator<Item = usize>) -> u64 {
        let bytes = |trial: usize| self.epochs(trial) * self.problem.trials[trial].checkpoint_bytes;
        let lines = || self.problem.machines.iter().map(|machine| machine.line);
        if lines().any(|line| line.upload == 0) {
            return 0;
        }
        let upload = lines().map(|line| line.upload / u64::from(line.machines.max(1)));
        let upload = upload.fold(0, u64::saturating_add);
        mul_div(trials.map(bytes).sum(), 1_000_000, upload.max(1))
    }
}

fn pace(trial: &PlanTrial, machine: usize) -> u64 {
    trial.pace.get(machine).copied().unwrap_or(PACE_ONE)
}
