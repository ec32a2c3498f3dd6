//! One assimilation: from the upload of a result to the offer of the version that it makes.

mod ending;

use crate::{
    canary::Losses,
    merge::{MergedVersion, VersionError, VersionMerger},
    queue::{Fault, Merged, NewVersion, Queue, QueueError, Unit, Work},
    range_leader::{Indexes, Leader},
    range_worker::{RangeWorker, RangedMerge},
    renewal::while_renewing,
    small_results::{MAX_SMALL_RESULT_BYTES, SmallResults},
    upload_source::{SourceError, UploadSource},
};
use bytes::Bytes;
use sojourn_blobs::{BlobError, BlobStore, HashedBytes};
use sojourn_codec::ranges::{Index, MAX_PIECE_BYTES};
use sojourn_http::{trace::UNITS, traced};
use sojourn_model::{CheckpointLayout, Lineage};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ranges::{RangeDone, RangeResultRequest, RangeWork},
    unit::Merge,
};
use sojourn_rules::{Checked, Next, Refusal, replace, screen};
use std::{error::Error, sync::Arc};
use tokio::runtime::Handle;

/// Models with larger checkpoints than this many bytes are merged by ranges, unless the operator says otherwise.
pub const DEFAULT_SPLIT_OVER: u64 = 256 << 20;
/// Ranges of a checkpoint that is just large enough to be split; a larger one has more.
const MIN_RANGES: u64 = 8;
/// Ranges of the largest checkpoint.
const MAX_RANGES: u64 = 4096;

/// How the assimilation of one unit ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The result is the trial's next version.
    Assimilated,
    /// The result was refused, for this reason.
    Rejected(String),
    /// The unit's report had already ended in another way.
    Stale,
}

/// How one look for work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// There was nothing to do.
    Nothing,
    /// A small result is being assimilated beside this thread.
    Begun,
    /// One unit has ended.
    Done(Outcome),
    /// A range of another process's merge is done.
    RangeDone,
    /// Storage or queue failed. The work comes again, and there may be more of it.
    Failed,
}

