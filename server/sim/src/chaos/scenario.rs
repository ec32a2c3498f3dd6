//! The scenario that a seed makes: the job, the hosts, and how often what goes wrong.

use super::{hostile::Hostile, liar::Liar};
use crate::Corruption;
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    cross_validation::MIN_FOLDS,
    digest::{BlobRef, Digest},
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    quantity::{Micros, SaturatingFrom as _, to_usize},
    seeds,
    spec::{
        AugmentSpace, Channels, ClassWeights, DataSpec, Dialect, Dimension, JobSpec, Listing,
        LocalSteps, Loss, MergeSpec, Metric, Missing, ModelSpace, OnBad, OptimizerName,
        OptimizerSpace, OrderChoice, Pbt, PlacementSpec, Precision, Rebalancing, Replicas,
        ResidencyPolicy, RuleSpec, Sampling, Scale, ScaleLabel, ScheduleSpace, Scope, SearchMethod,
        SearchSpec, SpeCon, Split, Stopping, TrainingSpace, Verify, VerifyChoice, Visits,
    },
    time::Millis,
};
use sojourn_workgen::PolicyName;

/// How often what goes wrong, in thousandths per occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// A message is lost.
    pub lose: u32,
    /// A message arrives twice.
    pub duplicate: u32,
    /// A message takes seconds.
    pub lag: u32,
    /// A host crashes at the end of a unit, and comes back later with its disk.
    pub crash: u32,
    /// A host falls silent for longer than its leases, and goes on.
    pub vanish: u32,
    /// The trainer fails.
    pub fail: u32,
    /// A report says what can't be.
    pub lie: u32,
    /// A hop stops early with a partial checkpoint.
    pub part: u32,
    /// An assimilator takes work and forgets it, or refuses it.
    pub forget: u32,
    /// The server dies at a sync of its journal.
    pub server: u32,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Faults = Faults {
        lose: 0,
        duplicate: 0,
        lag: 0,
        crash: 0,
        vanish: 0,
        fail: 0,
        lie: 0,
        part: 0,
        forget: 0,
        server: 0,
    };
}

/// A line on which a checkpoint takes seconds, in bytes per second.
const SLOW_LINE: u64 = 100;

/// The width of the models that every trainer refuses.
pub(super) const WRONG_WIDTH: u32 = 97;

/// The term of a lease in worlds with hostile hosts.
const HOSTILE_LEASE_TERM: Millis = Millis::from_secs(5);

/// A world to run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// All chance follows from it.
    pub seed: u64,
    /// Hosts; the first of each numeric class stays enrolled.
    pub hosts: u32,
    /// The number of hosts, the last ones, whose results of hops are all lies.
    pub liars: u32,
    /// Of this kind.
    pub lie: Corruption,
    /// Numeric classes among them.
    pub classes: u32,
    /// The frequency of each fault while faults are on.
    pub faults: Faults,
    /// When they stop.
    pub faults_end: Millis,
    /// The term of a lease.
    pub lease_term: Millis,
    /// Hops of one lease, at most.
    pub most_hops: u32,
    /// Per cent of the job's work that second copies may repeat.
    pub most_copied: u32,
    /// The bandwidth of a host's line, in bytes per second, where that is little.
    pub line: Option<u64>,
    /// Which hop goes to which host.
    pub policy: PolicyName,
    /// The job.
    pub spec: JobSpec,
    /// The job's data.
    pub data: DataManifest,
    /// How often, in thousandths of a host's beats, somebody asks for an evaluation.
    pub curious: u32,
    /// Hosts that do harm on purpose, beside the others.
    pub hostile: Hostile,
    /// Strangers that lie, beside two that don't and the operator's hosts; the job says nothing of verification.
    pub liar: Option<Liar>,
    /// Jobs beside the job, of one trial each, whose units every trainer refuses.
    pub wrong_jobs: u32,
    /// Does the user extend trials? Their learning rates then follow when that was.
    pub extends: bool,
}

