//! How many times running trials will still train on each shard of a job.

use super::{FoldFault, Job, Trial};
use sojourn_protocol::ids::ShardId;

impl Job {
    /// The visits that are left after these shards have had one of theirs each.
    pub(super) fn load_after(
        &self,
        visited: impl IntoIterator<Item = ShardId>,
    ) -> Result<Vec<u64>, FoldFault> {
        let below_zero = FoldFault::CountBelowZero("visits to a shard");
        let mut load = self.load.clone();
        for shard in visited {
            let remaining = load.get_mut(sojourn_protocol::unit::shard_index(shard));
            let remaining = remaining.ok_or_else(|| below_zero.clone())?;
            *remaining = remaining.checked_sub(1).ok_or_else(|| below_zero.clone())?;
        }
        Ok(load)
    }

    /// The visits that are left when a running trial ends, which owes some.
    pub(super) fn load_without(&self, trial: &Trial) -> Result<Vec<u64>, FoldFault> {
        let left = self.load.iter().zip(trial.visits_left()).map(|(load, of)| load.checked_sub(of));
        left.collect::<Option<_>>().ok_or(FoldFault::CountBelowZero("visits to a shard"))
    }

    /// How many times running trials will still train on each shard, by a recount.
    pub fn counted_load(&self) -> Vec<u64> {
        load_of(&self.trials, self.load.len())
    }

    /// Recounts how many times running trials will still train on each shard.
    pub(super) fn recount_load(&mut self) {
        self.load = self.counted_load();
    }
}

/// How many times these trials, of those that run, will still train on each of so many shards.
pub(super) fn load_of(trials: &[Trial], shards: usize) -> Vec<u64> {
    let mut load = vec![0; shards];
    for trial in trials.iter().filter(|trial| trial.is_running()) {
        load.iter_mut().zip(trial.visits_left()).for_each(|(load, of)| *load += of);
    }
    load
}

impl Trial {
    /// How many times it will still train on each shard, if it runs to the epochs that it is allowed.
    fn visits_left(&self) -> impl Iterator<Item = u64> + '_ {
        let later =
            u64::from(self.chain.epochs()).saturating_sub(u64::from(self.chain.epoch().0) + 1);
        (0u32..).map(ShardId).map(move |shard| {
            let later = if self.chain.visits(shard) { later } else { 0 };
            later + u64::from(self.chain.is_open(shard))
        })
    }
}
