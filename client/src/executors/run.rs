//! Runs one unit in a slot, from its blobs to a result on the disk.

use super::partial_checkpoint::PartialCheckpoint;
use crate::{
    context::Context,
    error::ClientError,
    limits::Kind,
    message::{EndedUnit, Message},
    storage::{folder::ScratchDir, outbox::Finished},
    trainers::{
        cpu_share::{KeptCpuShare, UnitPace},
        devices::Device,
        pool::Trainer,
        runner::{RunnerError, UnitRunner},
        watchdog::Watchdog,
    },
};
use sojourn_client_core::{Event, TrainerState, UnitError};
use sojourn_http::trace::UNITS;
use sojourn_protocol::{
    digest::Digest,
    error::error_chain,
    quantity::{Micros, SaturatingFrom as _, mul_div},
    report::{Failure, FailureKind, Outcome, Report, Trained},
    time::Millis,
    trainer::{RunUnit, ShardArrived, TrainerUpdate, UsageSample},
    unit::{Lease, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::sync::{Mutex, mpsc::UnboundedReceiver, oneshot, watch};

/// How soon a unit is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// When it is done.
    No,
    /// After the batch that it is at.
    AfterBatch,
    /// At once.
    Now,
}

/// A unit to run.
pub(crate) struct Job<R> {
    pub(crate) lease: Box<Lease>,
    /// The trainer of its slot.
    pub(crate) trainer: Arc<Mutex<Trainer<R>>>,
    /// The blobs that it begins with.
    pub(crate) files: BTreeMap<Digest, PathBuf>,
    /// The shards that it needs later.
    pub(crate) coming: BTreeSet<Digest>,
    /// Says that one of those is here.
    pub(crate) here: UnboundedReceiver<ShardArrived>,
    pub(crate) stop: watch::Receiver<Stop>,
    /// The unit's CPU share, as it is kept.
    pub(crate) cpu_share: watch::Receiver<KeptCpuShare>,
    pub(crate) watchdog: Arc<Watchdog>,
    /// Dropped once nothing of it is left.
    pub(crate) ended: oneshot::Sender<()>,
}

/// Why there is no result.
enum RunError {
    /// The daemon has to end: its trainers' arithmetic has changed.
    Unlike(RunnerError),
    /// Something of this machine failed.
    Machine(String),
    /// The trainer was ended with the daemon.
    Stopped,
}

impl RunError {
    fn reason(&self) -> String {
        match self {
            Self::Unlike(error) => error.to_string(),
            Self::Machine(reason) => reason.clone(),
            Self::Stopped => "the client is stopping, and the trainer isn't".to_owned(),
        }
    }
}

/// Runs the unit.
pub(crate) async fn run<R: UnitRunner>(context: Arc<Context<R>>, job: Job<R>) {
    let Job { lease, trainer, files, coming, here, stop, cpu_share, watchdog, ended } = job;
    let mut part = PartialCheckpoint::new(&context.storage.outbox, &lease);
    let unit_run = UnitRun { context: &context, lease: &lease, trainer, stop, cpu_share, watchdog };
    let result = unit_run.attempt(files, coming, here, &mut part).await;
    let message = match result {
        Ok(finished) => Message::UnitEnded(Box::new(unit_run.keep(finished))),
        Err(error) => {
            let counts = matches!(error, RunError::Machine(_) | RunError::Stopped);
            let reason = error.reason();
            match part.take().filter(|_| counts) {
                Some(finished) => {
                    let lease = lease.id;
                    tracing::warn!(%lease, reason, "a hop failed; its partial checkpoint is sent");
                    Message::UnitEnded(Box::new(unit_run.keep(finished)))
                }
                None => {
                    context.storage.outbox.remove(lease.id);
                    let error = match error {
                        RunError::Stopped => UnitError::Stopped,
                        RunError::Machine(reason) => UnitError::Machine(reason),
                        RunError::Unlike(error) => {
                            context.end(ClientError::Unlike(error));
                            UnitError::Machine(reason)
                        }
                    };
                    Message::Event(Event::UnitFailed(lease.id, error, None))
                }
            }
        }
    };
    context.send(message);
    drop(ended);
}

/// One run of a unit in its slot.
struct UnitRun<'a, R> {
    context: &'a Context<R>,
    lease: &'a Lease,
    trainer: Arc<Mutex<Trainer<R>>>,
    stop: watch::Receiver<Stop>,
    cpu_share: watch::Receiver<KeptCpuShare>,
    watchdog: Arc<Watchdog>,
}

