//! Longest total remaining processing time first (DESIGN section 6).

use super::{Candidate, Choice, HostCache, Policy};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::ids::ShardId;
use std::cmp::Reverse;

/// The trial with the most work left goes first: it is the one that can hold the job up. Among trials
/// within a tenth of it, one whose shard the host holds is taken before; of a trial's open shards, a
/// held one before others, then the one that most visits still wait for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ltrp;

impl Policy for Ltrp {
    fn choose(
        &self,
        candidates: &[Candidate<'_>],
        host: &dyn HostCache,
        _: &mut ChaCha8Rng,
    ) -> Option<Choice> {
        let longest = candidates.iter().map(|candidate| candidate.remaining).max()?;
        let near = longest - longest / 10;
        candidates
            .iter()
            .filter(|candidate| candidate.remaining >= near)
            .filter_map(|candidate| {
                let (held, load, shard) = best_shard(candidate, host)?;
                Some((held, candidate.remaining, Reverse(candidate.trial), load, shard))
            })
            .max()
            .map(|(held, remaining, Reverse(trial), load, shard)| Choice {
                trial,
                shard: shard.0,
                why: format!(
                    "ltrp: {} ms left (longest {} ms), shard {} with {load} visits to come",
                    remaining / 1000,
                    longest / 1000,
                    if held { "in cache" } else { "to fetch" },
                ),
            })
    }
}

/// (held, load, shard) of the best open shard; ties to the lower id.
fn best_shard(
    candidate: &Candidate<'_>,
    host: &dyn HostCache,
) -> Option<(bool, u64, Reverse<ShardId>)> {
    candidate.chain.open().map(|shard| (host.holds(shard), host.load(shard), Reverse(shard))).max()
}
