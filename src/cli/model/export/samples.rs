//! A job for tests: trials over two shards, whose names and lengths the test chooses.

use super::answers::{Answers, Fresh, TrialRecord};
use serde_json::{Value, json};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    jobfile,
    machines::{CostsView, JobCost, TrialCost},
    manifest::{DataManifest, DataSplit, Labels, Scaling, Shard, Targets},
    metrics::Metrics,
    money::MicroUsd,
    position::Position,
    report::Sums,
    time::UnixMillis,
    unit::TrialContext,
    view::{
        BestView, CurvePoint, EvaluationResult, EvaluationState, EvaluationView, EventView,
        HopRecord, JobDetail, JobState, JobView, TrialHistory, TrialState, TrialView,
    },
};
use std::collections::BTreeMap;

const JOB: &str = r#"name = "iris"
seed = 3
[data]
train = "t.csv"
label = "y"
shards = 2
[[model]]
arch = "mlp"
hidden = { choice = [[4], [8, 4]] }
dropout = { choice = [0.0, 0.25] }
[training]
epochs = 9
optimizer = { name = "adam", lr = { choice = [0.001, 0.003] } }
"#;

/// A trial: its name, and the epochs that it has trained of nine.
#[derive(Debug, Clone)]
pub(in crate::cli::model) struct Sample {
    pub(in crate::cli::model) name: String,
    pub(in crate::cli::model) epochs: u32,
}

/// The time of the first event.
pub(in crate::cli::model) const BEGUN: UnixMillis = UnixMillis(1_700_000_000_000);

fn blob(of: &str) -> BlobRef {
    BlobRef { sha256: Digest::of(of.as_bytes()), bytes: 1_000 }
}

/// The answers of a server about a job with these trials: those of nine epochs have finished, the first of them is tested, and
/// each cost a cent.
pub(in crate::cli::model) fn answers(samples: &[Sample]) -> Answers {
    let (fresh, costs) = fresh(samples);
    Answers::of(JobId(1), fresh, &[], &costs).unwrap()
}

/// The same, before they are put together.
pub(in crate::cli::model) fn fresh(samples: &[Sample]) -> (Fresh, CostsView) {
    let spec = jobfile::parse(JOB).unwrap();
    let shard = Shard { blob: blob("shard"), rows: 70 };
    let data = DataManifest {
        columns: Vec::new(),
        shape: vec![2],
        features: vec!["a".into(), "b".into()],
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: vec![shard; 2],
        valid: vec![shard],
        test: vec![shard],
    };
    let space = sojourn_workgen::trials(&spec).unwrap();
    let mut journal = Events::default();
    let (mut trials, mut records) = (Vec::new(), BTreeMap::new());
    for (id, (sample, of)) in (0..).map(TrialId).zip(samples.iter().zip(space.iter().cycle())) {
        let context = TrialContext {
            config: of.config.clone(),
            columns: Vec::new(),
            shape: vec![2],
            outputs: 2,
            scaling: data.scaling,
            targets: data.targets.clone(),
            total_steps: 54,
            pinned_threads: None,
        };
        let mut hops = Vec::new();
        let mut curve = Vec::new();
        for epoch in (0..sample.epochs).map(Epoch) {
            hops.push(journal.hop(id, epoch, 0));
            hops.push(journal.hop(id, epoch, 1));
            curve.push(journal.evaluation(id, epoch).into());
        }
        let checkpoint = hops.last().map(|hop| hop.checkpoint);
        let best = checkpoint.map(|checkpoint| BestView {
            trial: id,
            name: sample.name.clone(),
            epoch: Epoch(0),
            value: 0.5,
            checkpoint,
            unverified: 0,
        });
        let is_finished = sample.epochs == 9;
        let test = checkpoint.filter(|_| is_finished && id == TrialId(0)).map(|checkpoint| {
            let metrics = Metrics::of(
                spec.training.loss,
                &spec.search,
                &sums(0),
                None,
                None,
                &BTreeMap::new(),
            );
            let result = EvaluationResult {
                at: journal.now(),
                metrics,
                by_class: None,
                arrays: BTreeMap::new(),
                verified: None,
            };
            let state = EvaluationState::Done(result);
            EvaluationView { trial: id, split: DataSplit::Test, epoch: Epoch(0), checkpoint, state }
        });
        trials.push(TrialView {
            trial: id,
            name: sample.name.clone(),
            state: if is_finished { TrialState::Finished } else { TrialState::Running },
            phase: None,
            arch: "mlp".into(),
            choices: of.choices.clone(),
            origin: None,
            priority: 0,
            epoch: Epoch(sample.epochs),
            epochs: 9,
            hops: hops.len() as u64,
            version: Version(sample.epochs * 2),
            checkpoint,
            numeric_class: None,
            refit: None,
            curve,
            stopped: None,
            rung: None,
            best,
            test,
            unverified: 0,
            waiting: None,
            residence: None,
        });
        let history = TrialHistory {
            job: JobId(1),
            trial: id,
            job_seed: 3,
            context: context.into(),
            former: Vec::new(),
            data: data.clone(),
            numeric_class: None,
            initial_weights: None,
            origin: None,
            merge: None,
            hops,
        };
        records.insert(id, TrialRecord::of(&history));
    }
    let costs = costs(&trials);
    let ended = trials.iter().all(|trial| trial.state == TrialState::Finished);
    let summary = summary(trials.len(), ended);
    let detail = JobDetail { summary, spec, space: None, data };
    (Fresh { detail, trials, records, events: journal.events }, costs)
}

