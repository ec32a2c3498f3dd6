//! Cerebro's Algorithm 1 (VLDB 2020, section 5.3): an idle place gets a random runnable hop,
//! replica-aware; the baseline.

use super::{Board, Choice, Decision, Policy, Standing, Why};
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
        for candidate in board.candidates() {
            let all = || candidate.chain.open().collect();
            let open: Vec<ShardId> = board.own().map_or_else(all, |own| {
                let open = own.iter().filter(|shard| candidate.chain.next(**shard).is_some());
                open.copied().collect()
            });
            for shard in open {
                match board.standing(shard) {
                    Standing::Cached => held.push((candidate.trial, shard)),
                    Standing::ToFetch => others.push((candidate.trial, shard)),
                    Standing::Elsewhere => {}
                }
            }
        }
        let (from, standing) = match held.is_empty() {
            true => (others, Standing::ToFetch),
            false => (held, Standing::Cached),
        };
        let Some(count) = u32::try_from(from.len()).ok().filter(|count| *count > 0) else {
            return Decision::Nothing;
        };
        let index = usize::try_from(seeds::below(chance, count)).unwrap_or(0);
        let Some((trial, shard)) = from.get(index).copied() else { return Decision::Nothing };
        Decision::Take(Choice { trial, shard, why: Why::Random { of: count, standing } })
    }
}
