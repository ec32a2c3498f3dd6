//! Changes: the things that an event has changed, for all that is derived from the state.
//!
//! Nothing but the state hears of events: whoever wants to know of one gets a change.

use crate::LeaseEnd;
use smallvec::SmallVec;
use sojourn_protocol::ids::{Epoch, HostId, JobId, LeaseId, TrialId};

/// One thing that an event has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The open units may be others: all of a job, or the next hops of a trial and its evaluation of an epoch, or all of its
    /// evaluations.
    Work {
        /// The job.
        job: JobId,
        /// The trial; any of the job's where there is none.
        trial: Option<TrialId>,
        /// The epoch of the trial's evaluation; any of them where there is none.
        epoch: Option<Epoch>,
    },
    /// Units may be runnable that no host has been offered yet: of this trial, or of any.
    Runnable(Option<(JobId, TrialId)>),
    /// A lease was granted.
    LeaseGranted(LeaseId),
    /// A live lease has ended without a report.
    LeaseEnded {
        /// The lease.
        lease: LeaseId,
        /// The host that held it.
        host: HostId,
        /// The reason.
        end: LeaseEndReason,
    },
    /// A report was acknowledged; the lease has its outcome.
    Reported(LeaseId),
    /// A report has ended.
    ResultSettled {
        /// The report's lease.
        lease: LeaseId,
        /// The use that was made of it.
        end: ResultEnd,
    },
    /// No hop of the job is granted any more as the one that follows another.
    NothingFollows(JobId),
    /// A job was submitted, ended, paused, resumed, extended or placed, or its evaluations have changed.
    Job(JobId),
    /// The next end of a job's wall time may be another.
    WallTime,
}

impl Change {
    /// All open units of a job.
    pub(crate) const fn all_work(job: JobId) -> Self {
        Self::Work { job, trial: None, epoch: None }
    }

    /// All open units of a trial.
    pub(crate) const fn work_of_trial(job: JobId, trial: TrialId) -> Self {
        Self::Work { job, trial: Some(trial), epoch: None }
    }
}

/// The reason for which a lease ended without a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseEndReason {
    /// The lease's host was not heard of in time.
    Silent,
    /// The unit made no progress in time.
    Overdue,
    /// The host gave the lease back.
    Returned,
    /// Another result settled its unit, its trial ended, or its host was revoked.
    Revoked,
}

impl LeaseEndReason {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Silent, Self::Overdue, Self::Returned, Self::Revoked];

    /// The reason as monitoring names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Overdue => "overdue",
            Self::Returned => "returned",
            Self::Revoked => "revoked",
        }
    }

    /// The reason of a lease's end.
    pub(crate) const fn of(end: &LeaseEnd) -> Self {
        match end {
            LeaseEnd::Silent => Self::Silent,
            LeaseEnd::Overdue => Self::Overdue,
            LeaseEnd::GivenBack { .. } => Self::Returned,
            LeaseEnd::Revoked => Self::Revoked,
        }
    }
}

/// The use that was made of a host's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResultEnd {
    /// A new version, or the metrics of an epoch.
    Taken,
    /// None, by the host's fault.
    Rejected,
    /// None: the server had lost the checkpoint that the host sent.
    Lost,
    /// None: the unit had been settled.
    Superseded,
    /// None: the trainer had failed.
    Failed,
}

impl ResultEnd {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::Taken, Self::Rejected, Self::Lost, Self::Superseded, Self::Failed];

    /// The end as monitoring names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Rejected => "rejected",
            Self::Lost => "lost",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
        }
    }
}

/// The changes of one event: a few, which usually need no allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes(SmallVec<[Change; 4]>);

impl Changes {
    /// No changes.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    pub(super) fn extend(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.0.extend(changes);
    }

    pub(super) fn push(&mut self, change: Change) {
        self.0.push(change);
    }

    pub(super) fn settled(&mut self, lease: LeaseId, end: ResultEnd) {
        self.push(Change::ResultSettled { lease, end });
    }

    /// All of them, in the order in which they came about.
    pub fn iter(&self) -> impl Iterator<Item = Change> + '_ {
        self.0.iter().copied()
    }
}

impl IntoIterator for Changes {
    type Item = Change;
    type IntoIter = smallvec::IntoIter<[Change; 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Change> for Changes {
    fn from_iter<T: IntoIterator<Item = Change>>(changes: T) -> Self {
        Self(changes.into_iter().collect())
    }
}
