//! The memory that units take of a machine, beside the least that server and clients expect.

use super::{Trainer, line, request};
use sojourn_model::{ModelSize, Place, Work};
use sojourn_protocol::{
    spec::{Architecture, Optimizer, OptimizerName},
    time::Millis,
    trainer::{RunUnit, TrainerLine, TrainerRequest, TrainerUpdate},
    unit::Unit,
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

/// Memory that a unit takes beyond that of a small one that the same process has done before it. What libtorch keeps of a large one would be
/// the next one's: so each is measured in a process of its own.
fn measured(small: &RunUnit, large: &RunUnit) -> u64 {
    let mut trainer = Trainer::start();
    let before = trainer.peak(small);
    trainer.peak(large) - before
}

#[test]
fn a_hop_takes_as_much_memory_as_is_expected_of_it() {
    let optimizer = Optimizer::new(OptimizerName::Adamw, 0.001);
    let (small, large) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let small = hop(small.path(), Architecture::mlp([2]), optimizer);
    let large = hop(large.path(), Architecture::mlp([WIDE, WIDE]), optimizer);
    let Unit::Train(of) = &large.unit else { panic!("a hop") };
    let size = ModelSize::of(&of.context).unwrap();
    let training = &of.context.config.training;
    let expected = size.least_memory(training, Work::Training, Place::Machine);
    check("a hop with AdamW", expected, measured(&small, &large));
}
