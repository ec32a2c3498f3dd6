//! The part of a running hop that is on disk: what is sent where the rest of the hop comes to nothing.

use crate::outbox::{Finished, Outbox};
use sojourn_protocol::{
    report::{Outcome, Report, Trained},
    unit::Lease,
};
use std::path::Path;

/// The last part that was kept of a hop. It outlives this value on disk: a daemon that is killed sends it
/// after its next start. Whoever ends the lease otherwise removes it.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    outbox: &'a Outbox,
    lease: &'a Lease,
    kept: Option<Finished>,
}

impl<'a> Part<'a> {
    /// Nothing yet.
    pub(crate) fn new(outbox: &'a Outbox, lease: &'a Lease) -> Self {
        Self { outbox, lease, kept: None }
    }

    /// Keeps a part that the trainer has written to `path`, in place of the one before it.
    pub(crate) fn keep(&mut self, trained: Trained, path: &Path) {
        let (lease, batch) = (self.lease.id, trained.end.batch);
        let (promised, expected) = (trained.checkpoint.bytes, self.lease.upload_bytes);
        if promised != expected {
            tracing::warn!(%lease, batch, promised, expected, "a part has another size than it must; ignored");
            return;
        }
        let report = Report { lease, outcome: Outcome::Trained(trained) };
        match self.outbox.store(report, self.lease.heartbeat_every, path) {
            Ok(finished) => {
                tracing::debug!(%lease, batch, "kept what the hop has trained so far");
                self.kept = Some(finished);
            }
            Err(error) => self.not_kept(&error.to_string()),
        }
    }

    /// A part could not be written: the unit goes on without.
    pub(crate) fn not_kept(&self, reason: &str) {
        tracing::warn!(lease = %self.lease.id, reason, "what the hop has trained so far can't be kept");
    }

    /// Is there one?
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// It is the unit's result now.
    pub(crate) fn take(self) -> Option<Finished> {
        self.kept
    }

    /// The whole result has taken its place on disk.
    pub(crate) fn replaced(&mut self) {
        self.kept = None;
    }
}
