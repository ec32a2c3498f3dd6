//! Policies: they choose only open hops, prefer shards that the machine holds, and don't depend on randomness or
//! order where they say so.

use proptest::prelude::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ShardId, TrialId},
    manifest::Shard,
    minibatches::Minibatches,
    quantity::{Micros, Speed, Work},
    seeds,
};
use sojourn_workgen::{Candidate, Chain, Decision, Forecast, PolicyName, PolicyView, Shards};

/// Trials with the same open shards and different work, sorted as a policy sees them.
struct Sample {
    chain: Chain,
    trials: Vec<(TrialId, u64)>,
    cached: Vec<bool>,
    own: Option<Vec<ShardId>>,
}

impl Sample {
    fn new(work: &[u64], held: &[u32]) -> Self {
        let blob = BlobRef { sha256: Digest::of(b""), bytes: 0 };
        let chain = Chain::new(1, Minibatches::new(1, 1), &[Shard { blob, rows: 1 }; 6]);
        let mut trials: Vec<_> = (0u32..).map(TrialId).zip(work.iter().copied()).collect();
        trials.sort_by_key(|(trial, work)| (std::cmp::Reverse(*work), *trial));
        let cached = (0..6).map(|shard| held.contains(&shard)).collect();
        Self { chain, trials, cached, own: None }
    }
}

impl PolicyView for Sample {
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
        let chain = &self.chain;
        let candidate = move |&(trial, work): &(TrialId, u64)| Candidate {
            trial,
            chain,
            work: Work(work),
            waited: Micros::ZERO,
            transfer_time: Micros::ZERO,
        };
        Box::new(self.trials.iter().map(candidate))
    }
    fn shards(&self) -> Shards<'_> {
        Shards { own: self.own.as_deref(), cached: &self.cached, load: &[0, 1, 2, 0, 1, 2] }
    }
    fn forecast(&self) -> Forecast {
        let speed = Speed::REFERENCE;
        Forecast { speed, fastest: speed, ends_in: Micros::ZERO }
    }
}

#[test]
fn ltrp_takes_the_longest_and_a_held_shard() {
    let mut rng = seeds::stream("test", &[]);
    let policy = PolicyName::Ltrp.policy();
    let choose = |view: &Sample, rng: &mut _| {
        let choice = policy.choose(view, rng).choice().unwrap();
        (choice.trial.0, choice.shard.0)
    };
    assert_eq!(choose(&Sample::new(&[10_000, 50_000, 50_000], &[4]), &mut rng), (1, 4));
    let none_held = Sample::new(&[50_000, 10_000], &[]);
    assert_eq!(choose(&none_held, &mut rng), (0, 2), "then the more loaded shard");
    assert_eq!(policy.choose(&Sample::new(&[], &[]), &mut rng), Decision::Nothing);
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
        let mut rng = seeds::stream("test", &[seed]);
        let held: Vec<u32> = held.into_iter().collect();
        let mut view = Sample::new(&work, &held);
        let own: Vec<ShardId> = (0..6).filter(|n| !elsewhere.contains(n)).map(ShardId).collect();
        let own_held: Vec<ShardId> =
            own.iter().copied().filter(|shard| held.contains(&shard.0)).collect();
        view.own = Some(own.clone());
        let choice = name.policy().choose(&view, &mut rng).choice();
        prop_assert_eq!(choice.is_none(), own.is_empty());
        let Some(choice) = choice else { return Ok(()) };
        prop_assert!(view.chain.open().any(|shard| shard == choice.shard));
        prop_assert!(own.contains(&choice.shard));
        prop_assert!(own_held.is_empty() || own_held.contains(&choice.shard));
        if name != PolicyName::Randomized {
            let longest = work.iter().max().unwrap();
            prop_assert!(work[choice.trial.0 as usize] >= longest - longest / 10);
        }
    }
}
