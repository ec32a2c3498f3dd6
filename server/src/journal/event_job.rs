//! The job of an event: the index of a job's records is made of it.

use sojourn_core::Event;
use sojourn_protocol::ids::{JobId, LeaseId};

/// How an event names its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventJob {
    /// By its id.
    Job(JobId),
    /// By its id, and it grants a lease of the job.
    Grants(LeaseId, JobId),
    /// By a lease of the job that was granted before.
    Lease(LeaseId),
    /// Not at all: it belongs to no job.
    None,
}

impl EventJob {
    /// How this event names its job.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        match event {
            Event::HostEnrolled { .. }
            | Event::HostRevoked { .. }
            | Event::HostBlocked { .. }
            | Event::HostUnblocked { .. }
            | Event::HostsSeen { .. }
            | Event::HostForgotten { .. }
            | Event::TokenRotated { .. }
            | Event::TokenQuotasSet { .. }
            | Event::TokenForgotten { .. }
            | Event::MachinesReported { .. }
            | Event::BlobPublished { .. }
            | Event::BlobCondemned { .. }
            | Event::BlobDoomed { .. }
            | Event::BlobLost { .. }
            | Event::TimeSkipped { .. }
            | Event::BlobDeleted { .. } => Self::None,
            Event::JobSubmitted { job, .. }
            | Event::JobCancelled { job }
            | Event::JobPaused { job }
            | Event::JobResumed { job }
            | Event::JobTrainingOver { job, .. }
            | Event::JobTimeUp { job }
            | Event::JobExtended { job, .. }
            | Event::JobPlaced { job, .. }
            | Event::JobNoted { job, .. }
            | Event::JobThinned { job }
            | Event::JobDeleted { job }
            | Event::TrialOrdered { job, .. }
            | Event::TrialRolledBack { job, .. }
            | Event::RollbackAsked { job, .. }
            | Event::TrialContinued { job, .. }
            | Event::TrialStopped { job, .. }
            | Event::TrialsAdded { job, .. }
            | Event::TrialPlaced { job, .. }
            | Event::TrialCategorized { job, .. }
            | Event::TrialMoved { job, .. }
            | Event::SearchExtended { job, .. }
            | Event::SearchEnded { job, .. }
            | Event::SpaceChanged { job, .. }
            | Event::TrialFailed { job, .. }
            | Event::ExtraAsked { job, .. }
            | Event::ExtraFailed { job, .. } => Self::Job(*job),
            Event::TokenCreated { grant, .. } => grant.shared_job().map_or(Self::None, Self::Job),
            Event::TokenRevoked { job, .. } => job.map_or(Self::None, Self::Job),
            Event::LeaseGranted { lease, unit, .. } => Self::Grants(*lease, unit.job()),
            Event::ReportAcknowledged { report, .. } => Self::Lease(report.lease),
            Event::LeaseEnded { lease, .. }
            | Event::Assimilated { lease, .. }
            | Event::Evaluated { lease, .. }
            | Event::ExtraEvaluated { lease, .. }
            | Event::Rejected { lease, .. }
            | Event::Superseded { lease }
            | Event::Challenged { lease }
            | Event::Unverified { lease }
            | Event::UnitFailed { lease, .. } => Self::Lease(*lease),
            Event::Verified { confirmed, .. } => match confirmed.first() {
                Some(lease) => Self::Lease(*lease),
                None => Self::None,
            },
        }
    }
}

/// The lease that this event ends. Later events that name it are rare, so the lease's job may be forgotten.
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
