//! One unit from its files to its answer.

use crate::{
    arrays::ArrayTally,
    data::Shards,
    error::TrainError,
    evaluate::evaluate,
    files::read,
    hop::run_hop,
    listener::{Listener, micros},
    model::Model,
    objective::Measure,
    tally::{ClassTally, Tally},
};
use sojourn_protocol::{
    ids::Version,
    manifest::Shard,
    quantity::SaturatingFrom as _,
    report::Evaluated,
    trainer::{Progress, RunUnit, TrainerLine, TrainerUpdate},
    unit::{Evaluation, Unit},
};
use std::{ops::ControlFlow, time::Instant};

/// Does a unit.
pub(crate) fn run(
    request: &RunUnit,
    shards: &mut Shards,
    listener: &mut dyn Listener,
) -> Result<TrainerLine, TrainError> {
    match &request.unit {
        Unit::Train(hop) => {
            let end = hop.segments().last().map_or(0, |last| last.end.batch);
            let until = request.until.map_or(end, |until| until.min(end));
            run_hop(hop, until, request, shards, listener).map(TrainerLine::Trained)
        }
        Unit::Evaluate(evaluation) => {
            run_evaluation(evaluation, request, shards, listener).map(TrainerLine::Evaluated)
        }
    }
}

fn run_evaluation(
    evaluation: &Evaluation,
    request: &RunUnit,
    shards: &mut Shards,
    listener: &mut dyn Listener,
) -> Result<Evaluated, TrainError> {
    let checkpoint = read(&request.files, evaluation.checkpoint.sha256)?;
    let program = shards.program(&evaluation.context, &request.files)?;
    let model = Model::load(&evaluation.context, &checkpoint, program, shards.device())?;
    drop(checkpoint);
    // Version 0 of a clone is the other trial's.
    let is_origin = evaluation.version == Version(0);
    if model.lineage.trial != evaluation.trial && !is_origin {
        let (is, must) = (model.lineage.trial, evaluation.trial);
        return Err(TrainError::Unit(format!("a checkpoint of trial {is}, expected trial {must}")));
    }
    let training = &evaluation.context.config.training;
    // The rows go through in chunks; told are batches, as of a hop.
    let batches_of = |shard: &Shard| training.minibatches().of_pass(shard.rows);
    let of = evaluation.shards.iter().map(batches_of).fold(0, u32::saturating_add);
    let mut before = 0u32;
    let mut started = Instant::now();
    let scaling = evaluation.context.targets.scaling();
    let measure = Measure { loss: training.loss, scaling, counting: evaluation.counting };
    let by_class = ClassTally::new(evaluation.counting.by_class, evaluation.context.outputs)?;
    let mut tally = Tally { by_class, arrays: ArrayTally::of(&model) };
    let mut sums = Vec::with_capacity(evaluation.shards.len());
    for shard in &evaluation.shards {
        let data = shards.get(shard, &evaluation.context, &request.files)?;
        let all = batches_of(shard);
        sums.push(evaluate(&model, measure, &data, &mut tally, &mut |rows| {
            let whole = rows / u64::from(training.batch_size.max(1));
            let done = if rows < u64::from(shard.rows) { whole } else { u64::from(all) };
            let done = u32::saturating_from(done);
            // Of half an evaluation nobody has any use.
            let told = TrainerUpdate::Progress(Progress { done: before.saturating_add(done), of });
            if listener.wants_usage() {
                listener.say_usage(None);
            }
            if let ControlFlow::Continue(paused_for) = listener.update(told) {
                started += paused_for;
            }
        })?);
        before = before.saturating_add(all);
    }
    let (by_class, arrays) = (tally.by_class.finish()?, tally.arrays.finish()?);
    let train_micros = micros(started);
    Ok(Evaluated { version: evaluation.version, shards: sums, by_class, arrays, train_micros })
}
