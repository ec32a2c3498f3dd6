//! Events: the durable, versioned facts that are folded into the state.

use crate::added_trial::AddedTrial;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TokenId, TrialId, Version},
    machines::MachineReport,
    manifest::{DataManifest, DataSplit},
    money::MicroUsd,
    names::{OwnerName, TokenLabel},
    report::{Failure, Report, Sums},
    spec::{JobSpec, ModelSpace, SearchBudget, TrainingSpace},
    time::{Millis, UnixMillis},
    tokens::TokenGrant,
    view::MergeRecord,
};
use std::{collections::BTreeMap, ops::RangeInclusive};

/// The version of [`Record`]'s encoding that is written. Version 2 has jobs that are paused and extended,
/// and evaluations outside the search; version 3 has hosts with several devices, and more kinds of failure;
/// version 4 has leases of several hops in a row; version 5 has second copies of running hops,
/// and jobs whose placement is changed; version 6 has trials whose results are merged, results that other hosts come
/// to as well, trials that are taken back, and jobs that end when their time is up; version 7 has evaluations that other hosts come
/// to as well; version 8 has owners of hosts, tokens that are issued, time that doesn't count, a time in which trained jobs are still evaluated, jobs that are thinned or
/// deleted, machines that are bought, units that are refused as unsupported, trials that a search lets go on or stops, searches that
/// go on (trials that are added, spaces that change), and hosts that are blocked.
pub const EVENT_VERSION: u32 = 8;
/// The versions that are read; a journal or a snapshot with another is refused.
pub const READ_VERSIONS: RangeInclusive<u32> = 1..=EVENT_VERSION;

/// The number of a journalled event, from 1; 0 is the empty journal.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct JournalPosition(pub u64);

/// The last step of a job, when its search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// It ends; jobs without test data, and those of the first journals.
    #[default]
    Nothing,
    /// It evaluates the best trial on the test data, then ends.
    Test,
}

/// Which extra evaluation of a job: there is one of each name at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedEvaluation {
    /// The trial.
    pub trial: TrialId,
    /// The rows.
    pub split: DataSplit,
    /// The epoch that the checkpoint ended.
    pub epoch: Epoch,
}

/// An event with its place in the journal and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its number.
    pub position: JournalPosition,
    /// Its time.
    pub at: UnixMillis,
    /// The event.
    pub event: Event,
}

/// The unit that a lease is for, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "fields are named by their types")]
pub enum UnitKey {
    /// A hop from batch `from` on; of several under one lease, the first.
    Train { job: JobId, trial: TrialId, epoch: Epoch, shard: ShardId, from: u32 },
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
pub(crate) struct HopUnit {
    pub(crate) job: JobId,
    pub(crate) trial: TrialId,
    pub(crate) shard: ShardId,
}

impl UnitKey {
    /// The hop, where the unit is one.
    pub(crate) const fn hop(&self) -> Option<HopUnit> {
        match *self {
            UnitKey::Train { job, trial, shard, .. } => Some(HopUnit { job, trial, shard }),
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
        }
    }
}

/// Why a lease ended without a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LeaseEnd {
    /// Its host was not heard of in time.
    Silent,
    /// It made no progress in time.
    Overdue,
    /// Its host gave it back.
    GivenBack {
        /// Why.
        reason: String,
    },
    /// Another result settled its unit, its trial ended, or its host was revoked.
    Revoked,
}

/// Who asked for something: a user by the id of a token, or with one of the server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The server's own token.
    Server,
    /// A token that was issued.
    Token(TokenId),
}

/// How a trial's results become versions (see `docs/internals/merging.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The host sent what can't be.
    #[default]
    Host,
    /// The server lost what the host had sent.
    Server,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(missing_docs, reason = "fields are named by their types")]