/// Why a unit couldn't be finished now. The queue hands it out again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipelineError {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the upload can't be read")]
    Upload(#[source] Box<dyn Error + Send + Sync>),
    #[error("the checkpoint can't be stored")]
    Store(#[source] BlobError),
    #[error("the upload can't be merged")]
    Merge(#[source] VersionError),
    #[error("blob `{0}` was just put in the store")]
    Reappeared(Digest),
    #[error("the published version is gone from the store")]
    Unpublished,
}

/// Checks uploads and makes them versions, one at a time.
#[derive(Debug)]
pub struct Assimilator<Q> {
    queue: Q,
    uploads: Box<dyn UploadSource>,
    blobs: BlobStore,
    runtime: Handle,
    merger: VersionMerger,
    ranges: RangeWorker,
    split_over: u64,
    small_results: Arc<SmallResults>,
}

impl<Q: Queue> Assimilator<Q> {
    /// An assimilator that takes work from a queue, reads the server's uploads, and reads and writes its blobs.
    pub fn new(queue: Q, uploads: impl UploadSource, blobs: BlobStore, runtime: Handle) -> Self {
        let merger = VersionMerger::new(blobs.clone(), runtime.clone());
        let ranges = RangeWorker::new(blobs.clone(), runtime.clone());
        let (uploads, split_over) = (Box::new(uploads), DEFAULT_SPLIT_OVER);
        let small_results = Arc::new(SmallResults::up_to(0));
        Self { queue, uploads, blobs, runtime, merger, ranges, split_over, small_results }
    }

    /// Assimilates so many small results at once beside the threads. Without this, none.
    #[must_use]
    pub fn with_small_results(self, most: usize) -> Self {
        Self { small_results: Arc::new(SmallResults::up_to(most)), ..self }
    }

    /// The small results under way beside the threads.
    pub(crate) const fn small_results(&self) -> &Arc<SmallResults> {
        &self.small_results
    }

    /// Merges models with larger checkpoints than this by ranges, which it shares with other processes. The result is
    /// the same.
    #[must_use]
    pub const fn with_split_over(mut self, bytes: u64) -> Self {
        self.split_over = bytes;
        self
    }

    /// Computes losses with `losses`, for jobs that check the loss of a result before it is merged.
    #[must_use]
    pub fn with_losses(mut self, losses: impl Losses) -> Self {
        self.merger.check_losses(losses);
        self
    }

    pub(crate) fn queue_waits(&self) -> bool {
        self.queue.waits()
    }

    /// Takes one unit from the queue and assimilates it. Blocks, so it is not for async tasks. A failure of storage or
    /// queue is logged; the unit then comes again.
    #[must_use]
    pub fn step(&self) -> Step {
        self.carry_out(self.take())
    }

    /// As [`Assimilator::step`], but a small result is only begun, and `failed` called if it fails. The next step after that
    /// fails, so that its thread pauses.
    pub(crate) fn step_beside(self: &Arc<Self>, failed: impl FnOnce() + Send + 'static) -> Step {
        if self.small_results.take_failure() {
            return Step::Failed;
        }
        let work = self.take();
        let permit = match &work {
            Ok(Some(Work::Unit(unit))) => self.small_results.permit(unit),
            _ => None,
        };
        let Some(permit) = permit else { return self.carry_out(work) };
        let this = Arc::clone(self);
        self.runtime.spawn_blocking(move || {
            if this.carry_out_small(work) == Step::Failed {
                permit.failed();
                failed();
            }
        });
        Step::Begun
    }

    /// Does a small result, and then others while there are any. So they don't wait for a thread that takes one at a time.
    fn carry_out_small(&self, mut work: Result<Option<Work>, QueueError>) -> Step {
        loop {
            let step = self.carry_out(work);
            let is_last = matches!(step, Step::Failed | Step::Nothing);
            if is_last || self.small_results.is_stopping() {
                return step;
            }
            let next = self.queue.take_small(MAX_SMALL_RESULT_BYTES);
            work = next.map(|unit| unit.map(Work::Unit));
        }
    }

    fn take(&self) -> Result<Option<Work>, QueueError> {
        self.queue.take(self.merger.checks_losses())
    }

    /// Does the work that was taken.
    fn carry_out(&self, taken: Result<Option<Work>, QueueError>) -> Step {
        match taken {
            Ok(Some(Work::Unit(unit))) => {
                let trace = self.queue.trace(unit.lease);
                let traced =
                    traced!("assimilate", trace, otel.kind = "consumer", lease = unit.lease.0);
                traced.run_blocking(|| self.carry_out_unit(&unit))
            }
            Ok(Some(Work::Range(work))) => {
                let trace = self.queue.trace(work.unit.lease);
                let (lease, range) = (work.unit.lease.0, work.left.range);
                let traced = traced!(
                    "merge range",
                    trace,
                    otel.kind = "consumer",
                    lease = lease,
                    range = range
                );
                traced.run_blocking(|| self.merge_range(&work))
            }
            Ok(None) => Step::Nothing,
            Err(error) => {
                tracing::warn!(%error, "can't take assimilation work");
                Step::Failed
            }
        }
    }

    fn carry_out_unit(&self, unit: &Unit) -> Step {
        tracing::debug!(target: UNITS, lease = unit.lease.0, claim = unit.claim.0, "unit taken");
        match while_renewing(&self.queue, unit, || self.assimilate(unit)) {
            Ok(outcome) => {
                let (lease, version) = (unit.lease.0, unit.version.0);
                tracing::debug!(target: UNITS, lease, version, ?outcome, "assimilation ended");
                Step::Done(outcome)
            }
            Err(error) => {
                let error = &error as &dyn Error;
                let lease = unit.lease.0;
                tracing::warn!(lease, error, "a unit can't be assimilated now; it comes again");
                Step::Failed
            }
        }
    }

    /// Does a range of another process's merge. Where that fails, some process gets the range again.
    fn merge_range(&self, work: &RangeWork) -> Step {
        let (lease, range) = (work.unit.lease, work.left.range);
        tracing::debug!(target: UNITS, lease = lease.0, range, "range taken");
        let made = match self.ranges.merge_for_leader(work, &*self.uploads) {
            Ok(made) => made,
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(lease = lease.0, range, error, "a range can't be merged");
                return Step::Failed;
            }
        };
        let made =
            RangeResultRequest { claim: work.unit.claim, done: RangeDone { range, result: made } };
        match self.queue.range_made(lease, &made) {
            Ok(offer) => {
                tracing::debug!(target: UNITS, lease = lease.0, range, ?offer, "range done");
                Step::RangeDone
            }
            Err(error) => {
                tracing::warn!(lease = lease.0, range, %error, "a finished range can't be reported");
                Step::Failed
            }
        }
    }

    fn assimilate(&self, unit: &Unit) -> Result<Outcome, PipelineError> {
        let (lease, checkpoint) = (unit.lease, unit.trained.checkpoint);
        let upload = match self.uploads.read(lease, checkpoint) {
            Ok(upload) => upload,
            Err(SourceError::Lost(why)) => return self.lost(unit, &why),
            Err(SourceError::Unreadable(error)) => return Err(PipelineError::Upload(error)),
        };
        let checked = CheckpointLayout::of(&unit.hop.context)
            .map_err(Refusal::Lineage)
            .and_then(|layout| Ok((check(unit, &layout, &upload)?, layout)));
        let (checked, layout) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return self.reject(unit, Fault::Host, refusal.to_string()),
        };
        tracing::debug!(target: UNITS, lease = unit.lease.0, "upload read and checked");
        // A screened upload has the same size as every checkpoint of its trial.
        let bytes = checkpoint.bytes;
        match &unit.merge {
            None => self.replace(unit, replace(&unit.hop, &checked), upload.clone()),
            Some(merge) if bytes > self.split_over => {
                let lineage = checked.lineage;
                self.merge_shared(unit, merge, layout, (upload.bytes(), lineage))
            }
            Some(merge) => self.merge(unit, merge, layout, upload.bytes()),
        }
    }

    /// Makes the upload itself the next version.
    fn replace(
        &self,
        unit: &Unit,
        next: Next,
        upload: HashedBytes,
    ) -> Result<Outcome, PipelineError> {
        let Next { version, checkpoint } = next;
        // Held until the offer is answered: a deletion in between would leave a version without bytes.
        let _hold = self.runtime.block_on(self.blobs.hold(checkpoint.sha256));
        let made = NewVersion { version, checkpoint, merged: None };
        self.publish_and_offer(unit, made, || {
            let copied = self.uploads.publish(unit.lease, &upload);
            copied
                .unwrap_or_else(|| self.runtime.block_on(self.blobs.publish_bytes(upload.clone())))
        })
    }

    /// Merges the upload into the current version.
    fn merge(
        &self,
        unit: &Unit,
        merge: &Merge,
        layout: CheckpointLayout,
        upload: &[u8],
    ) -> Result<Outcome, PipelineError> {
        let MergedVersion { checkpoint, state } =
            match self.merger.merge(unit, merge, layout, upload) {
                Ok(files) => files,
                Err(error) => return self.merge_failed(unit, error),
            };
        let blobs = [&checkpoint, &state].map(|file| file.named().blob());
        let made = offer_of(unit, merge, blobs);
        // Held as in `replace`. Always in this order, or two threads with the same work could wait for each other.
        let _holds = blobs.map(|blob| self.runtime.block_on(self.blobs.hold(blob.sha256)));
        let publish = |file| self.blobs.publish_prepared(file);
        self.publish_and_offer(unit, made, || {
            // Both to their ends: the store may go on with a request that is dropped half-way.
            let both = async { tokio::join!(publish(&checkpoint), publish(&state)) };
            let (checkpoint, state) = self.runtime.block_on(both);
            checkpoint.and(state)
        })
    }

    /// As [`Assimilator::merge`], by ranges that are shared with other processes.
    fn merge_shared(
        &self,
        unit: &Unit,
        merge: &Merge,
        layout: CheckpointLayout,
        (upload, lineage): (&Bytes, Lineage),
    ) -> Result<Outcome, PipelineError> {
        // An index is read whole, so it must not grow without bounds.
        let min_bytes = (self.split_over / MIN_RANGES).max(upload.len() as u64 / MAX_RANGES);
        let min_bytes = min_bytes.clamp(1, MAX_PIECE_BYTES / 2);
        let merged = self.merger.check_canary_before(unit, merge, upload).and_then(|()| {
            let ranged = RangedMerge::new(unit, merge, layout, min_bytes)?;
            let (queue, ranges) = (&self.queue, &self.ranges);
            Leader { queue, ranges, ranged, upload, min_bytes }.merge(lineage)
        });
        let Indexes { checkpoint, state } = match merged {
            Ok(indexes) => indexes,
            Err(error) => return self.merge_failed(unit, error),
        };
        tracing::debug!(target: UNITS, lease = unit.lease.0, "version made");
        let made = offer_of(unit, merge, [checkpoint.blob(), state.blob()]);
        let hold = |index: &Index| self.runtime.block_on(self.blobs.hold(index.blob().sha256));
        let _holds = [hold(&checkpoint), hold(&state)];
        for index in [&checkpoint, &state] {
            let published = self.runtime.block_on(self.blobs.publish_ranged(index));
            published.map_err(PipelineError::Store)?;
        }
        tracing::debug!(target: UNITS, lease = unit.lease.0, "version published");
        // Where it was deleted meanwhile, its pieces are gone too: the unit is then done from its beginning.
        self.offer(unit, made)
    }
}

/// The offer of a merged version.
fn offer_of(unit: &Unit, merge: &Merge, [checkpoint, state]: [BlobRef; 2]) -> NewVersion {
    let merged = Merged { state, flush: merge.flush, in_flight: merge.in_flight };
    NewVersion { version: unit.version, checkpoint, merged: Some(merged) }
}

/// Screens an upload, and compares its position with the unit's.
fn check<'a>(
    unit: &Unit,
    layout: &CheckpointLayout,
    upload: &'a HashedBytes,
) -> Result<Checked<'a>, Refusal> {
    let found = upload.blob().sha256;
    let checked = screen(layout, &unit.hop, &unit.trained, found, upload.bytes())?;
    let (says, expected) = (checked.lineage.position, unit.expected_end);
    if says != expected {
        return Err(Refusal::Position {
            what: "checkpoint's batch",
            expected: expected.batch.to_string(),
            actual: u64::from(says.batch),
        });
    }
    Ok(checked)
}
