//! Cerebro's Algorithm 1 (VLDB 2020, section 5.3): an idle host gets a random runnable hop,
//! replica-aware; the baseline.

use super::{Candidate, Choice, HostCache, Policy};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    seeds,
};

/// A random hop among those whose shard the host holds, or among all where it holds none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomized;

impl Policy for Randomized {
    fn choose(
        &self,
        candidates: &[Candidate<'_>],
        host: &dyn HostCache,
        chance: &mut ChaCha8Rng,
    ) -> Option<Choice> {
        let all: Vec<(TrialId, ShardId)> = candidates
            .iter()
            .flat_map(|candidate| candidate.chain.open().map(|shard| (candidate.trial, shard)))
            .collect();
        let held: Vec<_> = all.iter().filter(|(_, shard)| host.holds(*shard)).copied().collect();
        let (from, kind) = if held.is_empty() { (all, "to fetch") } else { (held, "in cache") };
        let count = u32::try_from(from.len()).ok().filter(|count| *count > 0)?;
        let index = usize::try_from(seeds::below(chance, count)).ok()?;
        let (trial, shard) = *from.get(index)?;
        let why = format!("randomized: one of {count} runnable hops with shard {kind}");
        Some(Choice { trial, shard, why })
    }
}
