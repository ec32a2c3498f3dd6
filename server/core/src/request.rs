//! Commands with the type of their answer.
//!
//! One table ties each command to its answer, so that who asks gets a value of the right type.

use crate::{
    command::{Command, MergeOffer, Query},
    effect::{Answer, AssimilationUnit, Offered},
    figures::{AssimilationCounts, Figures},
    holder::Holder,
    submission::PreparedSubmission,
};
use sojourn_protocol::{
    api::{
        DeletedJobs, HeartbeatAnswer, HeartbeatRequest, PlacementRequest, ReleaseAnswer,
        ReportAnswer, RollbackRequest, RolledBack, SearchAnswer, SearchRequest, SearchView,
        SubmitAnswer, WorkAnswer, WorkRequest,
    },
    demand::{DemandView, SpeedsView},
    digest::{BlobRef, Digest},
    ids::{ClaimId, HostId, JobId, LeaseId, TokenId, TrialId, Version},
    incarnation::Incarnation,
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineReport, MachinesAnswer,
    },
    manifest::{DataManifest, DataSplit},
    quotas::TokenQuotas,
    reason::ReleaseReason,
    spec::JobSpec,
    tokens::{RevokedToken, TokenRequest, TokenView},
    view::{
        EvaluationView, HopMatrixView, HostDetail, HostView, JobDetail, JobView, TrialHistory,
        TrialView,
    },
};
use sojourn_scheduling::waiters::ReplyTo;
use sojourn_state::{BlobStatus, By, Fault, JournalPosition, UnitKey};

/// A command that is answered with a value of one type.
pub trait Request {
    /// The type of its answer.
    type Answer;

    /// The command, for whom to answer.
    fn command(self, to: ReplyTo) -> Command;

    /// The value in an answer.
    ///
    /// # Errors
    /// The answer itself, where it is that of another command: a fault of the program.
    fn value(answer: Answer) -> Result<Self::Answer, Box<Answer>>;
}

/// A request of a user, which the core carries out where the user's token may ask for it.
#[derive(Debug, Clone)]
pub struct OnBehalf<R> {
    /// The user's token.
    pub by: By,
    /// The request.
    pub request: R,
}

impl<R: Request> Request for OnBehalf<R> {
    type Answer = R::Answer;

    fn command(self, to: ReplyTo) -> Command {
        let command = Box::new(self.request.command(to));
        Command::OnBehalf { to, by: self.by, command }
    }

    fn value(answer: Answer) -> Result<R::Answer, Box<Answer>> {
        R::value(answer)
    }
}

macro_rules! requests {
    ($($name:ident { $($field:ident: $type:ty),* } => $answer:ty, $pattern:pat => $value:expr;)*) => {$(
        #[doc = concat!("[`Command::", stringify!($name), "`], with its answer.")]
        #[derive(Debug, Clone)]
        #[expect(missing_docs, reason = "the command says it")]
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl Request for $name {
            type Answer = $answer;

            fn command(self, to: ReplyTo) -> Command {
                let Self { $($field),* } = self;
                Command::$name { to, $($field),* }
            }

            fn value(answer: Answer) -> Result<$answer, Box<Answer>> {
                match answer {
                    $pattern => Ok($value),
                    other => Err(Box::new(other)),
                }
            }
        }
    )*};
}

macro_rules! queries {
    ($($name:ident { $($field:ident: $type:ty),* } from $query:ident => $answer:ty, $pattern:pat => $value:expr;)*) => {$(
        #[doc = concat!("[`Query::", stringify!($query), "`], with its answer.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            $(
                #[doc = concat!("The ", stringify!($field), ".")]
                pub $field: $type,
            )*
        }

        impl Request for $name {
            type Answer = $answer;

            fn command(self, to: ReplyTo) -> Command {
                let Self { $($field),* } = self;
                let query = Query::$query { $($field),* };
                Command::Query { to, query }
            }

            fn value(answer: Answer) -> Result<$answer, Box<Answer>> {
                match answer {
                    $pattern => Ok($value),
                    other => Err(Box::new(other)),
                }
            }
        }
    )*};
}

