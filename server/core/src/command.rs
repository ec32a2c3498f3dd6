//! Commands to the core, with the time and the seed that they came with.

use crate::submission::PreparedSubmission;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    api::{HeartbeatRequest, PlacementRequest, RollbackRequest, SearchRequest, WorkRequest},
    digest::{BlobRef, Digest},
    ids::{ClaimId, HostId, JobId, LeaseId, TokenId, TrialId, Version},
    incarnation::Incarnation,
    machines::{DrainRequest, LeaderRequest, MachineReport},
    manifest::{DataManifest, DataSplit},
    quotas::TokenQuotas,
    reason::ReleaseReason,
    report::Report,
    spec::JobSpec,
    storage::Storage,
    time::UnixMillis,
    tokens::TokenRequest,
    unit::Flush,
};
use sojourn_scheduling::waiters::ReplyTo;
use sojourn_state::{By, Fault};
use sojourn_workgen::plan::Schedule;

/// One step: a command, its time, and the seed of its randomness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The time of the step; the shell never lets it go back.
    pub at: UnixMillis,
    /// The seed of all randomness of the step.
    pub seed: u64,
    /// The command. Commands are stored nowhere: journals have events, and golden digests are over those.
    pub command: Command,
}

/// A merge's result beside the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeOffer {
    /// The rule's state, whose blob is published too.
    pub state: BlobRef,
    /// Whether the gathered deltas were used, as the work said.
    pub flush: Flush,
    /// How many units were in flight at once, as the work said: there may be more by now.
    pub in_flight: u32,
}

/// A command. Every one with a `to` gets exactly one [`crate::Effect::Reply`] for it,
/// at once or (work, held open) later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants say it; fields are named by their types")]
pub enum Command {
    /// Time has passed.
    Tick,
    /// The server has started or taken over: every live lease gets a fresh full term.
    Started,
    /// A command of a user, with whose token it came: the core carries it out where that token may give it.
    OnBehalf { to: ReplyTo, by: By, command: Box<Command> },
    /// A machine becomes a host. `token_sha256` is the hash of the token that the shell made for it.
    Enrol { to: ReplyTo, name: String, token_sha256: Digest },
    /// The same with a token that was issued.
    EnrolWithToken { to: ReplyTo, name: String, token_sha256: Digest, with: TokenId },
    /// An operator issues a token, for which the shell has made a secret with this hash.
    CreateToken { to: ReplyTo, request: TokenRequest, sha256: Digest, by: Option<By> },
    /// An operator gives a token another secret.
    RotateToken { to: ReplyTo, token: TokenId, sha256: Digest },
    /// An operator sets bounds of a user's token; those that are left out stay as they were.
    SetQuotas { to: ReplyTo, token: TokenId, quotas: TokenQuotas, by: By },
    /// A user revokes a token and the hosts that have enrolled with it. `of`: it must be one that shows this job's page.
    RevokeToken { to: ReplyTo, token: TokenId, of: Option<JobId>, by: Option<By> },
    /// The buyer of machines says what was bought, and what has ended.
    ReportMachines { to: ReplyTo, machines: Vec<MachineReport> },
    /// The buyer of machines gives some back: their hosts are to end.
    DrainMachines { to: ReplyTo, request: DrainRequest },
    /// A process asks to be the only one of its kind that acts.
    Lead { to: ReplyTo, request: LeaderRequest },
    /// An operator takes a host's token away; its leases are revoked.
    RevokeHost { to: ReplyTo, host: HostId },
    /// An operator has a host get no new work (`blocked`), or work again. What it holds goes on.
    BlockHost { to: ReplyTo, host: HostId, blocked: bool, by: By },
    /// A request of a host comes, which names its client's start. `rival`: the start of which it was told. A start that may not work is
    /// refused.
    HearIncarnation {
        to: ReplyTo,
        host: HostId,
        incarnation: Incarnation,
        rival: Option<Incarnation>,
    },
    /// An operator takes a host off the list. It must have no work, and be away.
    ForgetHost { to: ReplyTo, host: HostId },
    /// A host asks for work. The reply may come much later (`WorkRequest::wait`). A newer request of the same host
    /// answers the older one at once, empty.
    Ask { to: ReplyTo, host: HostId, request: WorkRequest },
    /// The connection that waited for this reply is gone: a request that is held open is forgotten.
    Hangup { to: ReplyTo },
    /// A host shows that it is present.
    Heartbeat { to: ReplyTo, host: HostId, request: HeartbeatRequest },
    /// A host releases leases.
    Release { to: ReplyTo, host: HostId, leases: Vec<LeaseId>, reason: ReleaseReason },
    /// May this host upload that for this lease? Asked before bytes are taken.
    AuthorizeUpload { to: ReplyTo, host: HostId, lease: LeaseId, bytes: u64 },
    /// May this host read that blob? Its live leases must name it.
    AuthorizeRead { to: ReplyTo, host: HostId, blob: Digest },
    /// A host reports. `uploaded`: the blob that the shell holds under the lease, whole and verified.
    Report { to: ReplyTo, host: HostId, report: Report, uploaded: Option<BlobRef> },
    /// An assimilator asks for work; the reply is `None` where there is none. `losses`: it can say what the loss of a
    /// checkpoint is.
    TakeAssimilation { to: ReplyTo, losses: bool },
    /// The same for a result that needs no merge, and whose checkpoint has at most `max_bytes`.
    TakeSmallAssimilation { to: ReplyTo, max_bytes: u64 },
    /// An assimilator is still at what it has taken.
    RenewAssimilation {
        to: ReplyTo,
        lease: LeaseId,
        #[serde(rename = "taking")]
        claim: ClaimId,
    },
    /// An assimilator has checked an upload and published its blob.
    /// `merged`: where it was to be merged, how it was.
    OfferAssimilated {
        to: ReplyTo,
        lease: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        merged: Option<MergeOffer>,
    },
    /// An assimilator refuses an upload.
    OfferRejected { to: ReplyTo, lease: LeaseId, reason: String, fault: Fault },
    /// Which of these blobs does the state lack?
    Missing { to: ReplyTo, blobs: Vec<BlobRef> },
    /// May this blob be put in the store? Refused while its deletion is under way.
    AuthorizePublish { to: ReplyTo, blob: BlobRef },
    /// A blob is in the store.
    Published { to: ReplyTo, blob: BlobRef },
    /// A blob whose deletion was asked for is gone from the store.
    Deleted { blob: Digest },
    /// A blob that should be in the store is missing there, or altered: it must be published again.
    Lost { blob: Digest },
    /// A user submits a job whose blobs are published.
    Submit {
        to: ReplyTo,
        spec: Box<JobSpec>,
        data: Box<DataManifest>,
        again: bool,
        nonce: Option<String>,
    },
    /// The same of a job that was checked off the core's thread, and whose trials are made.
    SubmitPrepared {
        to: ReplyTo,
        prepared: Box<PreparedSubmission>,
        again: bool,
        nonce: Option<String>,
    },
    /// A user ends a job.
    Cancel { to: ReplyTo, job: JobId },
    /// A user asks for an evaluation of a trial's best checkpoint.
    Evaluate { to: ReplyTo, job: JobId, trial: TrialId, split: DataSplit },
    /// A user pauses a job. `now`: running hops end after their current batch, other units are revoked.
    Pause { to: ReplyTo, job: JobId, now: bool },
    /// A user resumes a paused job.
    Resume { to: ReplyTo, job: JobId },
    /// A user has a trial, or every trial that can, train to `epochs` epochs in all.
    Extend { to: ReplyTo, job: JobId, epochs: u32, trial: Option<TrialId>, reopen: bool },
    /// A user, or a program of the user's, changes a job's search.
    ChangeSearch { to: ReplyTo, job: JobId, request: Box<SearchRequest>, by: By },
    /// A user changes the priority, the slot share or the number of hosts of a job.
    Place { to: ReplyTo, job: JobId, placement: PlacementRequest },
    /// A user notes something about a job.
    Note { to: ReplyTo, job: JobId, note: String },
    /// A user deletes jobs that have ended. `preview`: only says what would go.
    Delete { to: ReplyTo, jobs: Vec<JobId>, preview: bool },
    /// An operator takes trials back to an earlier state.
    Rollback { to: ReplyTo, job: JobId, request: RollbackRequest },
    /// A requested plan is ready; `None` where the planner found none.
    PlanReady { job: JobId, version: u64, schedule: Option<Box<Schedule>> },
    /// The room on the server's disk. The shell says it when its level changes, and again and again while it isn't
    /// enough: a core that was read anew doesn't know it.
    Storage(Storage),
    /// A caller reads.
    Query { to: ReplyTo, query: Query },
}

