//! What units take of the machine's memory, beside what the server and clients expect that they take at least.

use super::{Trainer, line, request};
use sojourn_model::{ModelSize, Place, Work};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::Version,
    manifest::DataSplit,
    metrics::Counting,
    spec::{Architecture, Optimizer, OptimizerName},
    time::Millis,
    trainer::{RunUnit, TrainerLine, TrainerRequest, TrainerUpdate},
    unit::{Evaluation, Unit},
};
use std::{path::Path, sync::Arc};
use tempfile::TempDir;

/// A model of 4 million parameters, beside which activations and rows are nothing.
const WIDE: u32 = 2000;
/// Pages and what libtorch keeps for later make so many percent less or more of it.
const TOLERANCE: u64 = 5;

impl Trainer {
    /// The most that was resident while it did a unit.
    fn peak(&mut self, request: &RunUnit) -> u64 {
        let request = TrainerRequest::Run(Box::new(request.clone()));
        self.send(&serde_json::to_string(&request).unwrap());
        let mut peak = None;
        loop {
            match line(&mut self.lines) {
                TrainerLine::Update(TrainerUpdate::PeakMemory(bytes)) => peak = Some(bytes),
                TrainerLine::Update(_) => {}
                TrainerLine::Trained(_) | TrainerLine::Evaluated(_) => return peak.unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A hop of a model, parts of which are kept after each batch.
fn hop(folder: &Path, model: Architecture, optimizer: Optimizer) -> RunUnit {
    let TrainerRequest::Run(mut run) = request(folder, 32, 8) else { panic!("a unit") };
    let Unit::Train(hop) = &mut run.unit else { panic!("a hop") };
    let context = Arc::make_mut(&mut hop.context);
    context.config.model = model;
    context.config.training.optimizer = optimizer;
    run.keep_every = Some(Millis(0));
    *run
}

/// The evaluation of what a hop has made.
fn evaluation(of: &RunUnit) -> RunUnit {
    let Unit::Train(hop) = &of.unit else { panic!("a hop") };
    let bytes = std::fs::read(&of.output).unwrap();
    let checkpoint = BlobRef { sha256: Digest::of(&bytes), bytes: bytes.len() as u64 };
    let mut run = of.clone();
    run.files.insert(checkpoint.sha256, of.output.clone());
    run.keep_every = None;
    run.unit = Unit::Evaluate(Evaluation {
        job: hop.job,
        trial: hop.trial,
        epoch: hop.start.epoch,
        split: DataSplit::Valid,
        version: Version(1),
        checkpoint,
        shards: vec![hop.shard],
        counting: Counting::default(),
        context: hop.context.clone(),
    });
    run
}

/// Is what was measured what is expected, but for the tolerance, and no less than three quarters of it?
fn check(what: &str, expected: u64, measured: u64) {
    println!("{what}: {expected} expected, {measured} measured");
    assert!(
        measured <= expected * (100 + TOLERANCE) / 100,
        "{what} takes {measured} bytes, and {expected} were expected"
    );
    assert!(
        expected * 10 <= measured * 13,
        "{what} takes {measured} bytes only, and {expected} were expected"
    );
}

/// What a unit takes more than a small one that the same process has done before it. What libtorch keeps of a large one would be
/// the next one's: so each is measured in a process of its own.
fn measured(small: &RunUnit, large: &RunUnit) -> u64 {
    let mut trainer = Trainer::start();
    let before = trainer.peak(small);
    trainer.peak(large) - before
}

#[test]
fn units_take_as_much_memory_as_is_expected_of_them() {
    let sgd = Optimizer::new(OptimizerName::Sgd, 0.01);
    for (name, optimizer) in [
        ("AdamW", Optimizer::new(OptimizerName::Adamw, 0.001)),
        ("SGD with momentum", Optimizer { momentum: 0.9, ..sgd }),
        ("SGD", sgd),
    ] {
        let (small, large) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let small = hop(small.path(), Architecture::mlp([2]), optimizer);
        let large = hop(large.path(), Architecture::mlp([WIDE, WIDE]), optimizer);
        let Unit::Train(of) = &large.unit else { panic!("a hop") };
        let training = &of.context.config.training;
        let size = ModelSize::of(&of.context).unwrap();
        let expected = |work| size.least_memory(training, work, Place::Machine);
        let trained = measured(&small, &large);
        check(&format!("a hop with {name}"), expected(Work::Training), trained);
        let evaluated = measured(&small, &evaluation(&large));
        check(&format!("an evaluation with {name}"), expected(Work::Evaluation), evaluated);
    }
}
