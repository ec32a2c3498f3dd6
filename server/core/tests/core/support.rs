//! A core with a small job and two hosts, and words to drive it with.

use sojourn_core::{
    Answer, AssimilationUnit, Command, Core, CoreConfig, Effect, Envelope, Event, MergeOffer,
    Query, Record, ReplyTo,
};
use sojourn_protocol::{
    api::{Held, HeldState, WorkAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    error::ApiError,
    ids::{HostId, JobId, LeaseId, TrialId, Version},
    inventory::{CPU, Demand, Device, Inventory, Links},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    metrics::{ByClass, ClassDetail, Confusion, Counting},
    report::{Evaluated, Failure, FailureKind, Outcome, Report, Sums, Trained},
    spec::{CombinationRule, JobSpec, PlacementSpec, Spread},
    time::{Millis, UnixMillis},
    unit::{Evaluation, Hop, Lease, Unit},
    view::{JobView, TrialView},
};
use sojourn_workgen::PolicyName;

pub(crate) const HOST: HostId = HostId(1);
pub(crate) const OTHER: HostId = HostId(2);
pub(crate) const JOB: JobId = JobId(1);

/// A core and its clock.
pub(crate) struct Bench {
    pub(crate) core: Core,
    pub(crate) now: u64,
    /// Plans that were asked for.
    pub(crate) plans: Vec<Effect>,
    /// The core's journal.
    pub(crate) journal: Vec<Record>,
}

impl Bench {
    /// Two enrolled hosts of one class that have shown themselves; no job.
    pub(crate) fn new() -> Self {
        Self::with_hops(1)
    }

    /// The same, where one lease is of at most so many hops.
    fn with_hops(most_hops: u32) -> Self {
        Self::of(most_hops, PolicyName::Ltrp)
    }

    fn of(most_hops: u32, policy: PolicyName) -> Self {
        let config = CoreConfig::with_lease_term(Millis::from_secs(10));
        Self::with_config(CoreConfig { most_hops: Some(most_hops), policy, ..config })
    }

    fn with_config(config: CoreConfig) -> Self {
        let mut bench =
            Self { core: Core::new(config), now: 1_000, plans: Vec::new(), journal: Vec::new() };
        for (name, host) in [("a", HOST), ("b", OTHER)] {
            let token_sha256 = Digest::of(name.as_bytes());
            let name = name.into();
            bench.events(Command::Enrol { to: ReplyTo(1), name, token_sha256 });
            bench.ask(host, request(0, Vec::new()));
        }
        bench
    }

    /// With a job of `trials` mlps over shards of 20 and 12 rows, batches of 8, `epochs` epochs.
    pub(crate) fn with_job(trials: u32, epochs: u32) -> Self {
        Self::with_job_on(data(), trials, epochs, "")
    }

    /// The same with test data.
    pub(crate) fn with_tested_job(trials: u32, epochs: u32) -> Self {
        Self::with_job_on(data_with_test(), trials, epochs, "")
    }

    /// The same on other data, with more text in its job file.
    pub(crate) fn with_job_on(data: DataManifest, trials: u32, epochs: u32, more: &str) -> Self {
        let mut bench = Self::new();
        bench.begin(data, trials, epochs, more);
        bench
    }

    /// With shards of 20, 12, 9 and 3 rows, and leases of at most so many hops.
    pub(crate) fn with_long_leases(most_hops: u32, trials: u32, epochs: u32) -> Self {
        Self::with_policy(PolicyName::Ltrp, most_hops, trials, epochs, "")
    }

    /// The same, by a policy, with more text in its job file.
    pub(crate) fn with_policy(
        policy: PolicyName,
        most_hops: u32,
        trials: u32,
        epochs: u32,
        more: &str,
    ) -> Self {
        let mut bench = Self::of(most_hops, policy);
        bench.begin(data_of_four(), trials, epochs, more);
        bench
    }

    /// With leases of one hop, of which copies may repeat so many per cent of the work.
    pub(crate) fn with_copies(most_copied: u32, trials: u32, epochs: u32, more: &str) -> Self {
        let config = CoreConfig::with_lease_term(Millis::from_secs(10));
        let (most_hops, policy) = (Some(1), PolicyName::Ltrp);
        let mut bench = Self::with_config(CoreConfig { most_hops, most_copied, policy, ..config });
        bench.begin(data(), trials, epochs, more);
        bench
    }

    /// With a policy, leases of at most so many hops, and copies of at most so many per cent of the work.
    pub(crate) fn with_all(
        policy: PolicyName,
        (most_hops, most_copied): (u32, u32),
        (trials, epochs): (u32, u32),
        placement: PlacementSpec,
        more: &str,
    ) -> Self {
        let config = CoreConfig::with_lease_term(Millis::from_secs(10));
        let config = CoreConfig { most_hops: Some(most_hops), policy, most_copied, ..config };
        let mut bench = Self::with_config(config);
        bench.begin_with(data_of_four(), JobSpec { placement, ..spec(trials, epochs, more) });
        bench
    }

    /// With a job over shards of 20, 12, 9 and 3 rows, whose results are taken in so.
    pub(crate) fn with_order(placement: &PlacementSpec, trials: u32, epochs: u32) -> Self {
        let mut bench = Self::new();
        let spec = JobSpec { placement: placement.clone(), ..spec(trials, epochs, "") };
        bench.begin_with(data_of_four(), spec);
        bench
    }

    fn begin(&mut self, data: DataManifest, trials: u32, epochs: u32, more: &str) {
        self.begin_with(data, spec(trials, epochs, more));
    }

    pub(crate) fn begin_with(&mut self, data: DataManifest, spec: JobSpec) {
        for blob in data.blobs() {
            self.events(Command::Published { to: ReplyTo(1), blob });
        }
        let (spec, data) = (Box::new(spec), Box::new(data));
        let submit = Command::Submit { to: ReplyTo(1), spec, data, again: false, nonce: None };
        let answer = self.answer(submit).unwrap();
        assert!(matches!(answer, Answer::Submitted(_)), "{answer:?}");
    }

    pub(crate) fn submit(
        &mut self,
        trials: u32,
        epochs: u32,
        again: bool,
    ) -> Result<Answer, ApiError> {
        self.submit_with(trials, epochs, again, "")
    }

    /// With more text in its job file.
    pub(crate) fn submit_with(
        &mut self,
        trials: u32,
        epochs: u32,
        again: bool,
        more: &str,
    ) -> Result<Answer, ApiError> {
        let spec = Box::new(spec(trials, epochs, more));
        let data = Box::new(data());
        self.answer(Command::Submit { to: ReplyTo(1), spec, data, again, nonce: None })
    }

    /// With this placement.
    pub(crate) fn submit_placed(&mut self, placement: &PlacementSpec) -> Result<Answer, ApiError> {
        let spec = Box::new(JobSpec { placement: placement.clone(), ..spec(1, 1, "") });
        let data = Box::new(data());
        self.answer(Command::Submit { to: ReplyTo(1), spec, data, again: false, nonce: None })
    }

    /// Submits one more job; says all that follows.
    pub(crate) fn submit_for_effects(
        &mut self,
        trials: u32,
        epochs: u32,
        more: &str,
    ) -> Vec<Effect> {
        let (spec, data) = (Box::new(spec(trials, epochs, more)), Box::new(data()));
        self.apply(Command::Submit { to: ReplyTo(1), spec, data, again: true, nonce: None })
    }

    pub(crate) fn apply(&mut self, command: Command) -> Vec<Effect> {
        let at = UnixMillis(self.now);
        let effects = self.core.apply(Envelope { at, seed: self.now, command }).unwrap();
        self.core.check_invariants().unwrap();
        let plans = effects.iter().filter(|effect| matches!(effect, Effect::Plan { .. }));
        self.plans.extend(plans.cloned());
        let records = effects.iter().filter_map(|effect| match effect {
            Effect::Persist(record) => Some(record.clone()),
            _ => None,
        });
        self.journal.extend(records);
        effects
    }

    /// The events that a command makes.
    pub(crate) fn events(&mut self, command: Command) -> Vec<Event> {
        events(self.apply(command))
    }

    /// The one reply to a command.
    pub(crate) fn answer(&mut self, command: Command) -> Result<Answer, ApiError> {
        let effects = self.apply(command);
        let mut replies = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reply { to: ReplyTo(1), answer, .. } => Some(answer.map(|answer| *answer)),
            _ => None,
        });
        let answer = replies.next().expect("a reply");
        assert_eq!(replies.next(), None, "one reply");
        answer
    }

    /// Asks without waiting.
    pub(crate) fn ask(&mut self, host: HostId, request: WorkRequest) -> WorkAnswer {
        match self.answer(Command::Ask { to: ReplyTo(1), host, request }) {
            Ok(Answer::Work(answer)) => *answer,
            other => panic!("{other:?}"),
        }
    }

    /// One new lease for an idle host that holds nothing.
    pub(crate) fn lease(&mut self, host: HostId) -> Lease {
        let mut leases = self.ask(host, request(1, Vec::new())).leases;
        assert_eq!(leases.len(), 1, "one lease");
        leases.remove(0)
    }

    /// A live lease of a host, sent again as the host says that it holds nothing.
    pub(crate) fn resent(&mut self, host: HostId, lease: LeaseId) -> Lease {
        let leases = self.ask(host, request(0, Vec::new())).leases;
        leases.into_iter().find(|sent| sent.id == lease).expect("it lives")
    }

    pub(crate) fn report(&mut self, host: HostId, report: Report) -> Result<Answer, ApiError> {
        let uploaded = match &report.outcome {
            Outcome::Trained(trained) => Some(trained.checkpoint),
            _ => None,
        };
        self.answer(Command::Report { to: ReplyTo(1), host, report, uploaded })
    }

    /// Reports a lease as done and has its hop assimilated; says the events of both.
    pub(crate) fn finish(&mut self, host: HostId, lease: &Lease) -> Vec<Event> {
        let report = done(lease);
        let uploaded = match &report.outcome {
            Outcome::Trained(trained) => Some(trained.checkpoint),
            _ => None,
        };
        let mut all = self.events(Command::Report { to: ReplyTo(1), host, report, uploaded });
        all.extend(self.assimilate());
        all
    }

    /// These hosts work, in turn, until the job has ended.
    pub(crate) fn work_to_the_end(&mut self, hosts: &[HostId]) {
        for _ in 0..1_000 {
            if self.core.state().jobs[&JOB].end.is_some() {
                return;
            }
            self.work_once(hosts);
        }
        panic!("the job doesn't end: {:?}", self.core.state().jobs[&JOB]);
    }

    /// Each of these hosts asks once, and does what it gets.
    pub(crate) fn work_once(&mut self, hosts: &[HostId]) {
        self.now += 100;
        for host in hosts {
            for lease in self.ask(*host, request(1, Vec::new())).leases {
                match &lease.unit {
                    Unit::Train(_) => drop(self.finish(*host, &lease)),
                    Unit::Evaluate(_) => drop(self.report(*host, done(&lease)).unwrap()),
                }
            }
        }
    }

    /// Takes what is to be assimilated and offers it.
    pub(crate) fn assimilate(&mut self) -> Vec<Event> {
        let answer = self.answer(Command::TakeAssimilation { to: ReplyTo(1), losses: true });
        let Ok(Answer::Assimilation(Some(unit))) = answer else { return Vec::new() };
        self.events(offer(&unit))
    }

    pub(crate) fn job(&mut self) -> JobView {
        match self.answer(Command::Query { to: ReplyTo(1), query: Query::Job { job: JOB } }) {
            Ok(Answer::Job(job)) => job.summary,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn trials(&mut self) -> Vec<TrialView> {
        match self.answer(Command::Query {
            to: ReplyTo(1),
            query: Query::Trials { job: JOB, from: TrialId(0), limit: u32::MAX },
        }) {
            Ok(Answer::Trials(trials)) => trials,
            other => panic!("{other:?}"),
        }
    }
}

/// An assimilator's offer of the version that it has produced.
pub(crate) fn offer(unit: &AssimilationUnit) -> Command {
    let AssimilationUnit { lease, version, trained, merge, .. } = unit;
    let made = |what: &str, bytes| {
        let sha256 = Digest::of(format!("{what} {version} by {lease}").as_bytes());
        BlobRef { sha256, bytes }
    };
    let merged = merge.as_ref().map(|merge| MergeOffer {
        state: made("state", 9),
        flush: merge.flush,
        in_flight: merge.in_flight,
    });
    let checkpoint = match merge {
        Some(_) => made("merged", trained.checkpoint.bytes),
        None => trained.checkpoint,
    };
    let (lease, version) = (*lease, *version);
    Command::OfferAssimilated { to: ReplyTo(1), lease, version, checkpoint, merged }
}

pub(crate) fn events(effects: Vec<Effect>) -> Vec<Event> {
    let persisted = effects.into_iter().filter_map(|effect| match effect {
        Effect::Persist(record) => Some(record.event),
        _ => None,
    });
    persisted.collect()
}

pub(crate) fn spec(trials: u32, epochs: u32, more: &str) -> JobSpec {
    let rates: Vec<String> = (1..=trials).map(|n| format!("0.{n}")).collect();
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = {epochs}\nbatch_size = 8\noptimizer = {{ name = \"sgd\", lr = {{ choice = [{}] }} }}\n{more}",
        rates.join(", ")
    );
    let mut spec = jobfile::parse(&text).unwrap();
    // With ten trials 0.1 and 0.10 are one rate, and two trials.
    spec.search.combinations = CombinationRule::All;
    // The order in which most tests expect trials; `depth.rs` is of the other one.
    if !more.contains("spread") {
        spec.search.spread = Spread::Breadth;
    }
    spec
}

fn shard(name: &str, rows: u32) -> Shard {
    Shard { blob: BlobRef { sha256: Digest::of(name.as_bytes()), bytes: 100 }, rows }
}

/// [`data_with_test`], with two more shards to train on.
pub(crate) fn data_of_four() -> DataManifest {
    let mut data = data_with_test();
    data.train.extend([shard("s2", 9), shard("s3", 3)]);
    data
}

/// [`data`], and test shards.
pub(crate) fn data_with_test() -> DataManifest {
    DataManifest { test: vec![shard("t0", 6), shard("t1", 2)], ..data() }
}

pub(crate) fn data() -> DataManifest {
    DataManifest {
        columns: Vec::new(),
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: vec![shard("s0", 20), shard("s1", 12)],
        valid: vec![shard("v0", 10), shard("v1", 5)],
        test: Vec::new(),
    }
}

/// An ask of a host with one slot that doesn't wait.
pub(crate) fn request(wanted: u32, holding: Vec<(LeaseId, HeldState)>) -> WorkRequest {
    WorkRequest {
        demand: vec![demand(1, wanted.min(1), wanted)],
        holding: holding.into_iter().map(|(lease, state)| Held::new(lease, state)).collect(),
        reported: Vec::new(),
        wait: Millis(0),
        inventory: Some(inventory("class")),
    }
}

/// The demand of a host's processor.
pub(crate) fn demand(slots: u32, idle: u32, wanted: u32) -> Demand {
    Demand { device: CPU.into(), slots, idle, wanted }
}

pub(crate) fn inventory(class: &str) -> Inventory {
    Inventory {
        cached: Vec::new(),
        devices: vec![Device::new(CPU, Digest::of(class.as_bytes()), 1e9)],
        client: "test".into(),
        links: Links::default(),
        cache: None,
        disk_is_low: false,
    }
}

pub(crate) fn hop(lease: &Lease) -> &Hop {
    match &lease.unit {
        Unit::Train(hop) => hop,
        Unit::Evaluate(_) => panic!("an evaluation: {lease:?}"),
    }
}

pub(crate) fn evaluation(lease: &Lease) -> &Evaluation {
    match &lease.unit {
        Unit::Evaluate(evaluation) => evaluation,
        Unit::Train(_) => panic!("a hop: {lease:?}"),
    }
}

/// The report of a host that did all of it.
pub(crate) fn done(lease: &Lease) -> Report {
    let outcome = match &lease.unit {
        Unit::Train(hop) => Outcome::Trained(trained_after(lease, hop.to_train())),
        Unit::Evaluate(evaluation) => Outcome::Evaluated(evaluated(evaluation, 1)),
    };
    Report { lease: lease.id, outcome }
}

/// The report of an evaluation with so many misses in each shard; labels are all of class 0.
pub(crate) fn evaluated(evaluation: &Evaluation, misses: u64) -> Evaluated {
    let Counting { top_k, by_class } = evaluation.counting;
    let sums = evaluation.shards.iter().map(|shard| Sums {
        rows: u64::from(shard.rows),
        loss: 2.0,
        correct: Some(u64::from(shard.rows) - misses),
        named: [].into(),
        top_k: top_k.map(|_| u64::from(shard.rows)),
    });
    let mut evaluated = Evaluated {
        version: evaluation.version,
        shards: sums.collect(),
        by_class: None,
        arrays: [].into(),
        train_micros: 10,
    };
    let sums = evaluated.sums();
    let correct = sums.correct.unwrap();
    let matrix = Confusion(vec![vec![correct, sums.rows - correct], vec![0, 0]]);
    evaluated.by_class = match by_class {
        ClassDetail::Nothing => None,
        ClassDetail::Totals => Some(ByClass::Totals(matrix.totals())),
        ClassDetail::Confusion => Some(ByClass::Confusion(matrix)),
    };
    evaluated
}

/// A result of a hop trained up to batch `end`.
pub(crate) fn trained(lease: &Lease, end: u32) -> Trained {
    trained_after(lease, end - hop(lease).start.batch)
}

/// A result of so many batches of a lease's way.
pub(crate) fn trained_after(lease: &Lease, batches: u32) -> Trained {
    let hop = hop(lease);
    let end = hop.position_after(batches);
    let name = format!("{:?} {} {end}", hop.base, lease.id);
    let rows = hop.rows_to(end).unwrap();
    Trained {
        base: hop.base.version(),
        checkpoint: BlobRef { sha256: Digest::of(name.as_bytes()), bytes: lease.upload_bytes },
        end,
        sums: Sums { rows, loss: 3.0, correct: Some(1), ..Sums::default() },
        train_micros: 1000,
    }
}

pub(crate) fn version(n: u32) -> Version {
    Version(n)
}

/// The host's trainer fails at the lease's unit.
pub(crate) fn fail(
    bench: &mut Bench,
    host: HostId,
    lease: LeaseId,
    kind: FailureKind,
    error: &str,
) {
    let failure = Failure { kind, message: error.into() };
    bench.report(host, Report { lease, outcome: Outcome::Failed(failure) }).unwrap();
}
