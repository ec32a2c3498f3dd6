//! One assimilation: from the upload to the offer.

use crate::{
    canary::Losses,
    leading::{Indexes, Leader},
    merging::{Files, Merging, MergingError},
    queue::{Fault, Made, Merged, Offer, Queue, QueueError, Unit, Work},
    ranges::{Ranged, Ranges},
    source::{SourceError, UploadSource},
};
use bytes::Bytes;
use sojourn_blobs::{BlobError, BlobStore, Named};
use sojourn_codec::ranges::{Index, LARGEST_PIECE};
use sojourn_model::{CheckpointLayout, Lineage};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ranges::{MadeRequest, RangeDone, RangeWork},
    unit::Merge,
};
use sojourn_rules::{Checked, MergeError, Next, Refusal, replace, screen};
use std::{
    convert::Infallible,
    error::Error,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};
use tokio::runtime::Handle;

/// How often what was made of a unit is published and offered, where it is deleted in between.
const OFFERS: u32 = 3;
/// Models with larger checkpoints than this are merged by ranges, if nobody says otherwise.
pub const SPLIT_OVER: u64 = 256 << 20;
/// Ranges of a checkpoint that is just large enough to be split; a larger one has more.
const LEAST_RANGES: u64 = 8;
/// Ranges of the largest checkpoint, whatever it is split over.
const MOST_RANGES: u64 = 4096;

/// What became of one unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is the trial's next version.
    Assimilated,
    /// It was refused, for this reason.
    Rejected(String),
    /// The report had ended otherwise meanwhile.
    Stale,
}

/// How one look for work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// There was nothing to do.
    Nothing,
    /// One unit has ended.
    Done(Outcome),
    /// A range of a merge that another leads has been done.
    Helped,
    /// Storage or queue failed: there may well be work, now or soon.
    Trouble,
}