impl<R: UnitRunner> UnitRun<'_, R> {
    /// Takes the checkpoint of a result into the cache: the trial's next hop may come here.
    fn keep(&self, finished: Finished) -> EndedUnit {
        let cache = &self.context.storage.cache;
        let made = finished.checkpoint.as_ref().map(|(blob, path)| {
            cache.adopt(*blob, path);
            *blob
        });
        let is_whole = is_whole(&self.lease.unit, &finished);
        let continues_from = made.filter(|made| is_whole && cache.has(&made.sha256));
        let base = sojourn_client_core::model_of(&self.lease.unit);
        EndedUnit { finished, continues_from, base }
    }

    async fn attempt(
        &self,
        files: BTreeMap<Digest, PathBuf>,
        coming: BTreeSet<Digest>,
        here: UnboundedReceiver<ShardArrived>,
        part: &mut PartialCheckpoint<'_>,
    ) -> Result<Finished, RunError> {
        let Self { context, lease, .. } = *self;
        context.leave_room(lease.upload_bytes);
        let writes = matches!(lease.unit, Unit::Train(_));
        let scratch = context.storage.folder.scratch_dir(lease.id, writes).map_err(|error| {
            RunError::Machine(format!("there is no place for the checkpoint: {error}"))
        })?;
        let blobs: Vec<Digest> = files.keys().chain(&coming).copied().collect();
        let run = RunUnit {
            unit: lease.unit.clone(),
            files,
            pending: coming,
            output: scratch.output(),
            until: None,
            keep_every: context.timing.keep_every.map(millis),
        };
        let outcome = self.train(run, here, part).await?;
        match outcome {
            // A fault of the disk, not of the unit: these blobs are verified before they are used again.
            Outcome::Failed(Failure { kind: FailureKind::Damaged, message }) => {
                context.storage.cache.doubt(&blobs);
                return Err(RunError::Machine(message));
            }
            // A person or the kernel may have killed it. If the unit itself is at fault, the next attempt fails at the same
            // batch.
            Outcome::Failed(Failure {
                kind: FailureKind::Died | FailureKind::Stalled | FailureKind::OutOfMemory,
                message,
            }) if part.is_kept() => return Err(RunError::Machine(message)),
            _ => {}
        }
        let outcome = checked(&scratch, lease, outcome).await?;
        match &outcome {
            Outcome::Failed(failure) => {
                let error = failure.message.as_str();
                tracing::warn!(lease = %lease.id, kind = ?failure.kind, error, "the trainer failed");
            }
            Outcome::Trained(_) | Outcome::Evaluated(_) => {
                tracing::debug!(target: UNITS, lease = lease.id.0, "unit finished");
            }
        }
        let report = Report { lease: lease.id, outcome: self.as_told(outcome) };
        let outbox = &context.storage.outbox;
        let stored = outbox.store(report, lease.heartbeat_every, &scratch.output());
        let finished = stored.map_err(|error| {
            let error = error_chain(&error);
            RunError::Machine(format!("the finished result can't be kept: {error}"))
        })?;
        part.replaced();
        Ok(finished)
    }

    /// An outcome as the server is told: without the end of the trainer's log where the owner keeps it on the machine.
    fn as_told(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Failed(failure) if !self.context.sends_log => {
                Outcome::Failed(failure.without_log())
            }
            other => other,
        }
    }

    /// Has the slot's trainer do the unit.
    async fn train(
        &self,
        run: RunUnit,
        here: UnboundedReceiver<ShardArrived>,
        part: &mut PartialCheckpoint<'_>,
    ) -> Result<Outcome, RunError> {
        let Self { context, lease, watchdog, .. } = self;
        let Some(device) = context.trainers.devices.get(&lease.device) else {
            return Err(RunError::Machine(format!(
                "this machine has no device `{}`",
                lease.device
            )));
        };
        let mut trainer = Arc::clone(&self.trainer).lock_owned().await;
        device.check(&mut trainer, lease).await.map_err(no_trainer)?;
        tracing::debug!(target: UNITS, lease = lease.id.0, "unit started");
        let part_of = |end| run.part(end);
        let mut pace = UnitPace::new(context.owner.pace(device.kind()), self.cpu_share.clone());
        let (to_trainer, to_watchdog) = (pace.subscribe(), pace.subscribe());
        let quota = || {
            let quota = context.trainers.enforcement.ratio(&context.owner.limits());
            let kernel = u32::from(self.cpu_share.borrow().kernel) * u32::from(quota);
            u8::try_from(kernel.div_ceil(100)).unwrap_or(quota)
        };
        // The time until the first progress counts from now.
        watchdog.is_busy();
        let mut peak_memory = None;
        let running = context.trainers.usages.begin(lease.id);
        let on_update = |update| match update {
            TrainerUpdate::Progress(progress) => {
                watchdog.done(progress.done);
                context.tell(Event::Progress(lease.id, progress));
            }
            TrainerUpdate::PartSaved(trained) => {
                watchdog.is_busy();
                let path = part_of(trained.end);
                if part.keep(trained, &path) {
                    context.tell(Event::PartSaved(lease.id));
                }
            }
            TrainerUpdate::PartNotSaved(reason) => {
                watchdog.is_busy();
                part.not_kept(&reason);
            }
            TrainerUpdate::ShardNeeded(blob) => {
                watchdog.is_busy();
                context.tell(Event::ShardNeeded(lease.id, blob));
            }
            TrainerUpdate::PeakMemory(bytes) => peak_memory = Some(bytes),
            TrainerUpdate::Usage(sample) => {
                running.took(&sample);
                if lease.cpu_shares.is_some() {
                    let kept = *self.cpu_share.borrow();
                    context.tell(self.usage_event(device.kind(), sample, kept));
                }
            }
        };
        // The slot is free when this ends. First the pace: a trainer that is paused hears of it before anything else.
        let outcome = tokio::select! {
            biased;
            never = pace.keep() => match never {},
            outcome = trainer.runner.run(run.clone(), on_update, self.stops(Stop::AfterBatch), to_trainer, here) => {
                outcome.map_err(no_trainer)?
            }
            still = watchdog.stalled(to_watchdog, quota) => stalled(still),
            () = self.stops(Stop::Now) => return Err(RunError::Stopped),
        };
        drop(trainer);
        drop(running);
        let outcome = match outcome {
            // What is measured is the machine's speed, whatever its CPU share was.
            Outcome::Trained(trained) => {
                let train_micros = pace.as_equal(trained.train_micros);
                Outcome::Trained(Trained { train_micros, ..trained })
            }
            other => other,
        };
        self.note(device, &outcome, peak_memory);
        Ok(outcome)
    }

    /// The event that tells of a sample.
    fn usage_event(&self, kind: Kind, sample: UsageSample, kept: KeptCpuShare) -> Event {
        let Self { context, lease, .. } = self;
        match kind {
            Kind::Cpu => {
                let capacity = context.trainers.enforcement.capacity(&context.owner.limits());
                Event::Usage(lease.id, sample, capacity)
            }
            // The processor time of its trainer says nothing of the GPU's: that is busy unless it pauses.
            Kind::Gpu => {
                let busy = Micros(mul_div(sample.span.0, kept.pace.get().into(), 100));
                Event::Usage(lease.id, UsageSample { busy, ..sample }, 1.0)
            }
        }
    }

    fn note(&self, device: &Device<R>, outcome: &Outcome, peak_memory: Option<u64>) {
        let Self { context, lease, .. } = self;
        let took = (peak_memory, context.owner.memory());
        device.measure(&context.storage.measurements, lease, outcome, took);
        context.trainers.last_failure.note(outcome);
        context.tell(Event::SlotFree(lease.id, TrainerState::after(outcome)));
    }

    /// Ends when the unit is to stop this soon.
    async fn stops(&self, level: Stop) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|stop| *stop >= level).await.is_err() {
            // The driver has forgotten the unit, and is about to abort this.
            std::future::pending().await
        }
    }
}

