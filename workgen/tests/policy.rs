//! Policies: they take only what is open, prefer what the place holds, and don't depend on chance or
//! order where they say so.

use proptest::prelude::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ShardId, TrialId},
    manifest::Shard,
    seeds,
};
use sojourn_workgen::{Board, Candidate, Chain, Decision, Outlook, PolicyName, Standing};
use std::collections::BTreeSet;

/// Trials with the same open shards and different work, sorted as a board has them.
struct Sample {
    chain: Chain,
    trials: Vec<(TrialId, u64)>,
    held: BTreeSet<u32>,
    elsewhere: BTreeSet<u32>,
}

impl Sample {
    fn new(work: &[u64], held: &[u32]) -> Self {
        let blob = BlobRef { sha256: Digest::of(b""), bytes: 0 };
        let chain = Chain::new(1, 1, &[Shard { blob, rows: 1 }; 6]);
        let mut trials: Vec<_> = (0u32..).map(TrialId).zip(work.iter().copied()).collect();
        trials.sort_by_key(|(trial, work)| (std::cmp::Reverse(*work), *trial));
        let held = held.iter().copied().collect();
        Self { chain, trials, held, elsewhere: BTreeSet::new() }
    }
}

impl Board for Sample {
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
        let chain = &self.chain;
        let candidate = move |&(trial, work): &(TrialId, u64)| Candidate {
            trial,
            chain,
            work,
            waited: 0,
            way: 0,
        };
        Box::new(self.trials.iter().map(candidate))
    }
    fn own(&self) -> Option<&[ShardId]> {
        None
    }
    fn standing(&self, shard: ShardId) -> Standing {
        match shard.0 {
            shard if self.elsewhere.contains(&shard) => Standing::Elsewhere,
            shard if self.held.contains(&shard) => Standing::Cached,
            _ => Standing::ToFetch,
        }
    }
    fn load(&self, shard: ShardId) -> u64 {
        u64::from(shard.0 % 3)
    }
    fn outlook(&self) -> Outlook {
        Outlook { speed: 1, fastest: 1, unit: 1, ends_in: 0 }
    }
}

#[test]
fn ltrp_takes_the_longest_and_a_held_shard() {
    let mut chance = seeds::stream("test", &[]);
    let policy = PolicyName::Ltrp.policy();
    let choose = |board: &Sample, chance: &mut _| {
        let choice = policy.choose(board, chance).choice().unwrap();
        (choice.trial.0, choice.shard.0)
    };
    assert_eq!(choose(&Sample::new(&[10_000, 50_000, 50_000], &[4]), &mut chance), (1, 4));
    let none_held = Sample::new(&[50_000, 10_000], &[]);
    assert_eq!(choose(&none_held, &mut chance), (0, 2), "then the more loaded shard");
    assert_eq!(policy.choose(&Sample::new(&[], &[]), &mut chance), Decision::Nothing);
}

proptest! {
    #[test]
    fn a_choice_is_always_open_and_held_where_it_can_be(
        work in prop::collection::vec(1u64..1_000_000, 1..10),
        held in prop::collection::btree_set(0u32..6, 0..6),
        elsewhere in prop::collection::btree_set(0u32..6, 0..7),
        seed in any::<u64>(),
        name in prop::sample::select(PolicyName::ALL.to_vec()),
    ) {
        let mut chance = seeds::stream("test", &[seed]);
        let mut board = Sample::new(&work, &[]);
        board.held = &held - &elsewhere;
        board.elsewhere = elsewhere;
        let choice = name.policy().choose(&board, &mut chance).choice();
        prop_assert_eq!(choice.is_none(), board.elsewhere.len() == 6);
        let Some(choice) = choice else { return Ok(()) };
        prop_assert!(board.chain.open().any(|shard| shard == choice.shard));
        prop_assert!(!board.elsewhere.contains(&choice.shard.0));
        prop_assert!(board.held.is_empty() || board.held.contains(&choice.shard.0));
        if name != PolicyName::Randomized {
            let longest = work.iter().max().unwrap();
            prop_assert!(work[choice.trial.0 as usize] >= longest - longest / 10);
        }
    }
}
