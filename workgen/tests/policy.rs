//! Policies: they take only what is open, prefer what the place holds, and don't depend on chance or
//! order where they say so.

use proptest::prelude::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ShardId, TrialId},
    manifest::Shard,
    seeds,
};
use sojourn_workgen::{Board, Candidate, Chain, Decision, Outlook, PolicyName, Shards};

/// Trials with the same open shards and different work, sorted as a board has them.
struct Sample {
    chain: Chain,
    trials: Vec<(TrialId, u64)>,
    cached: Vec<bool>,
    own: Option<Vec<ShardId>>,
}

impl Sample {
    fn new(work: &[u64], held: &[u32]) -> Self {
        let blob = BlobRef { sha256: Digest::of(b""), bytes: 0 };
        let chain = Chain::new(1, 1, &[Shard { blob, rows: 1 }; 6]);
        let mut trials: Vec<_> = (0u32..).map(TrialId).zip(work.iter().copied()).collect();
        trials.sort_by_key(|(trial, work)| (std::cmp::Reverse(*work), *trial));
        let cached = (0..6).map(|shard| held.contains(&shard)).collect();
        Self { chain, trials, cached, own: None }
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
    fn shards(&self) -> Shards<'_> {
        Shards { own: self.own.as_deref(), cached: &self.cached, load: &[0, 1, 2, 0, 1, 2] }
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
        let held: Vec<u32> = held.into_iter().collect();
        let mut board = Sample::new(&work, &held);
        let own: Vec<ShardId> = (0..6).filter(|n| !elsewhere.contains(n)).map(ShardId).collect();
        let own_held: Vec<ShardId> =
            own.iter().copied().filter(|shard| held.contains(&shard.0)).collect();
        board.own = Some(own.clone());
        let choice = name.policy().choose(&board, &mut chance).choice();
        prop_assert_eq!(choice.is_none(), own.is_empty());
        let Some(choice) = choice else { return Ok(()) };
        prop_assert!(board.chain.open().any(|shard| shard == choice.shard));
        prop_assert!(own.contains(&choice.shard));
        prop_assert!(own_held.is_empty() || own_held.contains(&choice.shard));
        if name != PolicyName::Randomized {
            let longest = work.iter().max().unwrap();
            prop_assert!(work[choice.trial.0 as usize] >= longest - longest / 10);
        }
    }
}