fn sums(epoch: u32) -> Sums {
    Sums { rows: 70, loss: 35.0, correct: Some(7 * u64::from(epoch + 1)), ..Sums::default() }
}

/// A journal, with an event a second.
#[derive(Default)]
struct Events {
    events: Vec<EventView>,
    leases: u64,
}

impl Events {
    fn now(&self) -> UnixMillis {
        UnixMillis(BEGUN.0 + 1000 * self.events.len() as u64)
    }

    fn push(&mut self, kind: &str, event: Value) {
        let position = self.events.len() as u64 + 1;
        self.events.push(EventView {
            position,
            at: self.now(),
            kind: kind.into(),
            event,
            text: String::new(),
            decision: None,
        });
    }

    fn grant(&mut self, unit: Value) -> LeaseId {
        self.leases += 1;
        let (lease, more) = (self.leases, "a newer server says more");
        let grant = json!({"lease": lease, "host": 1, "device": "cpu", "unit": unit, "more": more});
        self.push("lease-granted", grant);
        LeaseId(lease)
    }

    /// A hop of three batches: granted, reported two seconds later.
    fn hop(&mut self, trial: TrialId, epoch: Epoch, shard: u32) -> HopRecord {
        let unit =
            json!({"train": {"job": 1, "trial": trial, "epoch": epoch, "shard": shard, "from": 0}});
        let lease = self.grant(unit);
        let step = u64::from(epoch.0) * 6 + u64::from(shard) * 3;
        let start = Position { epoch, shard: ShardId(shard), batch: 0, step };
        let end = Position { batch: 3, step: step + 3, ..start };
        let version = Version(epoch.0 * 2 + shard + 1);
        let checkpoint = blob(&format!("{trial} {version}"));
        self.push("hosts-seen", json!({"hosts": [1]}));
        let sums = json!({"rows": 70, "loss": 35.0});
        let trained = json!({
            "base": version.0 - 1, "checkpoint": checkpoint, "end": end, "sums": sums, "train_micros": 1_500_000
        });
        let report = json!({"lease": lease, "outcome": {"trained": trained}});
        self.push("report-acknowledged", json!({"report": report, "host": 1}));
        let (then, merged, verified) = (Vec::new(), None, None);
        HopRecord {
            version,
            lease,
            host: HostId(1),
            start,
            end,
            checkpoint,
            then,
            merged,
            verified,
        }
    }

    fn evaluation(&mut self, trial: TrialId, epoch: Epoch) -> CurvePoint {
        let lease = self.grant(json!({"evaluate": {"job": 1, "trial": trial, "epoch": epoch}}));
        self.push("evaluated", json!({"lease": lease, "epoch": epoch, "valid": sums(epoch.0)}));
        let (train, valid) = (sums(epoch.0), sums(epoch.0));
        CurvePoint {
            epoch,
            train,
            valid,
            f1: None,
            own: BTreeMap::new(),
            verified: None,
            at: UnixMillis(0),
        }
    }
}

fn costs(trials: &[TrialView]) -> CostsView {
    let cent = MicroUsd(10_000);
    let trials =
        trials.iter().map(|view| TrialCost { trial: view.trial, cost: cent, on_demand_cost: cent });
    let job = JobCost {
        job: JobId(1),
        name: "iris".into(),
        cost: cent,
        on_demand_cost: cent,
        budget: None,
        trials: trials.collect(),
    };
    CostsView {
        at: BEGUN,
        cost: cent,
        on_demand_cost: cent,
        unused: MicroUsd(0),
        deleted: MicroUsd(0),
        jobs: vec![job],
        machines: Vec::new(),
    }
}

fn summary(trials: usize, ended: bool) -> JobView {
    JobView {
        job: JobId(1),
        name: "iris".into(),
        state: if ended { JobState::Finished } else { JobState::Running },
        owner: None,
        submitted_at: UnixMillis(BEGUN.0 - 1000),
        ended_at: None,
        metric: "valid/accuracy".into(),
        trials: u32::try_from(trials).unwrap(),
        trials_finished: 0,
        trials_failed: 0,
        hops: 0,
        hops_expected: 0,
        evaluations: 0,
        evaluations_expected: 0,
        leases_live: 0,
        leases_expired: 0,
        leases_returned: 0,
        speculative_leases: 0,
        superseded: 0,
        rejected: 0,
        unverified: 0,
        train_micros: 0,
        disk_bytes: 0,
        thinned: false,
        best: None,
        test: None,
        waiting: None,
        search_ended: None,
        doubts: Vec::new(),
        time_left: None,
        deadline: None,
        note: String::new(),
    }
}
