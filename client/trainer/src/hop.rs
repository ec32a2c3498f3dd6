//! A hop, and those that follow it in the same unit, from their files to one checkpoint.
//!
//! The model stays in memory from one hop to the next: nothing of it depends on where it was before, so the
//! bytes are those of each hop done alone on the checkpoint of the one before it.

use crate::{
    data::{Dataset, Shards},
    error::TrainError,
    files::{Files, read},
    listener::{Listener, micros},
    model::Model,
    save_interval::SaveInterval,
    train::{BatchEnd, train},
};
use sojourn_model::{Lineage, base_checkpoint};
use sojourn_protocol::{
    digest::BlobRef,
    ids::Version,
    manifest::Shard,
    position::Position,
    report::{Sums, Trained},
    trainer::{Progress, RunUnit, TrainerUpdate},
    unit::{Base, Hop, ShardSegment},
};
use std::{
    borrow::Cow,
    ops::ControlFlow,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

/// Trains a hop, and those that follow it, up to batch `until` of the last one, or to where it is broken off,
/// and writes the checkpoint.
pub(crate) fn run_hop(
    hop: &Hop,
    until: u32,
    request: &RunUnit,
    shards: &mut Shards,
    listener: &mut dyn Listener,
) -> Result<Trained, TrainError> {
    if hop.context.config.training.batch_size == 0 {
        return Err(TrainError::Unit("`batch_size` can't be 0".into()));
    }
    let mut segments = segments_of(hop, until)?.into_iter();
    let Some((first, first_until)) = segments.next() else {
        return Err(TrainError::Unit("the unit has no shard".into()));
    };
    let data = shards.get(&first.shard, &hop.context, &request.files)?;
    let stored = |blob: BlobRef| read(&request.files, blob.sha256);
    let checkpoint = base_checkpoint(&hop.context, hop.base, stored)?;
    let program = shards.program(&hop.context, &request.files)?;
    let mut model = Model::load(&hop.context, &checkpoint, program, shards.device())?;
    drop(checkpoint);
    check_base(hop, &model.lineage)?;
    let every = request.keep_every.map(|every| Duration::from_millis(every.0));
    let started = Instant::now();
    let of = segments.as_slice().iter().map(|(next, until)| until - next.start.batch).sum::<u32>();
    let mut run = Run {
        hop,
        request,
        files: Cow::Borrowed(&request.files),
        started,
        save_interval: SaveInterval::new(every, started),
        before: Sums::default(),
        done: 0,
        of: of + (first_until - first.start.batch),
    };
    let mut ended = run.train(first, first_until, &mut model, &data, listener)?;
    drop(data);
    for (next, until) in segments {
        if ended.interrupted {
            break;
        }
        let began = Instant::now();
        let data = run.next_shard(&next.shard, shards, listener);
        // It is no time of training.
        run.started += began.elapsed();
        let Some(data) = data else { break };
        ended = run.train(next, until, &mut model, &data, listener)?;
    }
    run.save(&ended, &model, &request.output)
}

/// The hops of a unit, and before which of its batches each is to stop.
fn segments_of(hop: &Hop, until: u32) -> Result<Vec<(ShardSegment, u32)>, TrainError> {
    let mut segments: Vec<(ShardSegment, u32)> =
        hop.segments().map(|stretch| (stretch, stretch.end.batch)).collect();
    if let Some((_, end)) = segments.last_mut() {
        *end = until;
    }
    match segments.iter().find(|(stretch, until)| stretch.start.batch >= *until) {
        None => Ok(segments),
        Some((stretch, until)) => {
            let text = format!("the unit starts at batch {} of {until}", stretch.start.batch);
            Err(TrainError::Unit(text))
        }
    }
}

/// A unit that is trained.
struct Run<'a> {
    hop: &'a Hop,
    request: &'a RunUnit,
    /// The files of the request, and those that have come since.
    files: Cow<'a, Files>,
    /// When, had it done nothing but train.
    started: Instant,
    save_interval: SaveInterval,
    /// Sums of the hops that are whole.
    before: Sums,
    /// Batches of them.
    done: u32,
    /// Batches of all.
    of: u32,
}

/// How far a unit has come.
struct Ended {
    on: ShardSegment,
    /// The batch before which it ends.
    end: u32,
    sums: Sums,
    interrupted: bool,
}