/// A query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum Query {
    /// All jobs.
    Jobs,
    /// One job.
    Job { job: JobId },
    /// At most `limit` of a job's trials, in order from `from` on.
    Trials { job: JobId, from: TrialId, limit: u32 },
    /// At most `limit` of a job's trials, as its leader board has them.
    LeadingTrials { job: JobId, limit: u32 },
    /// How far the hops of a job's running trials are.
    Hops { job: JobId },
    /// How far a job's search has got.
    Search { job: JobId },
    /// The hops of a trial, in order.
    History { job: JobId, trial: TrialId },
    /// A trial's evaluations outside the search.
    Evaluations { job: JobId, trial: TrialId },
    /// All hosts.
    Hosts,
    /// The hosts that have live leases of a job.
    HostsOf { job: JobId },
    /// One host, with what lies in its cache.
    Host { host: HostId },
    /// The unit of a lease, live or past, if it is known.
    LeasedUnit { lease: LeaseId },
    /// The work that there is for machines.
    Demand,
    /// The costs of bought machines.
    Costs,
    /// How fast bought machines are.
    Speeds,
    /// The holder of the token with this hash, if it still opens something.
    HolderOf { token_sha256: Digest },
    /// The tokens that were issued.
    Tokens,
    /// The links to a job's page.
    Links { job: JobId },
    /// How many requests of a user's token may be refused in a minute; `None`: any number.
    FailureQuota { token: TokenId },
    /// The status of a blob.
    BlobStatus { blob: Digest },
    /// Blobs that are referred to and that the store has lost.
    LostBlobs,
    /// How much there is to assimilate.
    Assimilations,
    /// The server in some dozens of numbers, for monitoring.
    Figures,
    /// How many events there are; also says that the core is alive.
    Position,
}
