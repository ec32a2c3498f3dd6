//! Views of the assimilators' queue.

use super::Views;
use crate::figures::AssimilationCounts;
use sojourn_protocol::{ids::LeaseId, quantity::to_u64, time::Millis};

impl Views<'_> {
    /// How much there is to assimilate.
    pub(crate) fn assimilations(&self) -> AssimilationCounts {
        let queue = self.queue;
        let waiting: Vec<LeaseId> =
            queue.waiting().filter(|lease| self.state.is_to_assimilate(*lease)).collect();
        let units = || waiting.iter().copied().chain(queue.claimed());
        let oldest = units().filter_map(|lease| queue.since(lease)).min();
        let trials = self.state.jobs.values().flat_map(|job| &job.trials);
        let results: usize = trials.map(|trial| trial.awaiting.len()).sum();
        let (ended, per_second) = queue.ended(self.clock.started_at(), self.now);
        let taken = queue.claimed().len();
        let count = |number: usize| to_u64(number);
        AssimilationCounts {
            waiting: count(waiting.len()),
            behind: count(results.saturating_sub(waiting.len() + taken)),
            taken: count(taken),
            lag: oldest.map_or(Millis(0), |since| self.now - since),
            ended,
            per_second,
        }
    }
}
