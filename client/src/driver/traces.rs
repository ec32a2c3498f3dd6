//! The trace of each held lease: from the request for work that it answers, or from the start of a program that found its
//! result, until nothing more comes of it.

use sojourn_http::{Traced, traced};
use sojourn_protocol::{digest::Digest, ids::LeaseId, trace::TraceContext, unit::Lease};
use std::collections::BTreeMap;
use tracing::Span;

/// Traces by lease.
#[derive(Debug, Default)]
pub(super) struct UnitTraces(BTreeMap<LeaseId, UnitTrace>);

#[derive(Debug)]
struct UnitTrace {
    /// Ends with the lease.
    unit: Traced,
    /// The blobs that the unit needs.
    blobs: Vec<Digest>,
}

impl UnitTraces {
    /// A lease was granted in answer to a request of this trace.
    pub(super) fn granted(&mut self, lease: &Lease, request: Option<TraceContext>) {
        let (id, job, trial) = (lease.id, lease.unit.job(), lease.unit.trial());
        let unit = traced!("unit", request, lease = id.0, job = job.0, trial = trial.0);
        let blobs = lease.unit.blobs().iter().map(|blob| blob.sha256).collect();
        self.0.insert(id, UnitTrace { unit, blobs });
    }

    /// A result of an earlier run was found.
    pub(super) fn found(&mut self, lease: LeaseId) {
        let unit = traced!("unit", None, lease = lease.0);
        self.0.insert(lease, UnitTrace { unit, blobs: Vec::new() });
    }

    /// The parent of what is done for a lease.
    pub(super) fn of(&self, lease: LeaseId) -> Option<TraceContext> {
        self.0.get(&lease).map(|trace| trace.unit.context())
    }

    /// The oldest lease that needs a blob.
    pub(super) fn oldest_with(&self, blob: &Digest) -> Option<LeaseId> {
        let needing = self.0.iter().find(|(_, trace)| trace.blobs.contains(blob));
        needing.map(|(lease, _)| *lease)
    }

    /// The span of lines about a lease.
    pub(super) fn span(&self, lease: LeaseId) -> Span {
        self.0.get(&lease).map_or_else(Span::none, |trace| trace.unit.span().clone())
    }

    pub(super) fn retain(&mut self, is_held: impl Fn(LeaseId) -> bool) {
        self.0.retain(|lease, _| is_held(*lease));
    }
}
