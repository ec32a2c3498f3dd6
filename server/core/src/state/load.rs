//! How many times running trials will still train on each shard of a job.

use super::{FoldFault, Job};
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

    /// Recounts how many times running trials will still train on each shard.
    pub(super) fn recount_load(&mut self) {
        let running = self.trials.iter().filter(|trial| trial.is_running());
        let mut load = vec![0; self.load.len()];
        for trial in running {
            let later = u64::from(trial.chain.epochs())
                .saturating_sub(u64::from(trial.chain.epoch().0) + 1);
            for (load, shard) in load.iter_mut().zip((0u32..).map(ShardId)) {
                *load += later + u64::from(trial.chain.is_open(shard));
            }
        }
        self.load = load;
    }
}
