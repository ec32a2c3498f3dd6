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
        match (event.job(), event.lease()) {
            (Some(job), Some(lease)) => Self::Grants(lease, job),
            (Some(job), None) => Self::Job(job),
            (None, Some(lease)) => Self::Lease(lease),
            (None, None) => Self::None,
        }
    }
}

/// The lease that this event ends. Later events that name it are rare, so the lease's job may be forgotten.
pub(super) fn ended(event: &Event) -> Option<LeaseId> {
    event.lease().filter(|_| event.ends_lease())
}
