//! Changes: the things that an event has changed, for all that is derived from the state.

use smallvec::SmallVec;
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, LeaseId, TrialId},
};

/// One thing that an event has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Units may have become runnable, or no longer be: all of a job, or the next hops of a trial and its
    /// evaluation of an epoch, or all of its evaluations.
    Work {
        /// The job.
        job: JobId,
        /// The trial; any of the job's where there is none.
        trial: Option<TrialId>,
        /// The epoch of the trial's evaluation; any of them where there is none.
        epoch: Option<Epoch>,
    },
    /// A lease was granted.
    LeaseGranted(LeaseId),
    /// A live lease has ended, by its report or without one.
    LeaseClosed {
        /// The lease.
        lease: LeaseId,
        /// The host that held it.
        host: HostId,
    },
    /// A report has ended: its result was used, rejected or superseded, or its error was counted.
    ResultSettled {
        /// The report's lease.
        lease: LeaseId,
        /// The host that reported.
        host: HostId,
    },
    /// A trial has finished, failed or was cancelled.
    TrialEnded(JobId, TrialId),
    /// A job was submitted, ended, paused, resumed, extended or placed, or its evaluations have changed.
    Job(JobId),
    /// A host enrolled, was revoked, or its counts have changed.
    Host(HostId),
    /// A blob was published, condemned, deleted or lost.
    Blob(Digest),
    /// The next end of a job's wall time may be another.
    WallTime,
}

/// The changes of one event: a few, which usually need no allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes(SmallVec<[Change; 4]>);

impl Changes {
    /// Nothing.
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
