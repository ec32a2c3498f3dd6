//! The lines between a client and its trainer: an example of each, with every field.

use crate::file::{compare, context};
use serde_json::json;
use sojourn_model::initial_checkpoint;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    engine::Engine,
    ids::{Epoch, JobId, ShardId, TrialId, Version},
    manifest::{DataSplit, LabelScaling, Scaling, Shard, Targets},
    metrics::{ByClass, ClassDetail, ClassTotals, Counting},
    position::Position,
    report::{Evaluated, Failure, FailureKind, Sums, Trained},
    spec::{Architecture, Loss, Optimizer, OptimizerName, Sampling},
    sum_array::SumArray,
    time::Millis,
    trainer::{
        Hello, Pace, Predict, Predicted, Progress, RunUnit, ShardArrived, TRAINER_PROTOCOL,
        TrainerLine, TrainerRequest, TrainerUpdate,
    },
    unit::{Base, Evaluation, Hop, NextHop, TrialContext, Unit},
};
use std::collections::{BTreeMap, BTreeSet};

const ADAMW: Optimizer = Optimizer::new(OptimizerName::Adamw, 0.01);

fn blob(name: &str) -> BlobRef {
    BlobRef { sha256: Digest::of(name.as_bytes()), bytes: 1000 }
}

fn shard(name: &str, rows: u32) -> Shard {
    Shard { blob: blob(name), rows }
}

fn files(blobs: &[BlobRef]) -> BTreeMap<Digest, std::path::PathBuf> {
    blobs.iter().map(|blob| (blob.sha256, format!("/cache/{}", blob.sha256).into())).collect()
}

/// Classes with weights, drawn equally often.
fn classes() -> TrialContext {
    let mut context = context(Architecture::mlp([3]), &[4], ADAMW);
    context.config.training.clip_norm = Some(1.0);
    context.config.training.sampling = Sampling::Balanced;
    context.targets = Targets::Weighted(vec![1.0, 2.5]);
    context.scaling = Scaling::Standard(blob("scaling"));
    context.pinned_threads = Some(1);
    context
}

/// Numbers that are scaled.
fn numbers() -> TrialContext {
    let mut context = context(Architecture::mlp([]), &[4], ADAMW);
    context.config.training.loss = Loss::Mse;
    context.outputs = 1;
    context.targets = Targets::Standard(LabelScaling { mean: 152.0, std: 77.0 });
    context.scaling = Scaling::Constant(0.00392156862745098);
    context
}

fn place(shard: u32, batch: u32, step: u64) -> Position {
    Position { epoch: Epoch(1), shard: ShardId(shard), batch, step }
}

/// The rest of a hop, and a further one.
fn hop(base: Base) -> Hop {
    Hop {
        job: JobId(1),
        trial: TrialId(2),
        base,
        start: place(4, 5, 21),
        shard: shard("shard 4", 61),
        seed: 77,
        context: classes().into(),
        then: vec![NextHop { shard_id: ShardId(1), shard: shard("shard 1", 20), seed: u64::MAX }],
        until: Some(2),
    }
}

