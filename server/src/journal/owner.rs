//! Which job an event belongs to, for listing a job's history; and how long that must be known.

use sojourn_core::Event;
use sojourn_protocol::ids::{JobId, LeaseId};

/// How an event names its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// By its id.
    Job(JobId),
    /// By its id, and it says that a lease is the job's.
    Grants(LeaseId, JobId),
    /// By a lease that was granted before.
    Lease(LeaseId),
    /// It belongs to no job.
    Nobody,
}

pub(super) fn owner(event: &Event) -> Owner {
    match event {
        Event::HostEnrolled { .. }
        | Event::HostRevoked { .. }
        | Event::BlobPublished { .. }
        | Event::BlobCondemned { .. }
        | Event::BlobDoomed { .. }
        | Event::BlobLost { .. }
        | Event::BlobDeleted { .. } => Owner::Nobody,
        Event::JobSubmitted { job, .. }
        | Event::JobCancelled { job }
        | Event::JobPaused { job }
        | Event::JobResumed { job }
        | Event::JobTimeUp { job }
        | Event::JobExtended { job, .. }
        | Event::JobPlaced { job, .. }
        | Event::TrialOrdered { job, .. }
        | Event::TrialRolledBack { job, .. }
        | Event::TrialFailed { job, .. }
        | Event::ExtraAsked { job, .. }
        | Event::ExtraFailed { job, .. } => Owner::Job(*job),
        Event::LeaseGranted { lease, unit, .. } => Owner::Grants(*lease, unit.job()),
        Event::ReportAcknowledged { report, .. } => Owner::Lease(report.lease),
        Event::LeaseEnded { lease, .. }
        | Event::Assimilated { lease, .. }
        | Event::Evaluated { lease, .. }
        | Event::ExtraEvaluated { lease, .. }
        | Event::Rejected { lease, .. }
        | Event::Superseded { lease }
        | Event::Challenged { lease }
        | Event::Unverified { lease }
        | Event::UnitFailed { lease, .. } => Owner::Lease(*lease),
        Event::Verified { confirmed, .. } => match confirmed.first() {
            Some(lease) => Owner::Lease(*lease),
            None => Owner::Nobody,
        },
    }
}

/// The lease of which little or nothing is going to happen after this event.
pub(super) const fn ended(event: &Event) -> Option<LeaseId> {
    match event {
        Event::LeaseEnded { lease, .. }
        | Event::Assimilated { lease, .. }
        | Event::Evaluated { lease, .. }
        | Event::ExtraEvaluated { lease, .. }
        | Event::Rejected { lease, .. }
        | Event::Superseded { lease }
        | Event::UnitFailed { lease, .. } => Some(*lease),
        _ => None,
    }
}