pub enum Event {
    /// A machine became a host. `owner`: whose it is; where it isn't named, the deployment's own. `token`: the issued
    /// token with which it enrolled, where that wasn't the server's own.
    HostEnrolled {
        host: HostId,
        name: String,
        token_sha256: Digest,
        #[serde(default, skip_serializing_if = "OwnerName::is_default")]
        owner: OwnerName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
    },
    /// A host's token was taken away.
    HostRevoked { host: HostId },
    /// A host gets no new work, until it is unblocked.
    HostBlocked { host: HostId, by: By },
    /// A host that was blocked gets work again.
    HostUnblocked { host: HostId, by: By },
    /// Hosts were heard of, for the first time in long.
    HostsSeen { hosts: Vec<HostId> },
    /// A host that wasn't heard of for long is no host any more.
    HostForgotten { host: HostId },
    /// A token was issued.
    TokenCreated {
        token: TokenId,
        sha256: Digest,
        #[serde(default, skip_serializing_if = "TokenLabel::is_default")]
        label: TokenLabel,
        grant: Box<TokenGrant>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<UnixMillis>,
        /// Who made it, since that is noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A token got another secret.
    TokenRotated { token: TokenId, sha256: Digest },
    /// A token was taken away.
    TokenRevoked {
        token: TokenId,
        /// The job whose page it showed, where it was for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        /// Who took it away, since that is noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A token that opens nothing any more was forgotten.
    TokenForgotten { token: TokenId },
    /// What whoever buys machines says of them. What was known of each is replaced.
    MachinesReported { machines: Vec<MachineReport> },
    /// A blob is in the store.
    BlobPublished { blob: BlobRef },
    /// A blob that nothing refers to will be deleted.
    BlobCondemned { blob: Digest },
    /// A condemned blob's deletion has begun: it can't be saved any more.
    BlobDoomed { blob: Digest },
    /// It is gone.
    BlobDeleted { blob: Digest },
    /// The store has lost it.
    BlobLost { blob: Digest },
    /// So much of the time before this event doesn't count: no server is known to have been active then, or a clock was
    /// wrong. What runs by the length of time that has passed ends so much later.
    TimeSkipped { skipped: Millis },
    /// A job was submitted.
    JobSubmitted {
        job: JobId,
        spec: Box<JobSpec>,
        data: Box<DataManifest>,
        key: Digest,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<String>,
        #[serde(default, skip_serializing_if = "does_nothing")]
        at_end: AtEnd,
    },
    /// A job's user ended it.
    JobCancelled { job: JobId },
    /// A job's user paused it: nothing of it is granted until it is resumed.
    JobPaused { job: JobId },
    /// A paused job goes on.
    JobResumed { job: JobId },
    /// A job has gone on for as long as it may: nothing more of it is trained. For so long at most, what is trained is still
    /// evaluated.
    /// `used_up`: the budget that its trials have used up, where that is why.
    JobTrainingOver {
        job: JobId,
        grace: Millis,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_up: Option<SearchBudget>,
    },
    /// The search of a job whose time is up ends with what is evaluated.
    JobTimeUp { job: JobId },
    /// Trials, running or finished, train to so many epochs in all.
    /// `named`: the user named them, so that the search holds them back no more.
    JobExtended {
        job: JobId,
        trials: Vec<TrialId>,
        epochs: u32,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        named: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A job's user changed whose turn it is, and on how many hosts it may be.
    JobPlaced {
        job: JobId,
        priority: i32,
        share: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_hosts: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<MicroUsd>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
    },
    /// A job's user noted something about it; nothing: the note is gone.
    JobNoted { job: JobId, note: String },
    /// A job that had ended lost its data and its checkpoints, but the best model.
    JobThinned { job: JobId },
    /// A job that had ended was deleted: nothing is kept because of it any more.
    JobDeleted { job: JobId },
    /// A host was given a unit on this base version, for its device of that name. `then`: the shards whose
    /// hops follow under the same lease, in order. `until`: the batch of the last shard before which it ends, where
    /// that isn't the shard's end. `class`: the device's numeric class. `speculative_for`: the live lease of the same unit
    /// beside which it is a second one.
    LeaseGranted {
        lease: LeaseId,
        host: HostId,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        device: String,
        unit: UnitKey,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<ShardId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u32>,
        base: Version,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Digest>,
        #[serde(rename = "copy_of", default, skip_serializing_if = "Option::is_none")]
        speculative_for: Option<LeaseId>,
        why: String,
    },
    /// A lease ended without a report.
    LeaseEnded { lease: LeaseId, end: LeaseEnd },
    /// A report was acknowledged. It ends its lease where that is live.
    ReportAcknowledged { report: Box<Report>, host: HostId },
    /// A trained checkpoint became its trial's next version.
    /// `merged`: how, where it didn't replace the version before.
    Assimilated {
        lease: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        merged: Option<MergeRecord>,
    },
    /// An evaluation's metrics were taken.
    Evaluated {
        lease: LeaseId,
        epoch: Epoch,
        valid: Sums,
        /// Macro F1, where classes were counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        f1: Option<f64>,
        /// Those of `[metrics]` that are made of arrays, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        own: BTreeMap<String, f64>,
    },
    /// An acknowledged report was refused.
    Rejected {
        lease: LeaseId,
        reason: String,
        #[serde(default)]
        fault: Fault,
    },
    /// An acknowledged report came after its unit was settled or its trial had ended.
    Superseded { lease: LeaseId },
    /// A trainer error was counted; with it the report has ended.
    UnitFailed { lease: LeaseId, failure: Failure },
    /// A result that waits is taken in when other hosts have come to the same.
    Challenged { lease: LeaseId },
    /// Enough hosts came to the same result, the first of these, which is taken in; the others are refuted.
    Verified { confirmed: Vec<LeaseId>, refuted: Vec<LeaseId> },
    /// A result is taken in unchecked: there is no other host of its numeric class to ask.
    Unverified { lease: LeaseId },
    /// A trial goes back to where it had trained so many epochs, as if nothing had been trained since.
    TrialRolledBack { job: JobId, trial: TrialId, epochs: u32 },
    /// The search lets a trial train up to so many epochs in all. `by`: the token of the user who did.
    TrialContinued {
        job: JobId,
        trial: TrialId,
        epochs: u32,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// The search, or a user, ends a trial with what it has.
    TrialStopped {
        job: JobId,
        trial: TrialId,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A job gets more trials, numbered on from those that it has. So many combinations of the job's procedure are tried with them
    /// (`suggested`). `nonce` names the call that asked for them.
    TrialsAdded {
        job: JobId,
        trials: Vec<AddedTrial>,
        suggested: u32,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A search is to try so many combinations in all.
    SearchExtended { job: JobId, trials: u32, by: By },
    /// A search tries no more combinations.
    SearchEnded {
        job: JobId,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// From now on a search takes combinations from this space.
    SpaceChanged { job: JobId, models: Vec<ModelSpace>, training: Box<TrainingSpace>, by: By },
    /// Whose turn a trial is among those of its job: those of a higher priority come first.
    TrialPlaced { job: JobId, trial: TrialId, priority: i32, by: By },
    /// From now on a trial's results are taken in like this.
    TrialOrdered {
        job: JobId,
        trial: TrialId,
        order: MergeMode,
        /// The reason, where it isn't the number of trials and slots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<MergeFault>,
    },
    /// A trial ended with an error.
    TrialFailed { job: JobId, trial: TrialId, error: String },
    /// Somebody asked for an evaluation outside the search.
    ExtraAsked { job: JobId, name: RequestedEvaluation },
    /// Such an evaluation's counts were taken; those by class are in the report.
    ExtraEvaluated { lease: LeaseId, sums: Sums },
    /// Such an evaluation ended with an error.
    ExtraFailed { job: JobId, name: RequestedEvaluation, error: String },
}

impl Event {
    /// The event's kind, as journals and `sojourn events` name it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Event::HostEnrolled { .. } => "host-enrolled",
            Event::HostRevoked { .. } => "host-revoked",
            Event::HostBlocked { .. } => "host-blocked",
            Event::HostUnblocked { .. } => "host-unblocked",
            Event::HostsSeen { .. } => "hosts-seen",
            Event::HostForgotten { .. } => "host-forgotten",
            Event::TokenCreated { .. } => "token-created",
            Event::TokenRotated { .. } => "token-rotated",
            Event::TokenRevoked { .. } => "token-revoked",
            Event::TokenForgotten { .. } => "token-forgotten",
            Event::MachinesReported { .. } => "machines-reported",
            Event::BlobPublished { .. } => "blob-published",
            Event::BlobCondemned { .. } => "blob-condemned",
            Event::BlobDoomed { .. } => "blob-doomed",
            Event::BlobDeleted { .. } => "blob-deleted",
            Event::BlobLost { .. } => "blob-lost",
            Event::TimeSkipped { .. } => "time-skipped",
            Event::JobSubmitted { .. } => "job-submitted",
            Event::JobCancelled { .. } => "job-cancelled",
            Event::JobPaused { .. } => "job-paused",
            Event::JobResumed { .. } => "job-resumed",
            Event::JobTrainingOver { .. } => "job-training-over",
            Event::JobTimeUp { .. } => "job-time-up",
            Event::JobExtended { .. } => "job-extended",
            Event::JobPlaced { .. } => "job-placed",
            Event::JobNoted { .. } => "job-noted",
            Event::JobThinned { .. } => "job-thinned",
            Event::JobDeleted { .. } => "job-deleted",
            Event::LeaseGranted { .. } => "lease-granted",
            Event::LeaseEnded { .. } => "lease-ended",
            Event::ReportAcknowledged { .. } => "report-acknowledged",
            Event::Assimilated { .. } => "assimilated",
            Event::Evaluated { .. } => "evaluated",
            Event::Rejected { .. } => "rejected",
            Event::Superseded { .. } => "superseded",
            Event::UnitFailed { .. } => "unit-failed",
            Event::Challenged { .. } => "challenged",
            Event::Verified { .. } => "verified",
            Event::Unverified { .. } => "unverified",
            Event::TrialRolledBack { .. } => "trial-rolled-back",
            Event::TrialContinued { .. } => "trial-continued",
            Event::TrialStopped { .. } => "trial-stopped",
            Event::TrialsAdded { .. } => "trials-added",
            Event::TrialPlaced { .. } => "trial-placed",
            Event::SearchExtended { .. } => "search-extended",
            Event::SearchEnded { .. } => "search-ended",
            Event::SpaceChanged { .. } => "space-changed",
            Event::TrialOrdered { .. } => "trial-ordered",
            Event::TrialFailed { .. } => "trial-failed",
            Event::ExtraAsked { .. } => "extra-asked",
            Event::ExtraEvaluated { .. } => "extra-evaluated",
            Event::ExtraFailed { .. } => "extra-failed",
        }
    }
}

fn does_nothing(at_end: &AtEnd) -> bool {
    *at_end == AtEnd::Nothing
}