impl Scenario {
    /// The scenario of a seed: sizes and rates vary with it.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut chance = seeds::stream("scenario", &[seed]);
        let mut rate = |most: u32| seeds::below(&mut chance, most + 1);
        let faults = Faults {
            lose: rate(150),
            duplicate: rate(150),
            lag: rate(100),
            crash: rate(120),
            vanish: rate(80),
            fail: rate(60),
            lie: rate(120),
            part: rate(450),
            forget: rate(100),
            server: rate(6),
        };
        let hosts = 1 + rate(6);
        let classes = 1 + rate(1).min(hosts - 1);
        let lease_term = Millis::from_secs(u64::from(2 + rate(30)));
        let (trials, shards, epochs) = (1 + rate(7), 1 + rate(5), 1 + rate(3));
        let reproducible = rate(3) > 0;
        let rows: Vec<u32> = (0..shards).map(|_| 1 + rate(60)).collect();
        let test = rate(3);
        let curious = rate(20);
        let most_hops = 1 + rate(3);
        let policy = match rate(2) {
            0 => PolicyName::Randomized,
            1 => PolicyName::Ltrp,
            _ => PolicyName::Rollout,
        };
        let replicas = match rate(4) {
            0 => Replicas::Fixed(1),
            1 => Replicas::Fixed(2),
            _ => Replicas::Demand,
        };
        let max_hosts = (rate(4) == 0).then(|| 1 + rate(2));
        let most_copied = rate(100);
        let placement =
            PlacementSpec { replicas, max_hosts, ..placement_of_seed(seed, reproducible) };
        let placement = with_residency(placement, seed);
        let placement = verifiable(placement, hosts, classes);
        // All that they come to is checked, by hosts that are more.
        let checks = placement.verifies_all().is_some_and(|verify| verify.rate == 1000);
        let liars = u32::from(checks && classes == 1 && hosts > 3);
        let slow = seeds::below(&mut seeds::stream("scenario-line", &[seed]), 6) == 0;
        Self {
            seed,
            hosts,
            liars,
            lie: one_of(&Corruption::ALL, seed),
            classes,
            faults,
            faults_end: Millis::from_secs(120),
            lease_term,
            most_hops,
            most_copied,
            line: slow.then_some(SLOW_LINE),
            policy,
            spec: JobSpec { placement, ..spec(seed, trials, epochs, shards) },
            data: data(&mut chance, &rows, test),
            curious,
            hostile: Hostile::default(),
            liar: None,
            wrong_jobs: 0,
            extends: true,
        }
    }

    /// A job on two hosts or more that nothing happens to, beside jobs whose units every trainer refuses.
    #[must_use]
    pub fn with_wrong_jobs(seed: u64, wrong_jobs: u32) -> Self {
        let scenario = Self::of_seed(seed);
        // Long enough that the first moments don't decide.
        let spec = spec(seed, 8, 4, u32::saturating_from(scenario.data.train.len()));
        let (hosts, faults) = (scenario.hosts.max(2), Faults::NONE);
        let (classes, liars, curious, extends) = (1, 0, 0, false);
        Self { hosts, classes, liars, faults, curious, extends, wrong_jobs, spec, ..scenario }
    }

    /// One of the jobs that are wrong.
    #[must_use]
    pub(super) fn wrong_job(&self, n: u32) -> JobSpec {
        let models = vec![ModelSpace::mlp(vec![WRONG_WIDTH])];
        let shards = u32::saturating_from(self.data.train.len());
        JobSpec { name: format!("wrong-{n}"), models, ..spec(self.seed, 1, 1, shards) }
    }

    /// The same with an owner whose hosts do harm, beside two whose don't. Every result is verified, and trainers of
    /// others don't fail.
    #[must_use]
    pub fn with_hostile_owner(seed: u64, hostile: Hostile) -> Self {
        let scenario = Self::of_seed(seed);
        let verify = Some(Verify { quorum: 2, rate: 1000 }.into());
        let placement = PlacementSpec {
            verify,
            replicas: Replicas::Demand,
            max_hosts: None,
            ..placement_of_seed(seed, true)
        };
        let faults = Faults { fail: 0, ..scenario.faults };
        let spec = JobSpec { placement, ..scenario.spec };
        let (hosts, classes, liars, lie) = (4, 1, 0, Corruption::Noise);
        // Short, so that leases end after minutes that trickle.
        let lease_term = HOSTILE_LEASE_TERM;
        Self { hosts, classes, liars, lie, faults, lease_term, spec, hostile, ..scenario }
    }

    /// The same with fixed visits, so that the job alone decides every checkpoint.
    #[must_use]
    pub fn with_fixed_visits(seed: u64) -> Self {
        let scenario = Self::of_seed(seed);
        let order = match scenario.spec.placement.order {
            OrderChoice::Hop | OrderChoice::Merge => OrderChoice::Hop,
            OrderChoice::Auto => OrderChoice::Auto,
        };
        let visits = Some(Visits::Fixed);
        let placement = PlacementSpec { order, visits, ..scenario.spec.placement };
        let spec = JobSpec { placement, ..scenario.spec };
        Self { liars: 0, extends: false, spec, ..scenario }
    }

    /// The same with cross-validation, in folds of the training shards, of which there are two at least.
    #[must_use]
    pub fn with_folds(seed: u64) -> Self {
        let is_even = seed.is_multiple_of(2);
        let scenario = if is_even { Self::of_seed(seed) } else { Self::with_fixed_visits(seed) };
        Self::folded(scenario, seed.is_multiple_of(3))
    }

    /// The same of fixed visits, with this rule of early stopping.
    #[must_use]
    pub fn with_folds_and_stopping(seed: u64, rule: Stopping) -> Self {
        Self::folded(Self::with_stopping(seed, rule, seed), true)
    }

    fn folded(scenario: Self, refit: bool) -> Self {
        let (mut spec, mut data) = (scenario.spec, scenario.data);
        let (train, valid) = (&mut data.train, std::mem::take(&mut data.valid));
        let lacking = MIN_FOLDS.saturating_sub(u32::saturating_from(train.len()));
        train.extend(valid.into_iter().take(to_usize(lacking)));
        let shards = u32::saturating_from(train.len());
        spec.search.folds = Some(shards.clamp(MIN_FOLDS, 3));
        spec.search.refit = refit;
        (spec.data.valid, spec.data.shards) = (Split::Folds, Some(shards));
        Self { spec, data, ..scenario }
    }

    /// A job of fixed visits with this rule of early stopping, as `seed` decides, in the world of another seed.
    #[must_use]
    pub fn with_stopping(seed: u64, rule: Stopping, world: u64) -> Self {
        Self::searching(seed, world, |search| search.stopping = Some(rule))
    }

    /// The same with a population that is trained so, of which there are nine trials.
    #[must_use]
    pub fn with_population(seed: u64, pbt: Pbt, world: u64) -> Self {
        let pbt = Pbt { trials: TRIALS_OF_SEARCH, ..pbt };
        Self::searching(seed, world, |search| search.method = SearchMethod::Pbt(pbt))
    }

    fn searching(seed: u64, world: u64, change: impl FnOnce(&mut SearchSpec)) -> Self {
        let job = Self::with_fixed_visits(seed);
        let (trials, epochs) = (TRIALS_OF_SEARCH, 9);
        let shards = u32::saturating_from(job.data.train.len());
        let mut spec =
            JobSpec { placement: job.spec.placement, ..spec(seed, trials, epochs, shards) };
        change(&mut spec.search);
        let other = Self::with_fixed_visits(world);
        let classes = 1;
        spec.placement = verifiable(spec.placement, other.hosts, classes);
        Self { spec, data: job.data, classes, ..other }
    }

    /// The line that runs this world again.
    #[must_use]
    pub fn reproduce(&self) -> String {
        format!("SOJOURN_SIM_SEED={} cargo test -p sojourn-sim --test seeds one_seed", self.seed)
    }
}