#[test]
fn lines_are_those_of_the_file() {
    let checkpoint = Base::Checkpoint { version: Version(6), blob: blob("checkpoint") };
    let needed = ["checkpoint", "shard 4", "scaling"].map(blob);
    let train = TrainerRequest::Run(Box::new(RunUnit {
        unit: Unit::Train(hop(checkpoint)),
        files: files(&needed),
        pending: BTreeSet::from([blob("shard 1").sha256]),
        output: "/slot/output".into(),
        until: Some(1),
        keep_every: Some(Millis(60_000)),
    }));
    let evaluate = TrainerRequest::Run(Box::new(RunUnit {
        unit: Unit::Evaluate(Evaluation {
            job: JobId(1),
            trial: TrialId(2),
            epoch: Epoch(1),
            version: Version(7),
            checkpoint: blob("checkpoint"),
            shards: vec![shard("shard 8", 100)],
            split: DataSplit::Test,
            counting: Counting { top_k: Some(5), by_class: ClassDetail::Totals },
            context: classes().into(),
        }),
        files: files(&["checkpoint", "shard 8", "scaling"].map(blob)),
        pending: BTreeSet::new(),
        output: "/slot/output".into(),
        until: None,
        keep_every: None,
    }));
    let predict = TrainerRequest::Predict(Box::new(Predict {
        context: numbers(),
        checkpoint: blob("checkpoint").sha256,
        files: files(&[blob("checkpoint")]),
        rows: "/slot/rows".into(),
        output: "/slot/outputs".into(),
    }));
    let (arrived, path) = (blob("shard 1").sha256, "/cache/shard-1".into());
    let requests = [
        train,
        evaluate,
        predict,
        TrainerRequest::Stop,
        TrainerRequest::Pace(Pace::percent(50).unwrap()),
        TrainerRequest::ShardArrived(ShardArrived { blob: arrived, path }),
    ];
    let bases = [
        Base::Initial { seed: 5 },
        Base::InitialWeights { seed: 5, parameters: blob("weights") },
        checkpoint,
    ];
    let contexts = [classes(), numbers()];
    compare(
        "lines.json",
        &json!({"requests": requests, "bases": bases, "contexts": contexts, "answers": answers()}),
    );
    // A model that can be trained: no example is of one that can't.
    for context in contexts {
        initial_checkpoint(&context, 1, sojourn_model::Lineage::initial(1)).unwrap();
    }
}

fn answers() -> Vec<TrainerLine> {
    let sums = Sums { rows: 29, loss: 12.5, correct: Some(21), ..Sums::default() };
    let trained = Trained {
        base: Version(6),
        checkpoint: blob("result"),
        end: place(1, 1, 25),
        sums: sums.clone(),
        train_micros: 12_345,
    };
    let totals =
        ClassTotals { labelled: vec![15, 14], predicted: vec![17, 12], correct: vec![12, 9] };
    let evaluated = Evaluated {
        version: Version(7),
        shards: vec![Sums { top_k: Some(29), ..sums }],
        by_class: Some(ByClass::Totals(totals)),
        arrays: BTreeMap::new(),
        train_micros: 678,
    };
    let pairs = SumArray { shape: vec![2, 2], numbers: vec![12.0, 3.0, 5.0, 9.0] };
    let of_graph = Evaluated {
        shards: vec![Sums { rows: 29, loss: 12.5, ..Sums::default() }],
        by_class: None,
        arrays: [("pairs".to_owned(), pairs)].into(),
        ..evaluated.clone()
    };
    let hello = Hello {
        protocol: TRAINER_PROTOCOL,
        engine: Engine {
            name: "numpy".into(),
            framework: "numpy 2.3.1".into(),
            models: vec!["mlp".into()],
        },
        threads: 1,
        numeric_class: Digest::of(b"calibration"),
        flops: 1.5e10,
        device: "cpu".into(),
    };
    let failed =
        |kind, message: &str| TrainerLine::Failed(Failure { kind, message: message.into() });
    let updates = [
        TrainerUpdate::Progress(Progress { done: 3, of: 4 }),
        TrainerUpdate::PartSaved(trained.clone()),
        TrainerUpdate::PartNotSaved("no space left on device".into()),
        TrainerUpdate::ShardNeeded(blob("shard 1").sha256),
        TrainerUpdate::PeakMemory(64 << 20),
    ];
    let mut lines = vec![TrainerLine::Hello(hello)];
    lines.extend(updates.map(TrainerLine::Update));
    lines.extend([
        TrainerLine::Trained(trained),
        TrainerLine::Evaluated(evaluated),
        TrainerLine::Evaluated(of_graph),
        TrainerLine::Predicted(Predicted { rows: 3 }),
        failed(FailureKind::NonFinite, "the loss of step 25 is NaN"),
        failed(FailureKind::Trainer, "the shard has other rows than the unit says"),
        failed(FailureKind::OutOfMemory, "no memory is left"),
        failed(FailureKind::Damaged, "a blob's file has been altered"),
        failed(FailureKind::Unsupported, "this trainer trains no `cnn`"),
        failed(FailureKind::WrongUnit, "the shard has other rows than the unit says"),
    ]);
    lines
}