/// Why a unit could not be finished now; it comes again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the upload can't be read")]
    Upload(#[source] Box<dyn Error + Send + Sync>),
    #[error("the checkpoint can't be stored")]
    Store(#[source] BlobError),
    #[error("the upload can't be merged")]
    Merging(#[source] MergingError),
    #[error("blob `{0}` was just put in the store")]
    Back(Digest),
    #[error("what was published is gone from the store")]
    Unpublished,
}

/// Checks uploads and makes them versions, one at a time.
#[derive(Debug)]
pub struct Assimilator<Q> {
    queue: Q,
    uploads: Box<dyn UploadSource>,
    blobs: BlobStore,
    runtime: Handle,
    merging: Merging,
    ranges: Ranges,
    split_over: u64,
}

impl<Q: Queue> Assimilator<Q> {
    /// An assimilator of a queue, over the server's uploads and blobs.
    pub fn new(queue: Q, uploads: impl UploadSource, blobs: BlobStore, runtime: Handle) -> Self {
        let merging = Merging::new(blobs.clone(), runtime.clone());
        let ranges = Ranges::new(blobs.clone(), runtime.clone());
        let (uploads, split_over) = (Box::new(uploads), SPLIT_OVER);
        Self { queue, uploads, blobs, runtime, merging, ranges, split_over }
    }

    /// Merges models with larger checkpoints than this by ranges, and shares these out. What is made is the same.
    #[must_use]
    pub const fn with_split_over(mut self, bytes: u64) -> Self {
        self.split_over = bytes;
        self
    }

    /// It can say what the loss of a checkpoint is, for jobs that have results looked at so.
    #[must_use]
    pub fn with_losses(mut self, losses: impl Losses) -> Self {
        self.merging.look_at_losses(losses);
        self
    }

    pub(crate) fn queue_waits(&self) -> bool {
        self.queue.waits()
    }

    /// Takes one unit and does it. Blocks, so not for async tasks. Trouble with storage or queue is
    /// logged; the unit then comes again.
    #[must_use]
    pub fn step(&self) -> Step {
        let unit = match self.queue.take(self.merging.looks_at_losses()) {
            Ok(Some(Work::Unit(unit))) => {
                tracing::debug!(lease = unit.lease.0, taking = unit.taking.0, "unit taken");
                unit
            }
            Ok(Some(Work::Range(work))) => return self.help(&work),
            Ok(None) => return Step::Nothing,
            Err(error) => {
                tracing::warn!(%error, "can't take assimilation work");
                return Step::Trouble;
            }
        };
        match self.renewing(&unit, || self.assimilate(&unit)) {
            Ok(outcome) => {
                let (lease, version) = (unit.lease.0, unit.version.0);
                tracing::debug!(lease, version, ?outcome, "assimilation ended");
                Step::Done(outcome)
            }
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(
                    lease = unit.lease.0,
                    error,
                    "assimilation didn't end; it comes again"
                );
                Step::Trouble
            }
        }
    }

    /// Does a range of another's merge. Where that fails, the range comes again, to somebody.
    fn help(&self, work: &RangeWork) -> Step {
        let (lease, range) = (work.unit.lease, work.left.range);
        tracing::debug!(lease = lease.0, range, "range taken");
        let made = match self.ranges.help(work, &*self.uploads) {
            Ok(made) => made,
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(lease = lease.0, range, error, "a range can't be merged");
                return Step::Trouble;
            }
        };
        let made = MadeRequest { taking: work.unit.taking, done: RangeDone { range, made } };
        match self.queue.range_made(lease, &made) {
            Ok(offer) => {
                tracing::debug!(lease = lease.0, range, ?offer, "range done");
                Step::Helped
            }
            Err(error) => {
                tracing::warn!(lease = lease.0, range, %error, "nobody hears that a range is done");
                Step::Trouble
            }
        }
    }

    /// Works at a unit and says so, as long as that takes.
    fn renewing<T>(&self, unit: &Unit, work: impl FnOnce() -> T) -> T {
        let often = Duration::from_millis((unit.term.0 / 3).max(1));
        let (working, ended) = mpsc::channel::<Infallible>();
        thread::scope(|scope| {
            let renew = move || {
                while ended.recv_timeout(often) == Err(RecvTimeoutError::Timeout) {
                    match self.queue.renew(unit.lease, unit.taking) {
                        Ok(Offer::Taken) => {}
                        // Its work may yet be of use: whoever offers first is heard.
                        Ok(_) => break,
                        Err(error) => tracing::debug!(%error, "can't say that a unit is worked at"),
                    }
                }
            };
            let thread = thread::Builder::new().name("renewals".to_owned());
            if let Err(error) = thread.spawn_scoped(scope, renew) {
                tracing::warn!(%error, "a unit is worked at without renewals");
            }
            let made = work();
            drop(working);
            made
        })
    }

    fn assimilate(&self, unit: &Unit) -> Result<Outcome, Trouble> {
        let (lease, checkpoint) = (unit.lease, unit.trained.checkpoint);
        let upload = match self.uploads.read(lease, checkpoint) {
            Ok(upload) => upload,
            Err(SourceError::Lost(why)) => return self.lost(unit, &why),
            Err(SourceError::Trouble(error)) => return Err(Trouble::Upload(error)),
        };
        let checked = CheckpointLayout::of(&unit.hop.context)
            .map_err(Refusal::Lineage)
            .and_then(|layout| Ok((check(unit, &layout, &upload)?, layout)));
        let (checked, layout) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return self.reject(unit, Fault::Host, refusal.to_string()),
        };
        tracing::debug!(lease = unit.lease.0, "upload read and checked");
        // An upload that was screened has the size of every checkpoint of its trial.
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
    fn replace(&self, unit: &Unit, next: Next, upload: Named) -> Result<Outcome, Trouble> {
        let Next { version, checkpoint } = next;
        // Until the offer is answered: a deletion in between would leave a version without bytes.
        let _hold = self.runtime.block_on(self.blobs.hold(checkpoint.sha256));
        let made = Made { version, checkpoint, merged: None };
        self.publish_and_offer(unit, made, || {
            let cheaply = self.uploads.publish(unit.lease, &upload);
            cheaply
                .unwrap_or_else(|| self.runtime.block_on(self.blobs.publish_named(upload.clone())))
        })
    }

    /// Makes the next version of the current one and the upload.
    fn merge(
        &self,
        unit: &Unit,
        merge: &Merge,
        layout: CheckpointLayout,
        upload: &[u8],
    ) -> Result<Outcome, Trouble> {
        let Files { checkpoint, state } = match self.merging.merge(unit, merge, layout, upload) {
            Ok(files) => files,
            Err(error) => return self.unmerged(unit, error),
        };
        let made = made_of(unit, merge, checkpoint.blob(), state.blob());
        // Held as in `replace`; always in this order, or two that do the same work could wait for each other.
        let hold = |file: &Named| self.runtime.block_on(self.blobs.hold(file.blob().sha256));
        let _holds = [hold(&checkpoint), hold(&state)];
        let publish = |file: &Named| self.blobs.publish_named(file.clone());
        self.publish_and_offer(unit, made, || {
            // Both to their ends: the store may go on with what is dropped half-way.
            let both = async { tokio::join!(publish(&checkpoint), publish(&state)) };
            let (checkpoint, state) = self.runtime.block_on(both);
            checkpoint.and(state)
        })
    }

    /// As [`Assimilator::merge`], by ranges that others do as well.
    fn merge_shared(
        &self,
        unit: &Unit,
        merge: &Merge,
        layout: CheckpointLayout,
        (upload, lineage): (&Bytes, Lineage),
    ) -> Result<Outcome, Trouble> {
        // An index is read whole.
        let least = (self.split_over / LEAST_RANGES).max(upload.len() as u64 / MOST_RANGES);
        let least = least.clamp(1, LARGEST_PIECE / 2);
        let merged = self.merging.look_before(unit, merge, upload).and_then(|()| {
            let ranged = Ranged::new(unit, merge, layout, least)?;
            let (queue, ranges) = (&self.queue, &self.ranges);
            Leader { queue, ranges, ranged, upload, least }.merge(lineage)
        });
        let Indexes { checkpoint, state } = match merged {
            Ok(indexes) => indexes,
            Err(error) => return self.unmerged(unit, error),
        };
        tracing::debug!(lease = unit.lease.0, "version made");
        let made = made_of(unit, merge, checkpoint.blob(), state.blob());
        let hold = |index: &Index| self.runtime.block_on(self.blobs.hold(index.blob().sha256));
        let _holds = [hold(&checkpoint), hold(&state)];
        for index in [&checkpoint, &state] {
            let published = self.runtime.block_on(self.blobs.publish_ranged(index));
            published.map_err(Trouble::Store)?;
        }
        tracing::debug!(lease = unit.lease.0, "version published");
        // Where it has been deleted meanwhile, its pieces have too: all is made again then.
        self.offer(unit, made)
    }

    /// What becomes of a result that can't be merged.
    fn unmerged(&self, unit: &Unit, error: MergingError) -> Result<Outcome, Trouble> {
        match error {
            MergingError::Rules(error @ MergeError::Norm(_)) => {
                self.reject(unit, Fault::Host, error.to_string())
            }
            MergingError::Canary(refusal) => self.reject(unit, Fault::Host, refusal.to_string()),
            MergingError::Store(BlobError::Missing(blob) | BlobError::Altered { blob, .. }) => {
                self.missed(unit, blob)
            }
            error => Err(Trouble::Merging(error)),
        }
    }

    /// Publishes and offers; again where what was published has been deleted meanwhile, which may be while another
    /// process has the blobs' holds.
    fn publish_and_offer(
        &self,
        unit: &Unit,
        made: Made,
        publish: impl Fn() -> Result<(), BlobError>,
    ) -> Result<Outcome, Trouble> {
        let mut left = OFFERS;
        loop {
            tracing::debug!(lease = unit.lease.0, "version made");
            publish().map_err(Trouble::Store)?;
            tracing::debug!(lease = unit.lease.0, "version published");
            left -= 1;
            match self.offer(unit, made) {
                Err(Trouble::Unpublished) if left > 0 => {}
                ended => return ended,
            }
        }
    }

    fn offer(&self, unit: &Unit, made: Made) -> Result<Outcome, Trouble> {
        match self.queue.assimilated(unit.lease, made)? {
            Offer::Taken => Ok(Outcome::Assimilated),
            Offer::Stale => Ok(Outcome::Stale),
            Offer::Unpublished => Err(Trouble::Unpublished),
        }
    }

    /// What the upload was to be merged with isn't in the store as it was. Where that is so still, whoever
    /// counts blobs is told, and no host is to blame.
    fn missed(&self, unit: &Unit, blob: Digest) -> Result<Outcome, Trouble> {
        let hold = self.runtime.block_on(self.blobs.hold(blob));
        match self.runtime.block_on(self.blobs.bytes(blob)) {
            Err(BlobError::Missing(_) | BlobError::Altered { .. }) => {
                if self.queue.lost(unit.lease, blob)? == Offer::Stale {
                    return Err(Trouble::Back(blob));
                }
            }
            Ok(_) => return Err(Trouble::Back(blob)),
            Err(error) => return Err(Trouble::Merging(error.into())),
        }
        drop(hold);
        let lease = unit.lease.0;
        tracing::error!(lease, %blob, "what a result is to be merged with was lost");
        let reason = format!("the server lost blob `{blob}`, which it was to be merged with");
        self.reject(unit, Fault::Server, reason)
    }

    /// What was acknowledged isn't on the server's disk any more: no host is to blame.
    fn lost(&self, unit: &Unit, why: &str) -> Result<Outcome, Trouble> {
        tracing::error!(lease = unit.lease.0, why, "an acknowledged upload was lost");
        self.reject(unit, Fault::Server, format!("the server lost the upload: {why}"))
    }

    fn reject(&self, unit: &Unit, fault: Fault, reason: String) -> Result<Outcome, Trouble> {
        match self.queue.rejected(unit.lease, fault, &reason)? {
            Offer::Taken => Ok(Outcome::Rejected(reason)),
            Offer::Stale => Ok(Outcome::Stale),
            Offer::Unpublished => Err(Trouble::Unpublished),
        }
    }
}

/// What is offered for a merged version.
fn made_of(unit: &Unit, merge: &Merge, checkpoint: BlobRef, state: BlobRef) -> Made {
    let merged = Merged { state, flush: merge.flush, in_flight: merge.in_flight };
    Made { version: unit.version, checkpoint, merged: Some(merged) }
}

/// All checks.
fn check<'a>(
    unit: &Unit,
    layout: &CheckpointLayout,
    upload: &'a Named,
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
