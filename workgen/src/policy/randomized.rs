//! Cerebro's Algorithm 1 (VLDB 2020, section 5.3): an idle place gets a random runnable hop,
//! replica-aware; the baseline.

use super::{Board, Choice, DataLocality, Decision, Policy, Why};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    seeds,
};

/// A random hop among those whose shard the place holds, or among all where it holds none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomized;

impl Policy for Randomized {
    fn choose(&self, board: &dyn Board, chance: &mut ChaCha8Rng) -> Decision {
        let (mut held, mut others): (Vec<(TrialId, ShardId)>, Vec<_>) = (Vec::new(), Vec::new());
        let shards = board.shards();
        for candidate in board.candidates() {
            for (shard, is_held) in shards.open(candidate.chain) {
                let of = if is_held { &mut held } else { &mut others };
                of.push((candidate.trial, shard));
            }
        }
        let (from, standing) = match held.is_empty() {
            true => (others, DataLocality::Remote),
            false => (held, DataLocality::Local),
        };
        let Some(count) = u32::try_from(from.len()).ok().filter(|count| *count > 0) else {
            return Decision::Nothing;
        };
        let index = usize::try_from(seeds::below(chance, count)).unwrap_or(0);
        let Some((trial, shard)) = from.get(index).copied() else { return Decision::Nothing };
        Decision::Take(Choice { trial, shard, why: Why::Random { of: count, standing } })
    }
}