impl Run<'_> {
    /// The data of the next hop, once it is here; none where the unit ends before that hop.
    fn next_shard(
        &mut self,
        shard: &Shard,
        shards: &mut Shards,
        listener: &mut dyn Listener,
    ) -> Option<Rc<Dataset>> {
        let blob = shard.blob.sha256;
        if self.request.pending.contains(&blob) && !self.files.contains_key(&blob) {
            self.files.to_mut().insert(blob, listener.wait_for(blob)?);
        }
        match shards.get(shard, &self.hop.context, &self.files) {
            Ok(data) => Some(data),
            Err(error) => {
                // The hops before it are a result. The next unit begins with this shard, and reports the error.
                let why = error.to_failure().message;
                eprintln!("the hop over the next shard can't begin: {why}");
                None
            }
        }
    }

    /// Trains one of its hops.
    fn train(
        &mut self,
        on: ShardSegment,
        until: u32,
        model: &mut Model,
        data: &Dataset,
        listener: &mut dyn Listener,
    ) -> Result<Ended, TrainError> {
        let mut interrupted = false;
        let context = &self.hop.context;
        let mut said = Sums::default();
        let (sums, end) = train(context, &on, until, model, data, &mut |reached: BatchEnd<'_>| {
            let end = reached.end;
            let done = self.done + (end - on.start.batch);
            let began = Instant::now();
            if done < self.of && self.save_interval.is_due(began) {
                reached.model.check_finite()?;
                let sums = self.before.clone().plus(&reached.sums.so_far()?);
                let part = Ended { on, end, sums, interrupted: false };
                let kept = self.save(&part, reached.model, &self.request.part(part.position()));
                self.save_interval.tried(began, Instant::now());
                // The hop itself may yet find room for its checkpoint.
                let not_kept =
                    |error: TrainError| TrainerUpdate::PartNotSaved(error.to_failure().message);
                let _ = listener.update(kept.map_or_else(not_kept, TrainerUpdate::PartSaved));
            }
            if listener.wants_usage() {
                let sums = reached.sums.so_far()?;
                listener.say_usage(mean_loss(&said, &sums));
                said = sums;
            }
            Ok(match listener.update(TrainerUpdate::Progress(Progress { done, of: self.of })) {
                // It is no time of training.
                ControlFlow::Continue(paused_for) => {
                    self.started += paused_for;
                    ControlFlow::Continue(())
                }
                ControlFlow::Break(()) => {
                    interrupted = true;
                    ControlFlow::Break(())
                }
            })
        })?;
        // A short hop is done before it is time.
        if sums.rows > said.rows {
            listener.say_usage(mean_loss(&said, &sums));
        }
        self.before = std::mem::take(&mut self.before).plus(&sums);
        self.done += end - on.start.batch;
        Ok(Ended { on, end, sums: self.before.clone(), interrupted })
    }

    /// Writes the checkpoint.
    fn save(&self, ended: &Ended, model: &Model, output: &Path) -> Result<Trained, TrainError> {
        let train_micros = micros(self.started);
        let end = ended.position();
        let lineage = Lineage { hop_seed: ended.on.seed, trial: self.hop.trial, position: end };
        let checkpoint = model.save(&lineage, output)?;
        let base = self.hop.base.version();
        Ok(Trained { base, checkpoint, end, sums: ended.sums.clone(), train_micros })
    }
}

impl Ended {
    fn position(&self) -> Position {
        Position { batch: self.end, step: self.on.step_at(self.end), ..self.on.start }
    }
}

/// The mean loss over the rows since other sums.
#[expect(clippy::cast_precision_loss, reason = "a shard has fewer than 2^53 rows")]
fn mean_loss(before: &Sums, now: &Sums) -> Option<f64> {
    let rows = now.rows.saturating_sub(before.rows);
    (rows > 0).then(|| (now.loss - before.loss) / rows as f64)
}

/// Is the base where the unit starts? A wrong one would be trained and only then refused.
fn check_base(hop: &Hop, lineage: &Lineage) -> Result<(), TrainError> {
    let refuse = |text: String| Err(TrainError::Unit(text));
    let (says, start) = (lineage.position, hop.start);
    // A stored version 0 is another trial's, of which this one is a clone: it may count steps of other batches.
    let is_origin = matches!(hop.base, Base::Checkpoint { version: Version(0), .. });
    if is_origin {
        return Ok(());
    }
    if says.step != start.step {
        let (is, must) = (says.step, start.step);
        return refuse(format!("the base checkpoint is at step {is}, the unit starts at {must}"));
    }
    if matches!(hop.base, Base::Initial { .. } | Base::InitialWeights { .. }) {
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

#[cfg(test)]
#[path = "hop_tests.rs"]
mod tests;
