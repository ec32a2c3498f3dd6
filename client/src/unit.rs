//! One lease from its arrival to a finished result: fetch what it begins with, wait for a slot, run while the rest
//! comes, keep. A task of its own, so that dropping the lease is aborting the task: every step leaves nothing
//! behind when it is cut.

use crate::{
    coming::{Coming, Needs},
    delivery::{self, First},
    error::ClientError,
    folder::{Workbench, free_bytes},
    host::{Host, Leaving},
    limits::Reserved,
    outbox::Finished,
    part::Part,
    runner::{RunnerError, UnitRunner},
    trouble::Trouble,
    watchdog::Watchdog,
};
use sojourn_protocol::{
    digest::BlobRef,
    error::error_chain,
    position::batches,
    quantity::SaturatingFrom as _,
    reason::ReleaseReason,
    report::{Failure, FailureKind, Outcome, Report},
    time::Millis,
    trainer::{Progress, RunUnit, ShardArrived, TrainerUpdate},
    unit::{Lease, Unit},
};
use std::{fs, io, sync::Arc, time::Duration};
use tokio::sync::mpsc::UnboundedReceiver;

/// Works a lease off: its result delivered, or the lease given back.
pub(crate) async fn work_off<R: UnitRunner>(host: Arc<Host<R>>, lease: Lease) {
    // Kept until its result is there.
    let Some(mut reserved) = reserve(&host, &lease) else {
        if host.volume.is_open() {
            // Before it is free, because it may come again at once. A smaller one may fit.
            host.rest.begin(ReleaseReason::MonthlyBudget.as_str());
        }
        tracing::info!(lease = %lease.id, "gave a unit back, which needs more bytes than are left of this month's");
        host.give_back(lease.id, ReleaseReason::MonthlyBudget).await;
        return;
    };
    let _named = host.units.name(&lease);
    match attempt(&host, &lease, &mut reserved).await {
        Ok(result) => {
            host.rest.well();
            let base = model_of(&lease.unit);
            delivery::deliver(&host, result, First::Upload { base }).await;
        }
        Err(Trouble::Over) => {}
        // With the others that are given back at the end.
        Err(Trouble::Leaving) => host.table.has_no_part(lease.id),
        Err(Trouble::End(failure)) => host.note(&failure),
        Err(Trouble::Unlike(error)) => host.end(ClientError::Unlike(error)),
        Err(Trouble::Unit(reason)) => {
            // Before it is free, because it may come again at once.
            let seconds = host.rest.begin(&reason).as_secs();
            if host.give_back(lease.id, reason.clone()).await {
                tracing::warn!(lease = %lease.id, reason, seconds, "gave a unit back; resting");
            } else {
                // A lease that was over says nothing of the next.
                host.rest.call_off();
            }
        }
        Err(Trouble::Machine(reason)) => {
            let seconds = host.rest.begin(&reason).as_secs();
            tracing::error!(lease = %lease.id, reason, seconds, "giving a unit back and resting");
            host.give_back(lease.id, reason).await;
        }
    }
}

/// Of this month's bytes, what the unit will take.
fn reserve<R: UnitRunner>(host: &Host<R>, lease: &Lease) -> Option<Reserved> {
    let missing = lease.unit.blobs().into_iter().filter(|blob| !host.cache.has(&blob.sha256));
    let fetch = missing.map(|blob| blob.bytes).fold(0, u64::saturating_add);
    host.volume.reserve(fetch, lease.upload_bytes)
}

/// A unit's result, on disk.
async fn attempt<R: UnitRunner>(
    host: &Arc<Host<R>>,
    lease: &Lease,
    reserved: &mut Reserved,
) -> Result<Finished, Trouble> {
    let mut part = Part::new(&host.outbox, lease);
    let finished = match run(host, lease, reserved, &mut part).await {
        Ok(finished) => finished,
        Err(trouble) => {
            let counts = matches!(trouble, Trouble::Machine(_) | Trouble::Leaving);
            let Some(finished) = part.take().filter(|_| counts) else {
                host.outbox.remove(lease.id);
                return Err(trouble);
            };
            let reason = trouble.reason();
            tracing::warn!(lease = %lease.id, reason, "a hop has come to nothing but the part that was kept");
            finished
        }
    };
    let made = finished.checkpoint.as_ref().map(|(blob, path)| {
        // The trial's next hop may come here: its base is on this disk.
        host.cache.adopt(*blob, path);
        *blob
    });
    let goes_on = |made: &BlobRef| is_whole(&lease.unit, &finished) && host.cache.has(&made.sha256);
    let made = made.filter(goes_on);
    if !host.table.finished(lease.id, made) {
        // Dropped while the last lines ran, which have nowhere to be aborted at.
        host.outbox.remove(lease.id);
        return Err(Trouble::Over);
    }
    Ok(finished)
}

