//! A problem with what every simulation of it needs worked out once.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::problem::{PACE_ONE, Problem, id};

/// No machine.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A problem, prepared.
#[derive(Debug)]
pub(super) struct Shop<'a> {
    pub(super) problem: &'a Problem,
    pub(super) trials: usize,
    pub(super) shards: usize,
    /// All of them.
    pub(super) all_shards: Vec<u32>,
    pub(super) machines: usize,
    /// By shard: its only machine; [`NOWHERE`] where there are several.
    pub(super) machine_of: Vec<u32>,
    /// By shard: the machines that may train it, ascending; `None`: all.
    pub(super) holders: Vec<Option<Vec<u32>>>,
    /// Has every shard but one machine?
    pub(super) pinned: bool,
    /// By machine: the shards that it may train.
    pub(super) shards_of: Vec<Vec<u32>>,
    /// By trial, then shard: the hop's time on its best machine.
    best: Vec<u64>,
    /// The largest lower bound.
    pub(super) bound: u64,
}

impl<'a> Shop<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let (shards, machines) = (problem.holders.len(), problem.machines.len());
        let mut shards_of = vec![Vec::new(); machines];
        let mut machine_of = vec![NOWHERE; shards];
        for (shard, holders) in problem.holders.iter().enumerate() {
            match holders {
                Some(holders) => {
                    for &machine in holders {
                        shards_of[machine as usize].push(id(shard));
                    }
                    if let [only] = holders[..] {
                        machine_of[shard] = only;
                    }
                }
                None => shards_of.iter_mut().for_each(|list: &mut Vec<u32>| list.push(id(shard))),
            }
        }
        let mut holders = problem.holders.clone();
        holders.iter_mut().flatten().for_each(|list| list.sort_unstable());
        let mut best = Vec::with_capacity(problem.trials.len() * shards);
        for (number, trial) in problem.trials.iter().enumerate() {
            let paces = || (0..id(machines)).map(|machine| (trial.pace[machine as usize], machine));
            let anywhere = if trial.pace.is_empty() {
                (PACE_ONE, 0)
            } else {
                paces().min().unwrap_or_default()
            };
            for shard in 0..shards {
                let (_, machine) = match &problem.holders[shard] {
                    Some(holders) if !trial.pace.is_empty() => {
                        let paces =
                            holders.iter().map(|machine| (trial.pace[*machine as usize], *machine));
                        paces.min().unwrap_or_default()
                    }
                    _ => anywhere,
                };
                best.push(problem.time(id(number), id(shard), machine));
            }
        }
        Self {
            problem,
            trials: problem.trials.len(),
            shards,
            all_shards: (0..id(shards)).collect(),
            machines,
            holders,
            pinned: machine_of.iter().all(|machine| *machine != NOWHERE),
            machine_of,
            shards_of,
            best,
            bound: problem.lower_bound(),
        }
    }

    /// Has each of these shards but one machine?
    pub(super) fn alone(&self, shards: &[u32]) -> bool {
        shards.iter().all(|shard| self.machine_of[*shard as usize] != NOWHERE)
    }

    /// A hop's time on its best machine.
    pub(super) fn best(&self, trial: u32, shard: u32) -> u64 {
        self.best[trial as usize * self.shards + shard as usize]
    }

    /// A hop's time at a machine.
    pub(super) fn time(&self, trial: u32, shard: u32, machine: u32) -> u64 {
        if self.machine_of[shard as usize] == machine {
            return self.best(trial, shard);
        }
        self.problem.time(trial, shard, machine)
    }

    /// The machines' order for a trial: 0 where all are alike.
    pub(super) fn pace(&self, trial: u32, machine: u32) -> u64 {
        self.problem.trials[trial as usize].pace.get(machine as usize).copied().unwrap_or(PACE_ONE)
    }
}
