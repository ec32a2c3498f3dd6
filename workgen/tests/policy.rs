//! Policies: they take only what is open, prefer what the host holds, and don't depend on chance or
//! order where they say so.

use proptest::prelude::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ShardId, TrialId},
    manifest::Shard,
    seeds,
};
use sojourn_workgen::{Candidate, Chain, HostCache, PolicyName};
use std::collections::BTreeSet;

struct Cache(BTreeSet<u32>);

impl HostCache for Cache {
    fn holds(&self, shard: ShardId) -> bool {
        self.0.contains(&shard.0)
    }
    fn load(&self, shard: ShardId) -> u64 {
        u64::from(shard.0 % 3)
    }
}

fn chain(shards: usize) -> Chain {
    let blob = BlobRef { sha256: Digest::of(b""), bytes: 0 };
    Chain::new(1, 1, &vec![Shard { blob, rows: 1 }; shards])
}

fn candidates<'a>(chain: &'a Chain, remaining: &[u64]) -> Vec<Candidate<'a>> {
    (0u32..)
        .zip(remaining)
        .map(|(n, remaining)| Candidate { trial: TrialId(n), chain, remaining: *remaining })
        .collect()
}

#[test]
fn ltrp_takes_the_longest_and_a_held_shard() {
    let chain = chain(6);
    let mut chance = seeds::stream("test", &[]);
    let policy = PolicyName::Ltrp.policy();
    let choose = |remaining: &[u64], held: &[u32], chance: &mut _| {
        let cache = Cache(held.iter().copied().collect());
        let choice = policy.choose(&candidates(&chain, remaining), &cache, chance).unwrap();
        (choice.trial.0, choice.shard.0)
    };
    assert_eq!(choose(&[10_000, 50_000, 50_000], &[4], &mut chance), (1, 4));
    assert_eq!(choose(&[50_000, 10_000], &[], &mut chance), (0, 2), "then the more loaded shard");
    assert!(policy.choose(&[], &Cache(BTreeSet::new()), &mut chance).is_none());
}

proptest! {
    #[test]
    fn a_choice_is_always_open_and_held_where_it_can_be(
        remaining in prop::collection::vec(1u64..1_000_000, 1..10),
        held in prop::collection::btree_set(0u32..6, 0..6),
        seed in any::<u64>(),
        name in prop::sample::select(vec![PolicyName::Ltrp, PolicyName::Randomized]),
    ) {
        let chain = chain(6);
        let mut chance = seeds::stream("test", &[seed]);
        let all = candidates(&chain, &remaining);
        let cache = Cache(held.clone());
        let choice = name.policy().choose(&all, &cache, &mut chance).unwrap();
        prop_assert!(chain.open().any(|shard| shard == choice.shard));
        prop_assert!(held.is_empty() || held.contains(&choice.shard.0));
        if name == PolicyName::Ltrp {
            let longest = remaining.iter().max().unwrap();
            prop_assert!(remaining[choice.trial.0 as usize] >= longest - longest / 10);
        }
    }
}
