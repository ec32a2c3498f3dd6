//! One unit from its files to its answer.

use crate::{
    data::{Shards, read},
    error::TrainError,
    evaluate::{Measure, evaluate},
    keeper::Keeper,
    model::Model,
    tally::ClassTally,
    train::{Reached, train},
};
use sojourn_model::{Lineage, given_checkpoint, initial_checkpoint};
use sojourn_protocol::{
    manifest::Shard,
    position::batches,
    report::{Evaluated, Sums, Trained},
    trainer::{Progress, RunUnit, Told, TrainerLine},
    unit::{Base, Evaluation, Hop, Unit},
};
use std::{
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

/// Hears of a running unit, and may break a hop off; says for how long it has had the unit stand still.
pub(crate) type Listener<'a> = dyn FnMut(Told) -> ControlFlow<(), Duration> + 'a;

/// Does a unit.
pub(crate) fn run(
    request: &RunUnit,
    shards: &mut Shards,
    listener: &mut Listener<'_>,
) -> Result<TrainerLine, TrainError> {
    match &request.unit {
        Unit::Train(hop) => {
            let until = request.until.map_or(hop.batches(), |until| until.min(hop.batches()));
            run_hop(hop, until, request, shards, listener).map(TrainerLine::Trained)
        }
        Unit::Evaluate(evaluation) => {
            run_evaluation(evaluation, request, shards, listener).map(TrainerLine::Evaluated)
        }
    }
}

/// Trains a hop up to batch `until`, or to where it is broken off, and writes the checkpoint.
pub(crate) fn run_hop(
    hop: &Hop,
    until: u32,
    request: &RunUnit,
    shards: &mut Shards,
    listener: &mut Listener<'_>,
) -> Result<Trained, TrainError> {
    if hop.context.config.training.batch_size == 0 {
        return Err(TrainError::Unit("`batch_size` can't be 0".into()));
    }
    if hop.start.batch >= until {
        let text = format!("the unit starts at batch {} of {until}", hop.start.batch);
        return Err(TrainError::Unit(text));
    }
    let data = shards.get(&hop.shard, &hop.context, &request.files)?;
    let checkpoint = match hop.base {
        Base::Initial { seed } => initial_checkpoint(&hop.context, seed, Lineage::initial(seed))?,
        Base::Given { seed, parameters } => {
            let parameters = read(&request.files, parameters.sha256)?;
            given_checkpoint(&hop.context, &parameters, Lineage::initial(seed))?
        }
        Base::Checkpoint { blob, .. } => read(&request.files, blob.sha256)?,
    };
    let mut model = Model::load(&hop.context, &checkpoint, shards.device())?;
    drop(checkpoint);
    check_base(hop, &model.lineage)?;
    let of = until - hop.start.batch;
    let mut started = Instant::now();
    let every = request.keep_every.map(|every| Duration::from_millis(every.0));
    let mut keeper = Keeper::new(every, started);
    let (sums, end) = train(hop, until, &mut model, &data, &mut |reached: Reached<'_>| {
        let end = reached.end;
        let began = Instant::now();
        if end < until && keeper.is_due(began) {
            reached.model.check_finite()?;
            let sums = reached.sums.so_far()?;
            let trained = Ended { end, sums, train_micros: micros(started) };
            let kept = trained.save(hop, reached.model, &request.part(end));
            keeper.tried(began, Instant::now());
            // The hop itself may yet find room for its checkpoint.
            let not_kept = |error: TrainError| Told::NotKept(error.to_failure().message);
            let _ = listener(kept.map_or_else(not_kept, Told::Kept));
        }
        Ok(match listener(Told::Progress(Progress { done: end - hop.start.batch, of })) {
            // It is no time of training.
            ControlFlow::Continue(still) => {
                started += still;
                ControlFlow::Continue(())
            }
            ControlFlow::Break(()) => ControlFlow::Break(()),
        })
    })?;
    let ended = Ended { end, sums, train_micros: micros(started) };
    ended.save(hop, &model, &request.output)
}