requests! {
    Enrol { name: String, token_sha256: Digest } => HostId, Answer::Enrolled(host) => host;
    EnrolWithToken { name: String, token_sha256: Digest, with: TokenId } => HostId,
        Answer::Enrolled(host) => host;
    CreateToken { request: TokenRequest, sha256: Digest, by: Option<By> } => TokenView,
        Answer::Token(token) => *token;
    SetQuotas { token: TokenId, quotas: TokenQuotas, by: By } => TokenView,
        Answer::Token(token) => *token;
    RotateToken { token: TokenId, sha256: Digest } => TokenView, Answer::Token(token) => *token;
    RevokeToken { token: TokenId, of: Option<JobId>, by: Option<By> } => RevokedToken,
        Answer::TokenRevoked(revoked) => *revoked;
    RevokeHost { host: HostId } => HostView, Answer::Host(host) => *host;
    BlockHost { host: HostId, blocked: bool, by: By } => HostView, Answer::Host(host) => *host;
    HearIncarnation { host: HostId, incarnation: Incarnation, rival: Option<Incarnation> } => (),
        Answer::IncarnationHeard => ();
    ForgetHost { host: HostId } => HostView, Answer::Host(host) => *host;
    Ask { host: HostId, request: WorkRequest } => WorkAnswer, Answer::Work(work) => *work;
    Heartbeat { host: HostId, request: HeartbeatRequest } => HeartbeatAnswer,
        Answer::Heartbeat(answer) => answer;
    Release { host: HostId, leases: Vec<LeaseId>, reason: ReleaseReason } => ReleaseAnswer,
        Answer::Released(answer) => answer;
    AuthorizeUpload { host: HostId, lease: LeaseId, bytes: u64 } => (),
        Answer::UploadAuthorized => ();
    AuthorizeRead { host: HostId, blob: Digest } => (), Answer::ReadAuthorized => ();
    Report { host: HostId, report: sojourn_protocol::report::Report, uploaded: Option<BlobRef> } => ReportAnswer,
        Answer::Report(answer) => answer;
    TakeAssimilation { losses: bool } => Option<Box<AssimilationUnit>>,
        Answer::Assimilation(unit) => unit;
    TakeSmallAssimilation { max_bytes: u64 } => Option<Box<AssimilationUnit>>,
        Answer::Assimilation(unit) => unit;
    RenewAssimilation { lease: LeaseId, claim: ClaimId } => Offered,
        Answer::Offered(offered) => offered;
    OfferAssimilated {
        lease: LeaseId, version: Version, checkpoint: BlobRef, merged: Option<MergeOffer>
    } => Offered, Answer::Offered(offered) => offered;
    OfferRejected { lease: LeaseId, reason: String, fault: Fault } => Offered,
        Answer::Offered(offered) => offered;
    Missing { blobs: Vec<BlobRef> } => Vec<Digest>, Answer::Missing(blobs) => blobs;
    AuthorizePublish { blob: BlobRef } => (), Answer::PublishAuthorized => ();
    Published { blob: BlobRef } => (), Answer::Published => ();
    Submit {
        spec: Box<JobSpec>, data: Box<DataManifest>, again: bool, nonce: Option<String>
    } => SubmitAnswer, Answer::Submitted(answer) => answer;
    SubmitPrepared {
        prepared: Box<PreparedSubmission>, again: bool, nonce: Option<String>
    } => SubmitAnswer, Answer::Submitted(answer) => answer;
    Cancel { job: JobId } => JobView, Answer::JobSummary(job) => *job;
    Evaluate { job: JobId, trial: TrialId, split: DataSplit } => EvaluationView,
        Answer::Evaluation(view) => *view;
    Pause { job: JobId, now: bool } => JobView, Answer::JobSummary(job) => *job;
    Resume { job: JobId } => JobView, Answer::JobSummary(job) => *job;
    Extend { job: JobId, epochs: u32, trial: Option<TrialId>, reopen: bool } => JobView,
        Answer::JobSummary(job) => *job;
    ChangeSearch { job: JobId, request: Box<SearchRequest>, by: By } => SearchAnswer,
        Answer::SearchChanged(answer) => *answer;
    Place { job: JobId, placement: PlacementRequest } => JobView, Answer::JobSummary(job) => *job;
    Note { job: JobId, note: String } => JobView, Answer::JobSummary(job) => *job;
    Rollback { job: JobId, request: RollbackRequest } => Vec<RolledBack>,
        Answer::RolledBack(trials) => trials;
    ReportMachines { machines: Vec<MachineReport> } => MachinesAnswer,
        Answer::Machines(answer) => answer;
    DrainMachines { request: DrainRequest } => MachinesAnswer, Answer::Machines(answer) => answer;
    Lead { request: LeaderRequest } => LeaderAnswer, Answer::Leader(answer) => *answer;
    Delete { jobs: Vec<JobId>, preview: bool } => DeletedJobs, Answer::Deleted(jobs) => *jobs;
}

