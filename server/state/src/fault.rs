//! Why an event can't be folded into the state: it names something that isn't there, or doesn't follow from it.

use crate::{event::JournalPosition, event::UnitKey};
use sojourn_model::ModelError;
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, LeaseId, TokenId, TrialId},
};
use sojourn_workgen::{ChainError, SearchError};

/// An event that doesn't fit the state. The state is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {} (`{event}`) doesn't fit the state", position.0)]
pub struct FoldError {
    /// The event's position in the journal.
    pub position: JournalPosition,
    /// The event's kind, as [`crate::Event::name`] gives it.
    pub event: &'static str,
    /// The part of it that doesn't fit.
    pub source: FoldFault,
}

/// The part of an event that doesn't fit the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldFault {
    /// There is no such job.
    #[error("there is no job {0}")]
    UnknownJob(JobId),
    /// The job has no such trial.
    #[error("job {job} has no trial {trial}")]
    UnknownTrial {
        /// The job.
        job: JobId,
        /// The trial that it hasn't.
        trial: TrialId,
    },
    /// No such host has enrolled.
    #[error("there is no host {0}")]
    UnknownHost(HostId),
    /// The host has leases, or results that are remembered.
    #[error("host {0} has leases or results, so it can't be forgotten")]
    HostNeeded(HostId),
    /// The job goes on, or leases, results or evaluations of it are open.
    #[error("job {0} isn't at rest, so it can't be deleted")]
    JobNeeded(JobId),
    /// No such token was issued, or it was forgotten.
    #[error("there is no token {0}")]
    UnknownToken(TokenId),
    /// The token's id or its secret was given before, or it was revoked.
    #[error("token {0} can't be given that secret")]
    TokenExists(TokenId),
    /// There is no such lease, live or past.
    #[error("there is no lease {0}")]
    UnknownLease(LeaseId),
    /// The evaluation isn't open.
    #[error("there is no open evaluation {0:?}")]
    UnknownEvaluation(UnitKey),
    /// The store hasn't got the blob.
    #[error("there is no blob {}", .0.short())]
    UnknownBlob(Digest),
    /// No checkpoint is kept for the epoch to which the trial is to be taken back.
    #[error("no checkpoint of trial {trial} of job {job} is kept for the end of epoch {epoch}")]
    NotKept {
        /// The job.
        job: JobId,
        /// The trial.
        trial: TrialId,
        /// The epoch.
        epoch: Epoch,
    },
    /// The lease is of another kind of unit.
    #[error("lease {0} is for another kind of unit")]
    WrongUnit(LeaseId),
    /// The lease doesn't live.
    #[error("lease {0} doesn't live")]
    NotLive(LeaseId),
    /// No acknowledged report of the lease waits for its end.
    #[error("lease {0} has no acknowledged report that waits for its end")]
    NotAcknowledged(LeaseId),
    /// The result was merged, and its trial's results aren't.
    #[error("the result of lease {0} was merged, but its trial trains in hop order")]
    NotMerging(LeaseId),
    /// The spec of a submitted job describes no trials.
    #[error("the spec of job {job} describes no trials")]
    InvalidSpec {
        /// The job.
        job: JobId,
        /// Why it doesn't.
        source: SearchError,
    },
    /// A model of a submitted job doesn't fit its data.
    #[error("the model of trial {trial} of job {job} doesn't fit the data")]
    InvalidModel {
        /// The job.
        job: JobId,
        /// The trial.
        trial: TrialId,
        /// Why it doesn't.
        source: ModelError,
    },
    /// The trained part isn't what comes next in its trial's chain.
    #[error("the trained part isn't what comes next")]
    Chain(#[source] ChainError),
    /// Only a trial that has failed begins anew.
    #[error("trial {trial} of job {job} hasn't failed, and can't begin anew")]
    NotFailed {
        /// The job.
        job: JobId,
        /// The trial.
        trial: TrialId,
    },
    /// The trial has ended, or trains as long already, or has fewer epochs.
    #[error("trial {trial} of job {job} can't go on up to {epochs} epochs")]
    NotContinued {
        /// The job.
        job: JobId,
        /// The trial.
        trial: TrialId,
        /// The epochs.
        epochs: u32,
    },
    /// A count would fall below zero.
    #[error("the count of {0} would fall below zero")]
    CountBelowZero(&'static str),
}
