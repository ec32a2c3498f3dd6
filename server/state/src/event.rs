//! Events: the durable, versioned facts that are folded into the state.

mod parts;
mod record;

pub use parts::{
    AtEnd, By, Fault, HopUnit, LeaseEnd, MergeFault, MergeMode, RequestedEvaluation, UnitKey,
};
pub use record::{EVENT_VERSION, JournalPosition, READ_VERSIONS, Record};

use crate::added_trial::AddedTrial;
use serde::{Deserialize, Serialize};
use sojourn_event_derive::EventFields;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TokenId, TrialId, Version},
    machines::MachineReport,
    manifest::DataManifest,
    money::MicroUsd,
    names::{OwnerName, TokenLabel},
    quotas::TokenQuotas,
    report::{Failure, Report, Sums},
    residency::{Category, MoveKind},
    spec::{JobSpec, ModelSpace, SearchBudget, TrainingSpace},
    time::{Millis, UnixMillis},
    tokens::TokenGrant,
    view::MergeRecord,
};
use std::collections::BTreeMap;

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, EventFields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(missing_docs, reason = "fields are named by their types")]
pub enum Event {
    /// A machine became a host. `owner`: whose it is; where it isn't named, the deployment's own. `token`: the issued
    /// token with which it enrolled, where that wasn't the server's own.
    HostEnrolled {
        host: HostId,
        /// The host's name.
        name: String,
        /// SHA-256 of the host's own token.
        token_sha256: Digest,
        /// The owner of the host.
        #[serde(default, skip_serializing_if = "OwnerName::is_default")]
        owner: OwnerName,
        /// The issued token with which it enrolled.
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
    HostsSeen {
        /// These hosts.
        hosts: Vec<HostId>,
    },
    /// A host that wasn't heard of for long is no host any more.
    HostForgotten { host: HostId },
    /// A token was issued.
    #[event(job = grant.shared_job())]
    TokenCreated {
        token: TokenId,
        /// SHA-256 of its secret.
        sha256: Digest,
        /// The purpose of the token, in its maker's words.
        #[serde(default, skip_serializing_if = "TokenLabel::is_default")]
        label: TokenLabel,
        /// The grant: what the token opens.
        grant: Box<TokenGrant>,
        /// When it ends; left out: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<UnixMillis>,
        /// The user who made the token, where that was noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
        /// Bounds that are set for it.
        #[serde(default, skip_serializing_if = "TokenQuotas::is_empty")]
        quotas: TokenQuotas,
    },
    /// Bounds of a token were set. Those that are left out stay as they were.
    TokenQuotasSet {
        token: TokenId,
        /// These bounds.
        quotas: TokenQuotas,
        by: By,
    },
    /// A token got another secret.
    TokenRotated {
        token: TokenId,
        /// SHA-256 of its new secret.
        sha256: Digest,
    },
    /// A token was taken away.
    TokenRevoked {
        token: TokenId,
        /// The job whose page it showed, where it was for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        /// The user who took the token away, where that was noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A token that opens nothing any more was forgotten.
    TokenForgotten { token: TokenId },
    /// The buyer of machines reported on them. Each report replaces what was known of its machine.
    MachinesReported {
        /// The report on each machine.
        machines: Vec<MachineReport>,
    },
    /// A blob is in the store.
    BlobPublished { blob: BlobRef },
    /// A blob that nothing refers to will be deleted.
    BlobCondemned { blob: Digest },
    /// A condemned blob's deletion has begun: it can't be saved any more.
    BlobDoomed { blob: Digest },
    /// The blob was deleted from the store.
    BlobDeleted { blob: Digest },
    /// The store has lost it.
    BlobLost { blob: Digest },
    /// So much of the time before this event doesn't count: no server is known to have been active then, or a clock was
    /// wrong. What runs by the length of time that has passed ends so much later.
    TimeSkipped {
        /// So long.
        skipped: Millis,
    },
    /// A job was submitted.
    JobSubmitted {
        job: JobId,
        /// The job.
        spec: Box<JobSpec>,
        /// The job's data.
        data: Box<DataManifest>,
        /// Digest of what was submitted: the same job again has the same one.
        key: Digest,
        /// The submission's own name, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<String>,
        /// The job's last step.
        #[serde(default, skip_serializing_if = "does_nothing")]
        at_end: AtEnd,
        /// The user who submitted the job, where that was noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
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
        /// The longest time in which what is trained is still evaluated.
        grace: Millis,
        /// The budget that its trials have used up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_up: Option<SearchBudget>,
    },
    /// The search of a job whose time is up ends with what is evaluated.
    JobTimeUp { job: JobId },
    /// Trials, running or finished, train to so many epochs in all.
    /// `named`: the user named them, so that the search holds them back no more.
    JobExtended {
        job: JobId,
        /// These trials.
        trials: Vec<TrialId>,
        /// Epochs in all.
        epochs: u32,
        /// Whether the user named them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        named: bool,
        /// The user who asked for the epochs, where that was noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A job's user changed whose turn it is, and on how many hosts it may be.
    JobPlaced {
        job: JobId,
        /// Jobs of a higher priority come first.
        priority: i32,
        /// The job's share among jobs of its priority.
        #[serde(rename = "share")]
        slot_share: u32,
        /// Hosts at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_hosts: Option<u32>,
        /// The most that the job's machines may cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<MicroUsd>,
        /// When it should end, counted from its submission.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
    },
    /// A job's user noted something about it; nothing: the note is gone.
    JobNoted {
        job: JobId,
        /// The note; empty where it is gone.
        note: String,
    },
    /// A job that had ended lost its data and its checkpoints, but the best model.
    JobThinned { job: JobId },
    /// A job that had ended was deleted: nothing is kept because of it any more.
    JobDeleted { job: JobId },
    /// A host was given a unit on this base version, for its device of that name. `then`: the shards whose
    /// hops follow under the same lease, in order. `until`: the batch of the last shard before which it ends, where
    /// that isn't the shard's end. `class`: the device's numeric class. `speculative_for`: the live lease of the same unit
    /// beside which it is a second one.
    #[event(job = unit.job())]
    LeaseGranted {
        lease: LeaseId,
        host: HostId,
        /// The host's device.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        device: String,
        /// The unit.
        unit: UnitKey,
        /// Shards whose hops follow under the same lease, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<ShardId>,
        /// The batch of the last shard before which it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u32>,
        /// The version that it trains or evaluates.
        base: Version,
        /// The device's numeric class.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Digest>,
        /// The live lease of the same unit beside which it is a second one.
        #[serde(rename = "copy_of", default, skip_serializing_if = "Option::is_none")]
        speculative_for: Option<LeaseId>,
        /// Why this host got it.
        why: String,
    },
    /// A lease ended without a report.
    #[event(ends_lease)]
    LeaseEnded {
        lease: LeaseId,
        /// The reason for the end.
        end: LeaseEnd,
    },
    /// A report was acknowledged. It ends its lease where that is live.
    #[event(lease = report.lease)]
    ReportAcknowledged {
        /// The report.
        report: Box<Report>,
        host: HostId,
    },
    /// A trained checkpoint became its trial's next version.
    /// `merged`: how, where it didn't replace the version before.
    #[event(ends_lease)]
    Assimilated {
        lease: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        /// How it was merged, where it didn't replace the version before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        merged: Option<MergeRecord>,
    },
    /// An evaluation's metrics were taken.
    #[event(ends_lease)]
    Evaluated {
        lease: LeaseId,
        epoch: Epoch,
        /// Sums over the validation rows.
        valid: Sums,
        /// Macro F1, where classes were counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        f1: Option<f64>,
        /// The values of the `[metrics]` that are made of arrays, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        own: BTreeMap<String, f64>,
    },
    /// An acknowledged report was refused.
    #[event(ends_lease)]
    Rejected {
        lease: LeaseId,
        /// The reason for the refusal.
        reason: String,
        /// The party to blame.
        #[serde(default)]
        fault: Fault,
    },
    /// An acknowledged report came after its unit was settled or its trial had ended.
    #[event(ends_lease)]
    Superseded { lease: LeaseId },
    /// A trainer error was counted; with it the report has ended.
    #[event(ends_lease)]
    UnitFailed {
        lease: LeaseId,
        /// The error.
        failure: Failure,
    },
    /// A result that waits is taken in when other hosts have come to the same.
    Challenged { lease: LeaseId },
    /// Enough hosts came to the same result, the first of these, which is taken in; the others are refuted.
    #[event(lease = confirmed.first().copied())]
    Verified {
        /// Leases with the same result, the one that is taken in first.
        confirmed: Vec<LeaseId>,
        /// Leases with another result.
        refuted: Vec<LeaseId>,
    },
    /// A result is taken in unchecked: there is no other host of its numeric class to ask.
    Unverified { lease: LeaseId },
    /// A trial goes back to where it had trained so many epochs, as if nothing had been trained since.
    TrialRolledBack {
        job: JobId,
        trial: TrialId,
        /// Epochs that it keeps.
        epochs: u32,
        /// The reason, where the server did it by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A host was refuted, and to take back what its party delivered would lose so much of a job that its user is asked.
    RollbackAsked {
        job: JobId,
        host: HostId,
        /// Thousandths of the job's work that would be lost.
        lost: u32,
    },
    /// The search lets a trial train up to so many epochs in all. `by`: the token of the user who did.
    TrialContinued {
        job: JobId,
        trial: TrialId,
        /// Epochs in all.
        epochs: u32,
        /// The reason for going on.
        why: String,
        /// The user who asked for it; left out: the search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// The search, or a user, ends a trial with what it has.
    TrialStopped {
        job: JobId,
        trial: TrialId,
        /// The reason for the stop.
        why: String,
        /// The user who asked for it; left out: the search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A job gets more trials, numbered on from those that it has. So many combinations of the job's procedure are tried with them
    /// (`suggested`). `nonce` names the call that asked for them.
    TrialsAdded {
        job: JobId,
        /// These trials.
        trials: Vec<AddedTrial>,
        /// Combinations of the job's procedure among them.
        suggested: u32,
        /// The reason for the new trials.
        why: String,
        /// The name of the call that asked for them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<String>,
        /// The user who asked for them; left out: the search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A search is to try so many combinations in all.
    SearchExtended {
        job: JobId,
        /// Combinations in all.
        trials: u32,
        /// The user who asked for it.
        by: By,
    },
    /// A search tries no more combinations.
    SearchEnded {
        job: JobId,
        /// The reason for the end.
        why: String,
        /// The user who asked for it; left out: the search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// From now on a search takes combinations from this space.
    SpaceChanged {
        job: JobId,
        /// The `[[model]]` tables.
        models: Vec<ModelSpace>,
        /// How trials are trained.
        training: Box<TrainingSpace>,
        /// The dimensions that are other than before, as JSON pointers into the two.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// The reason for the change, where the user gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The user who asked for the change.
        by: By,
    },
    /// A trial got a priority among those of its job: trials of a higher priority come first.
    TrialPlaced {
        job: JobId,
        trial: TrialId,
        /// The trial's priority; 0 if nobody said another.
        priority: i32,
        /// The user who asked for it.
        by: By,
    },
    /// A look at the loss of a trial that stays on hosts has put it into this category.
    TrialCategorized {
        job: JobId,
        trial: TrialId,
        /// How far it seems to be.
        category: Category,
        /// How much its loss had fallen since the look before, as the job's policy counts that.
        growth: f64,
    },
    /// A trial that stays on hosts goes to another one. Where both are the same a move was weighed and none was better, and that
    /// counts as one.
    TrialMoved {
        job: JobId,
        trial: TrialId,
        /// The host that it leaves.
        from: HostId,
        /// The host on which it stays from now on.
        to: HostId,
        /// The reason for the move.
        kind: MoveKind,
        /// The load of the host that it leaves.
        from_load: f64,
        /// The load of the other host before.
        to_load: f64,
    },
    /// From now on a trial's results are taken in like this.
    TrialOrdered {
        job: JobId,
        trial: TrialId,
        /// How they are taken in.
        order: MergeMode,
        /// The reason, where it isn't the number of trials and slots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<MergeFault>,
    },
    /// A trial ended with an error.
    TrialFailed {
        job: JobId,
        trial: TrialId,
        /// The error.
        error: String,
    },
    /// A trial that had failed begins anew, as if it had never been trained.
    TrialRetried {
        job: JobId,
        trial: TrialId,
        /// The reason for another try.
        why: String,
        /// The user who asked for it.
        by: By,
    },
    /// Somebody asked for an evaluation outside the search.
    ExtraAsked { job: JobId, name: RequestedEvaluation },
    /// Such an evaluation's counts were taken; those by class are in the report.
    #[event(ends_lease)]
    ExtraEvaluated {
        lease: LeaseId,
        /// Sums over the rows.
        sums: Sums,
    },
    /// Such an evaluation ended with an error.
    ExtraFailed {
        job: JobId,
        name: RequestedEvaluation,
        /// The error.
        error: String,
    },
}

fn does_nothing(at_end: &AtEnd) -> bool {
    *at_end == AtEnd::Nothing
}