async fn run<R: UnitRunner>(
    host: &Arc<Host<R>>,
    lease: &Lease,
    reserved: &mut Reserved,
    part: &mut Part<'_>,
) -> Result<Finished, Trouble> {
    let needs = Needs::of(host, lease);
    let pins = needs.first(host, lease).await?;
    leave_room(host, lease);
    let watchdog = Watchdog::new(host.timing.standstill);
    let (coming, said) = Coming::new(host, lease, &watchdog, needs);
    let files = pins.iter().map(|(digest, pin)| (*digest, pin.path().to_owned())).collect();
    let workbench = host.folder.workbench(lease.id).map_err(|error| {
        Trouble::Machine(format!("there is no place for the checkpoint: {error}"))
    })?;
    let run = RunUnit {
        unit: lease.unit.clone(),
        files,
        pending: coming.names(),
        output: workbench.output(),
        until: None,
        keep_every: host.timing.keep_every.map(millis),
    };
    let outcome = tokio::select! {
        outcome = train(host, run, lease, part, &coming, said) => outcome?,
        never = coming.bring(|| reserved.fetched()) => match never {},
    };
    if let Some(trouble) = coming.trouble() {
        let reason = trouble.reason();
        tracing::warn!(lease = %lease.id, reason, "a shard can't be had; the unit ends with what is trained");
    }
    match outcome {
        // The disk's doing, not the unit's: what is wrong is found out and fetched again the next time.
        Outcome::Failed(Failure { kind: FailureKind::Damaged, message }) => {
            host.cache.doubt(pins.keys().chain(&coming.here()));
            return Err(Trouble::Machine(message));
        }
        // It may have been killed or stopped by a person, or for the memory of others. If the unit is to
        // blame, it won't come further from where the part ends.
        Outcome::Failed(Failure {
            kind: FailureKind::Died | FailureKind::Stalled | FailureKind::OutOfMemory,
            message,
        }) if part.is_kept() => return Err(Trouble::Machine(message)),
        _ => {}
    }
    let outcome = checked(&workbench, lease, outcome).await?;
    match &outcome {
        Outcome::Failed(failure) => {
            let error = failure.message.as_str();
            tracing::warn!(lease = %lease.id, kind = ?failure.kind, error, "the trainer failed");
        }
        Outcome::Trained(_) | Outcome::Evaluated(_) => {
            tracing::debug!(lease = %lease.id, "unit finished");
        }
    }
    let report = Report { lease: lease.id, outcome };
    let stored = host.outbox.store(report, lease.heartbeat_every, &workbench.output());
    let finished = stored.map_err(|error| {
        Trouble::Machine(format!("the finished result can't be kept: {}", error_chain(&error)))
    })?;
    part.replaced();
    Ok(finished)
}

/// Room on the disk for the part that is kept, and what takes its place.
pub(crate) fn leave_room<R: UnitRunner>(host: &Host<R>, lease: &Lease) {
    if lease.upload_bytes > 0 {
        host.cache.leave_room(lease.upload_bytes.saturating_mul(2), free_bytes);
    }
}