/// The outcome of a unit whose trainer makes no progress. The trainer ends with the future that waited for it.
fn stalled(still: Duration) -> Outcome {
    let seconds = still.as_secs();
    let message = format!("the trainer made no progress for {seconds} s, and was ended");
    Outcome::Failed(Failure { kind: FailureKind::Stalled, message })
}

fn millis(duration: Duration) -> Millis {
    Millis(u64::saturating_from(duration.as_millis()))
}

fn no_trainer(error: RunnerError) -> RunError {
    if error.is_for_good() {
        RunError::Unlike(error)
    } else {
        RunError::Machine(error_chain(&error))
    }
}

/// The outcome, if the checkpoint that it promises was written.
async fn checked(
    scratch: &ScratchDir,
    lease: &Lease,
    outcome: Outcome,
) -> Result<Outcome, RunError> {
    let message = match &outcome {
        Outcome::Evaluated(_) => return Ok(outcome),
        Outcome::Failed(failure) => {
            // The unit isn't at fault for a full disk.
            return match scratch.probe(lease.upload_bytes).await {
                Ok(()) => Ok(outcome),
                Err(error) => Err(RunError::Machine(with_cause(&failure.message, &error))),
            };
        }
        Outcome::Trained(trained) => {
            let promised = trained.checkpoint.bytes;
            match fs::metadata(scratch.output()) {
                Ok(meta) if meta.len() == promised && promised == lease.upload_bytes => {
                    return Ok(outcome);
                }
                Ok(meta) => format!(
                    "the checkpoint has {} bytes, the trainer said {promised}, the lease {}",
                    meta.len(),
                    lease.upload_bytes
                ),
                Err(error) => format!("the trainer said that it wrote a checkpoint: {error}"),
            }
        }
    };
    Ok(Outcome::Failed(Failure { kind: FailureKind::Trainer, message }))
}

/// A trainer's message, with its cause unless the message contains it.
fn with_cause(message: &str, cause: &io::Error) -> String {
    let cause = cause.to_string();
    if message.contains(&cause) { message.to_owned() } else { format!("{message} ({cause})") }
}

/// Whether the unit has trained all its hops to their ends.
fn is_whole(unit: &Unit, finished: &Finished) -> bool {
    match (unit, &finished.report.outcome) {
        (Unit::Train(hop), Outcome::Trained(trained)) => {
            hop.segments().last().is_some_and(|last| last.end == trained.end)
        }
        _ => false,
    }
}
