//! Parts of events: names of units, ends of leases, who asked, how results become versions.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{Epoch, JobId, ShardId, TokenId, TrialId},
    manifest::DataSplit,
};

/// The last step of a job, when its search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// The job ends: jobs without test data, and jobs of the first journals.
    #[default]
    Nothing,
    /// The best trial is evaluated on the test data, then the job ends.
    Test,
}

/// Which extra evaluation of a job: there is one of each name at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestedEvaluation {
    /// The trial.
    pub trial: TrialId,
    /// The rows.
    pub split: DataSplit,
    /// The epoch that the checkpoint ended.
    pub epoch: Epoch,
}

/// The unit that a lease is for, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "fields are named by their types")]
pub enum UnitKey {
    /// A hop from batch `from` on; of several under one lease, the first.
    Train {
        job: JobId,
        trial: TrialId,
        epoch: Epoch,
        shard: ShardId,
        /// The batch at which it begins.
        from: u32,
    },
    /// An evaluation of the checkpoint that an epoch ended with.
    Evaluate { job: JobId, trial: TrialId, epoch: Epoch },
    /// An evaluation outside the search.
    Extra { job: JobId, name: RequestedEvaluation },
}

impl UnitKey {
    /// The job.
    #[must_use]
    pub const fn job(&self) -> JobId {
        match self {
            UnitKey::Train { job, .. }
            | UnitKey::Evaluate { job, .. }
            | UnitKey::Extra { job, .. } => *job,
        }
    }

    /// The trial.
    #[must_use]
    pub const fn trial(&self) -> TrialId {
        match self {
            UnitKey::Train { trial, .. } | UnitKey::Evaluate { trial, .. } => *trial,
            UnitKey::Extra { name, .. } => name.trial,
        }
    }
}

/// A unit that is a hop, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopUnit {
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The shard that it trains on.
    pub shard: ShardId,
}

impl UnitKey {
    /// The hop, where the unit is one.
    pub const fn hop(&self) -> Option<HopUnit> {
        match *self {
            UnitKey::Train { job, trial, shard, .. } => Some(HopUnit { job, trial, shard }),
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
        }
    }
}

/// Why a lease ended without a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LeaseEnd {
    /// The lease's host was not heard of in time.
    Silent,
    /// The unit made no progress in time.
    Overdue,
    /// The host gave the lease back.
    GivenBack {
        /// The host's reason.
        reason: String,
    },
    /// Another result settled its unit, its trial ended, or its host was revoked.
    Revoked,
}

/// The user who asked for something: the id of an issued token, or the server's own token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The server's own token.
    Server,
    /// A token that was issued.
    Token(TokenId),
}

impl By {
    /// The token that was issued, where it is one.
    #[must_use]
    pub const fn token(self) -> Option<TokenId> {
        match self {
            Self::Server => None,
            Self::Token(token) => Some(token),
        }
    }
}

/// How a trial's results become versions (see `docs/internals/merging.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MergeMode {
    /// One hop at a time: its result replaces the version that it was trained on.
    Hop,
    /// Several hops at a time: results are merged as they arrive.
    Merging,
    /// Merging still, until what is out has been settled; nothing more is handed out.
    Draining,
}

/// Why a trial's results aren't merged though slots are idle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MergeFault {
    /// The validation loss after an epoch was too far above the best one before.
    LossRose {
        /// The epoch, counted from 1.
        epoch: u32,
        /// The mean loss after it; 0 where it was no number, which JSON can't hold.
        loss: f64,
        /// The lowest mean loss after an earlier epoch.
        best: f64,
    },
}

/// The party to blame for a refused result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ResultFault))]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The host sent what can't be.
    #[default]
    Host,
    /// The server lost what the host had sent.
    Server,
}
