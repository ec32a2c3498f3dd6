//! A problem with what every simulation of it needs worked out once.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::problem::{PACE_ONE, Problem, id};

/// No place.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A problem, prepared.
#[derive(Debug)]
pub(super) struct Shop<'a> {
    pub(super) problem: &'a Problem,
    pub(super) trials: usize,
    pub(super) shards: usize,
    pub(super) places: usize,
    /// By shard: its only place; [`NOWHERE`] where there are several.
    pub(super) place_of: Vec<u32>,
    /// By shard: the places that may train it, ascending; `None`: all.
    pub(super) holders: Vec<Option<Vec<u32>>>,
    /// Has every shard but one place?
    pub(super) pinned: bool,
    /// By place: the shards that it may train.
    pub(super) shards_of: Vec<Vec<u32>>,
    /// By trial, then shard: the hop's time on its best place.
    best: Vec<u64>,
    /// The largest lower bound.
    pub(super) bound: u64,
}

impl<'a> Shop<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let (shards, places) = (problem.holders.len(), problem.places.len());
        let mut shards_of = vec![Vec::new(); places];
        let mut place_of = vec![NOWHERE; shards];
        for (shard, holders) in problem.holders.iter().enumerate() {
            match holders {
                Some(holders) => {
                    for &place in holders {
                        shards_of[place as usize].push(id(shard));
                    }
                    if let [only] = holders[..] {
                        place_of[shard] = only;
                    }
                }
                None => shards_of.iter_mut().for_each(|list: &mut Vec<u32>| list.push(id(shard))),
            }
        }
        let mut holders = problem.holders.clone();
        holders.iter_mut().flatten().for_each(|list| list.sort_unstable());
        let mut best = Vec::with_capacity(problem.trials.len() * shards);
        for (number, trial) in problem.trials.iter().enumerate() {
            let paces = || (0..id(places)).map(|place| (trial.pace[place as usize], place));
            let anywhere = if trial.pace.is_empty() {
                (PACE_ONE, 0)
            } else {
                paces().min().unwrap_or_default()
            };
            for shard in 0..shards {
                let (_, place) = match &problem.holders[shard] {
                    Some(holders) if !trial.pace.is_empty() => {
                        let paces =
                            holders.iter().map(|place| (trial.pace[*place as usize], *place));
                        paces.min().unwrap_or_default()
                    }
                    _ => anywhere,
                };
                best.push(problem.time(id(number), id(shard), place));
            }
        }
        Self {
            problem,
            trials: problem.trials.len(),
            shards,
            places,
            holders,
            pinned: place_of.iter().all(|place| *place != NOWHERE),
            place_of,
            shards_of,
            best,
            bound: problem.lower_bound(),
        }
    }

    /// Has each of these shards but one place?
    pub(super) fn alone(&self, shards: &[u32]) -> bool {
        shards.iter().all(|shard| self.place_of[*shard as usize] != NOWHERE)
    }

    /// A hop's time on its best place.
    pub(super) fn best(&self, trial: u32, shard: u32) -> u64 {
        self.best[trial as usize * self.shards + shard as usize]
    }

    /// A hop's time at a place.
    pub(super) fn time(&self, trial: u32, shard: u32, place: u32) -> u64 {
        if self.place_of[shard as usize] == place {
            return self.best(trial, shard);
        }
        self.problem.time(trial, shard, place)
    }

    /// The places' order for a trial: 0 where all are alike.
    pub(super) fn pace(&self, trial: u32, place: u32) -> u64 {
        self.problem.trials[trial as usize].pace.get(place as usize).copied().unwrap_or(PACE_ONE)
    }
}