/// Trials of a search that stops some of them early.
const TRIALS_OF_SEARCH: u32 = 9;

/// The same, without verification where no numeric class has as many hosts as have to agree: no trial would begin.
fn verifiable(placement: PlacementSpec, hosts: u32, classes: u32) -> PlacementSpec {
    let largest = hosts.div_ceil(classes.max(1));
    let verify = placement
        .verify
        .filter(|_| placement.verifies_all().is_none_or(|verify| verify.quorum <= largest));
    PlacementSpec { verify, ..placement }
}

fn one_of(lies: &[Corruption; 6], seed: u64) -> Corruption {
    let chance = seeds::below(&mut seeds::stream("scenario-lie", &[seed]), 6);
    lies.get(to_usize(chance)).copied().unwrap_or(Corruption::Noise)
}

/// In hop order or merged, and checked or not.
fn placement_of_seed(seed: u64, reproducible: bool) -> PlacementSpec {
    let mut chance = seeds::stream("scenario-order", &[seed]);
    let mut rate = |most: u32| seeds::below(&mut chance, most + 1);
    let order = match rate(5) {
        0..3 => OrderChoice::Hop,
        3 => OrderChoice::Merge,
        _ => OrderChoice::Auto,
    };
    let merge =
        (rate(1) == 0).then(|| MergeSpec { rule: RuleSpec::VC_ASGD, ..MergeSpec::default() });
    let local_steps = if rate(2) == 0 { LocalSteps::BySpeed } else { LocalSteps::Shard };
    let merge_below = 300 + rate(700);
    let quorum = 2 + rate(1);
    let verify = match rate(5) {
        0 => Some(Verify { quorum: 2, rate: 1000 }),
        1 => Some(Verify { quorum, rate: 300 }),
        _ => None,
    };
    PlacementSpec {
        merge,
        merge_below,
        local_steps,
        verify: verify.filter(|_| reproducible).map(VerifyChoice::All),
        ..PlacementSpec::new(order, reproducible, 1)
    }
}