/// Has a slot do the unit, once one is free. It is stopped where something that it needs can't be had.
async fn train<R: UnitRunner>(
    host: &Arc<Host<R>>,
    run: RunUnit,
    lease: &Lease,
    part: &mut Part<'_>,
    coming: &Coming<'_, R>,
    files: UnboundedReceiver<ShardArrived>,
) -> Result<Outcome, Trouble> {
    let Some(device) = host.devices.get(&lease.device) else {
        return Err(Trouble::Unit(format!("this machine has no device `{}`", lease.device)));
    };
    let seat = async {
        host.owner.runs().await;
        device.seats.take().await
    };
    let mut seat = tokio::select! {
        seat = seat => seat,
        trouble = coming.failed() => return Err(trouble),
    };
    device.greet(&mut seat).await.map_err(no_trainer)?;
    tracing::debug!(lease = %lease.id, "unit started");
    host.units.started(lease.id);
    host.table.running(lease.id, Progress { done: 0, of: batches_of(&lease.unit) });
    if matches!(lease.unit, Unit::Train(_)) {
        host.table.ends_early(lease.id);
    }
    let part_of = |end| run.part(end);
    let pace = || host.owner.pace(device.kind());
    let quota = || host.means.share(&host.owner.limits());
    let watchdog = coming.watchdog;
    // It begins now.
    watchdog.is_busy();
    let mut peak_memory = None;
    let on_told = |told| match told {
        TrainerUpdate::Progress(progress) => {
            watchdog.done(progress.done);
            host.table.running(lease.id, progress);
        }
        TrainerUpdate::PartSaved(trained) => {
            watchdog.is_busy();
            let path = part_of(trained.end);
            part.keep(trained, &path);
        }
        TrainerUpdate::PartNotSaved(reason) => {
            watchdog.is_busy();
            part.not_kept(&reason);
        }
        TrainerUpdate::ShardNeeded(blob) => coming.awaited(blob),
        TrainerUpdate::PeakMemory(bytes) => peak_memory = Some(bytes),
    };
    let stop = async {
        tokio::select! {
            () = host.ends_early(lease.id) => {}
            () = coming.fails() => {}
        }
    };
    // The next unit starts when this ends; what follows is not the slot's business.
    let outcome = tokio::select! {
        outcome = seat.runner().run(run.clone(), on_told, stop, pace(), files) => {
            outcome.map_err(no_trainer)?
        }
        still = watchdog.stalled(pace(), quota) => stalled(still),
        () = host.leaving(Leaving::Now) => return Err(Trouble::Leaving),
    };
    device.measure(&host.measurements, &lease.unit, &outcome, (peak_memory, host.owner.memory()));
    host.last_failure.note(&outcome);
    host.judge(&lease.device, seat, &outcome);
    Ok(outcome)
}

/// What is reported of a trainer that makes no progress. It is ended with the future that waited for it.
fn stalled(still: Duration) -> Outcome {
    let seconds = still.as_secs();
    let message = format!("the trainer made no progress for {seconds} s, and was ended");
    Outcome::Failed(Failure { kind: FailureKind::Stalled, message })
}

fn millis(duration: Duration) -> Millis {
    Millis(u64::saturating_from(duration.as_millis()))
}

fn no_trainer(error: RunnerError) -> Trouble {
    if error.is_for_good() { Trouble::Unlike(error) } else { Trouble::Machine(error_chain(&error)) }
}

/// The outcome, if what it promises is there.
async fn checked(
    workbench: &Workbench,
    lease: &Lease,
    outcome: Outcome,
) -> Result<Outcome, Trouble> {
    let message = match &outcome {
        Outcome::Evaluated(_) => return Ok(outcome),
        Outcome::Failed(failure) => {
            // A trainer that can't write says so as it can; the unit isn't to blame for a full disk.
            return match workbench.probe(lease.upload_bytes).await {
                Ok(()) => Ok(outcome),
                Err(error) => Err(Trouble::Machine(with_cause(&failure.message, &error))),
            };
        }
        Outcome::Trained(trained) => {
            let promised = trained.checkpoint.bytes;
            match fs::metadata(workbench.output()) {
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

/// A trainer's message and why it came to that, where it doesn't say so itself.
fn with_cause(message: &str, cause: &io::Error) -> String {
    let cause = cause.to_string();
    if message.contains(&cause) { message.to_owned() } else { format!("{message} ({cause})") }
}

/// Has it come to the end of its last leg?
fn is_whole(unit: &Unit, finished: &Finished) -> bool {
    match (unit, &finished.report.outcome) {
        (Unit::Train(hop), Outcome::Trained(trained)) => {
            hop.segments().last().is_some_and(|last| last.end == trained.end)
        }
        _ => false,
    }
}

pub(crate) fn model_of(unit: &Unit) -> Option<BlobRef> {
    match unit {
        Unit::Train(hop) => hop.base.blob(),
        Unit::Evaluate(evaluation) => Some(evaluation.checkpoint),
    }
}

fn batches_of(unit: &Unit) -> u32 {
    match unit {
        Unit::Train(hop) => hop.to_train(),
        Unit::Evaluate(evaluation) => {
            let size = evaluation.context.config.training.batch_size;
            let shards = evaluation.shards.iter();
            shards.map(|shard| batches(u64::from(shard.rows), size)).fold(0, u32::saturating_add)
        }
    }
}