queries! {
    GetJobs {} from Jobs => Vec<JobView>, Answer::Jobs(jobs) => jobs;
    GetJob { job: JobId } from Job => JobDetail, Answer::Job(job) => *job;
    GetTrials { job: JobId, from: TrialId, limit: u32 } from Trials => Vec<TrialView>,
        Answer::Trials(trials) => trials;
    GetLeadingTrials { job: JobId, limit: u32 } from LeadingTrials => Vec<TrialView>,
        Answer::Trials(trials) => trials;
    GetHops { job: JobId } from Hops => HopMatrixView, Answer::Hops(matrix) => *matrix;
    GetSearch { job: JobId } from Search => SearchView, Answer::Search(search) => *search;
    GetHistory { job: JobId, trial: TrialId } from History => TrialHistory,
        Answer::History(history) => *history;
    GetEvaluations { job: JobId, trial: TrialId } from Evaluations => Vec<EvaluationView>,
        Answer::Evaluations(evaluations) => evaluations;
    GetHosts {} from Hosts => Vec<HostView>, Answer::Hosts(hosts) => hosts;
    GetHostsOf { job: JobId } from HostsOf => Vec<HostView>, Answer::Hosts(hosts) => hosts;
    GetHost { host: HostId } from Host => HostDetail, Answer::HostDetail(host) => *host;
    GetLeasedUnit { lease: LeaseId } from LeasedUnit => Option<UnitKey>,
        Answer::LeasedUnit(unit) => unit;
    GetDemand {} from Demand => DemandView, Answer::Demand(demand) => *demand;
    GetCosts {} from Costs => CostsView, Answer::Costs(costs) => *costs;
    GetSpeeds {} from Speeds => SpeedsView, Answer::Speeds(speeds) => speeds;
    GetHolder { token_sha256: Digest } from HolderOf => Option<Holder>,
        Answer::HolderOf(holder) => holder;
    GetTokens {} from Tokens => Vec<TokenView>, Answer::Tokens(tokens) => tokens;
    GetLinks { job: JobId } from Links => Vec<TokenView>, Answer::Tokens(tokens) => tokens;
    GetFailureQuota { token: TokenId } from FailureQuota => Option<u32>,
        Answer::FailureQuota(most) => most;
    GetBlobStatus { blob: Digest } from BlobStatus => Option<BlobStatus>,
        Answer::BlobStatus(status) => status;
    GetLostBlobs {} from LostBlobs => Vec<BlobRef>, Answer::LostBlobs(blobs) => blobs;
    GetAssimilations {} from Assimilations => AssimilationCounts,
        Answer::Assimilations(counts) => counts;
    GetFigures {} from Figures => Figures, Answer::Figures(figures) => *figures;
    GetPosition {} from Position => JournalPosition, Answer::Position(position) => position;
}
