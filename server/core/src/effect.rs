//! Effects: the work that the core asks the shell for, as data.

use crate::{
    figures::{AssimilationCounts, Figures},
    holder::Holder,
};
pub use sojourn_protocol::assimilation::AssimilationUnit;
use sojourn_protocol::{
    api::{
        DeletedJobs, HeartbeatAnswer, ReleaseAnswer, ReportAnswer, RolledBack, SearchAnswer,
        SearchView, SubmitAnswer, WorkAnswer,
    },
    demand::{DemandView, SpeedsView},
    digest::{BlobRef, Digest},
    error::ApiError,
    ids::{HostId, JobId, LeaseId},
    machines::{CostsView, LeaderAnswer, MachinesAnswer},
    tokens::{RevokedToken, TokenView},
    view::{
        EvaluationView, HopMatrixView, HostDetail, HostView, JobDetail, JobView, TrialHistory,
        TrialView,
    },
};
use sojourn_scheduling::waiters::ReplyTo;
use sojourn_state::{BlobStatus, JournalPosition, Record, UnitKey};
use sojourn_workgen::plan::Problem;

/// One thing to do. Effects of one step are carried out in order.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Effect {
    /// Append this to the journal.
    Persist(Record),
    /// Answer, once everything up to `after` is durable.
    Reply {
        /// The caller.
        to: ReplyTo,
        /// The position that must be durable first.
        after: JournalPosition,
        /// The answer, or the refusal.
        answer: Result<Box<Answer>, ApiError>,
    },
    /// There are uploads to assimilate: wake the assimilators, once everything so far is durable.
    Assimilate,
    /// Make this plan, elsewhere, in so many iterations; then say [`crate::Command::PlanReady`]. A plan that is
    /// never made harms nothing.
    Plan {
        /// The job that it is for.
        job: JobId,
        /// The plan's number.
        version: u64,
        /// The problem to plan.
        problem: Box<Problem>,
        /// The seed of its randomness.
        seed: u64,
        /// How long to try.
        iterations: u64,
    },
    /// Delete this blob from the store, once everything so far is durable; then say
    /// [`crate::Command::Deleted`].
    Delete(Digest),
    /// Drop what was uploaded under this lease, once everything so far is durable.
    DropUpload(LeaseId),
}

/// An answer to a command.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each answers the command of its name")]
pub enum Answer {
    Enrolled(HostId),
    Work(Box<WorkAnswer>),
    Heartbeat(HeartbeatAnswer),
    Released(ReleaseAnswer),
    /// The upload's exact size is right and the lease is the host's.
    UploadAuthorized,
    ReadAuthorized,
    Report(ReportAnswer),
    Assimilation(Option<Box<AssimilationUnit>>),
    /// Whether the offer was taken.
    Offered(Offered),
    Missing(Vec<Digest>),
    PublishAuthorized,
    Published,
    Submitted(SubmitAnswer),
    Jobs(Vec<JobView>),
    Job(Box<JobDetail>),
    JobSummary(Box<JobView>),
    Trials(Vec<TrialView>),
    Hops(Box<HopMatrixView>),
    Search(Box<SearchView>),
    SearchChanged(Box<SearchAnswer>),
    History(Box<TrialHistory>),
    Evaluation(Box<EvaluationView>),
    Evaluations(Vec<EvaluationView>),
    Hosts(Vec<HostView>),
    Host(Box<HostView>),
    HostDetail(Box<HostDetail>),
    /// The start of a host's client may work.
    IncarnationHeard,
    LeasedUnit(Option<UnitKey>),
    Machines(MachinesAnswer),
    Leader(Box<LeaderAnswer>),
    Demand(Box<DemandView>),
    Costs(Box<CostsView>),
    Speeds(SpeedsView),
    RolledBack(Vec<RolledBack>),
    Deleted(Box<DeletedJobs>),
    HolderOf(Option<Holder>),
    Token(Box<TokenView>),
    Tokens(Vec<TokenView>),
    FailureQuota(Option<u32>),
    TokenRevoked(Box<RevokedToken>),
    BlobStatus(Option<BlobStatus>),
    LostBlobs(Vec<BlobRef>),
    Assimilations(AssimilationCounts),
    Figures(Box<Figures>),
    Position(JournalPosition),
}

/// The fate of an assimilator's offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// The offer ended the report, or the renewed claim still holds.
    Taken,
    /// The report had ended otherwise, or was never acknowledged; nothing changed.
    Stale,
}
