//! Cerebro's Algorithm 1 (VLDB 2020, section 5.3): an idle place gets a random runnable hop,
//! replica-aware; the baseline.

use super::{Choice, DataLocality, Decision, Policy, PolicyReason, PolicyView};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    quantity::to_usize,
    seeds,
};

/// A random hop among those whose shard the machine holds, or among all where it holds none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomized;

impl Policy for Randomized {
    fn choose(&self, view: &dyn PolicyView, rng: &mut ChaCha8Rng) -> Decision {
        let (mut held, mut others): (Vec<(TrialId, ShardId)>, Vec<_>) = (Vec::new(), Vec::new());
        let shards = view.shards();
        for candidate in view.candidates() {
            for (shard, is_held) in shards.open(candidate.chain) {
                let of = if is_held { &mut held } else { &mut others };
                of.push((candidate.trial, shard));
            }
        }
        let (from, locality) = match held.is_empty() {
            true => (others, DataLocality::Remote),
            false => (held, DataLocality::Local),
        };
        let Some(count) = u32::try_from(from.len()).ok().filter(|count| *count > 0) else {
            return Decision::Nothing;
        };
        let index = to_usize(seeds::below(rng, count));
        let Some((trial, shard)) = from.get(index).copied() else { return Decision::Nothing };
        let reason = PolicyReason::Random { of: count, locality };
        Decision::Assign(Choice { trial, shard, reason })
    }
}