/// A hop, or the part of it that is trained.
struct Ended {
    /// The batch before which it ends.
    end: u32,
    sums: Sums,
    train_micros: u64,
}

impl Ended {
    /// Writes the checkpoint.
    fn save(self, hop: &Hop, model: &Model, output: &Path) -> Result<Trained, TrainError> {
        let Self { end, sums, train_micros } = self;
        let end = hop.position_at(end);
        let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position: end };
        let checkpoint = model.save(&lineage, output)?;
        Ok(Trained { base: hop.base.version(), checkpoint, end, sums, train_micros })
    }
}

fn run_evaluation(
    evaluation: &Evaluation,
    request: &RunUnit,
    shards: &mut Shards,
    listener: &mut Listener<'_>,
) -> Result<Evaluated, TrainError> {
    let checkpoint = read(&request.files, evaluation.checkpoint.sha256)?;
    let model = Model::load(&evaluation.context, &checkpoint, shards.device())?;
    drop(checkpoint);
    if model.lineage.trial != evaluation.trial {
        let (is, must) = (model.lineage.trial, evaluation.trial);
        return Err(TrainError::Unit(format!("a checkpoint of trial {is}, expected trial {must}")));
    }
    let training = &evaluation.context.config.training;
    // The rows go through in chunks; told are batches, as of a hop.
    let batches_of = |shard: &Shard| batches(u64::from(shard.rows), training.batch_size);
    let of = evaluation.shards.iter().map(batches_of).fold(0, u32::saturating_add);
    let mut before = 0u32;
    let mut started = Instant::now();
    let measure = Measure { loss: training.loss, counting: evaluation.counting };
    let mut by_class = ClassTally::new(evaluation.counting.by_class, evaluation.context.outputs)?;
    let mut sums = Vec::with_capacity(evaluation.shards.len());
    for shard in &evaluation.shards {
        let data = shards.get(shard, &evaluation.context, &request.files)?;
        let all = batches_of(shard);
        sums.push(evaluate(&model, measure, &data, &mut by_class, &mut |rows| {
            let whole = rows / u64::from(training.batch_size.max(1));
            let done = if rows < u64::from(shard.rows) { whole } else { u64::from(all) };
            let done = u32::try_from(done).unwrap_or(all);
            // Of half an evaluation nobody has any use.
            let told = Told::Progress(Progress { done: before.saturating_add(done), of });
            if let ControlFlow::Continue(still) = listener(told) {
                started += still;
            }
        })?);
        before = before.saturating_add(all);
    }
    let by_class = by_class.finish()?;
    let train_micros = micros(started);
    Ok(Evaluated { version: evaluation.version, shards: sums, by_class, train_micros })
}

/// Is the base where the unit starts? A wrong one would be trained and only then refused.
fn check_base(hop: &Hop, lineage: &Lineage) -> Result<(), TrainError> {
    let refuse = |text: String| Err(TrainError::Unit(text));
    let (says, start) = (lineage.position, hop.start);
    if says.step != start.step {
        let (is, must) = (says.step, start.step);
        return refuse(format!("the base checkpoint is at step {is}, the unit starts at {must}"));
    }
    if matches!(hop.base, Base::Initial { .. } | Base::Given { .. }) {
        return Ok(());
    }
    if lineage.trial != hop.trial {
        let (is, must) = (lineage.trial, hop.trial);
        return refuse(format!("the base is a checkpoint of trial {is}, expected trial {must}"));
    }
    let goes_on = (lineage.hop_seed, says) == (hop.seed, start);
    // Between a part and the rest other shards of the epoch may have had their turn.
    let between = says.epoch == start.epoch && says.shard != start.shard;
    if start.batch > 0 && !goes_on && !between {
        return refuse("the base isn't the part of the hop that the unit goes on with".into());
    }
    Ok(())
}

fn micros(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}