/// Trials stay on hosts in most of the worlds in which they may.
fn with_residency(placement: PlacementSpec, seed: u64) -> PlacementSpec {
    let mut chance = seeds::stream("scenario-residency", &[seed]);
    let mut rate = |most: u32| seeds::below(&mut chance, most + 1);
    let interval = Micros::from_secs(u64::from(1 + rate(9)));
    let specon = SpeCon {
        interval,
        least_batches: rate(3),
        confirm: rate(1),
        scope: if rate(1) == 0 { Scope::Host } else { Scope::Cluster },
        listing: if rate(3) == 0 { Listing::Thesis } else { Listing::Improved },
        ..SpeCon::default()
    };
    let residency = match rate(7) {
        0 => ResidencyPolicy::LeastLoaded,
        1 | 2 => ResidencyPolicy::ShortestRemaining(Rebalancing { interval }),
        3..6 => ResidencyPolicy::SpeCon(specon),
        _ => ResidencyPolicy::None,
    };
    let stays = PlacementSpec { residency, ..placement };
    match stays.check_residency() {
        Ok(()) => stays,
        Err(_) => PlacementSpec { residency: ResidencyPolicy::None, ..stays },
    }
}

/// Most worlds pass over a shard once in a visit.
fn passes(seed: u64) -> u32 {
    let mut chance = seeds::stream("scenario-passes", &[seed]);
    match seeds::below(&mut chance, 6) {
        0 => 2 + seeds::below(&mut chance, 2),
        _ => 1,
    }
}

pub(super) fn spec(seed: u64, trials: u32, epochs: u32, shards: u32) -> JobSpec {
    let rates = (1..=trials).map(|n| f64::from(n) * 0.01).collect();
    JobSpec {
        name: format!("world-{seed}"),
        seed,
        seeds: Vec::new(),
        data: DataSpec {
            train: "train.csv".into(),
            features: None,
            label: Some("label".into()),
            labels: None,
            separator: None,
            columns: None,
            categories: Vec::new(),
            missing: Missing::Refuse,
            on_bad_row: OnBad::Refuse,
            on_bad_image: OnBad::Refuse,
            dialect: Dialect::default(),
            window: None,
            tokenizer: None,
            length: std::collections::BTreeMap::new(),
            shape: None,
            channels: Channels::First,
            scale: Scale::None,
            scale_label: ScaleLabel::None,
            valid: Split::Ratio(0.2),
            test: None,
            shards: Some(shards),
            shard_sizes: None,
            stratified: false,
            groups: None,
            group_folds: None,
            seed: None,
        },
        models: vec![ModelSpace::mlp(vec![4])],
        init: Vec::new(),
        training: TrainingSpace {
            epochs,
            local_epochs: passes(seed),
            batch_size: 8.into(),
            loss: Loss::CrossEntropy,
            optimizer: OptimizerSpace {
                lr: Dimension::Choice(rates),
                ..OptimizerSpace::new(OptimizerName::Sgd.into())
            },
            schedule: ScheduleSpace::default(),
            clip_norm: 0.0.into(),
            augment: AugmentSpace::default(),
            precision: Precision::F32.into(),
            class_weights: ClassWeights::None,
            sampling: Sampling::Shuffled.into(),
            label_smoothing: 0.0.into(),
        },
        search: SearchSpec::new(SearchMethod::Grid, Metric::Accuracy),
        placement: PlacementSpec::new(OrderChoice::Hop, true, 1),
    }
}

pub(super) fn data(chance: &mut ChaCha8Rng, rows: &[u32], test: u32) -> DataManifest {
    let mut shard = |rows: u32| {
        let digest = Digest::of(&seeds::below(chance, u32::MAX).to_le_bytes());
        Shard { blob: BlobRef { sha256: digest, bytes: 1000 }, rows }
    };
    DataManifest {
        columns: Vec::new(),
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: rows.iter().map(|rows| shard(*rows)).collect(),
        valid: vec![shard(20), shard(7)],
        test: (0..test).map(|n| shard(5 + n)).collect(),
    }
}
