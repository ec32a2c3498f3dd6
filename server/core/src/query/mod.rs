//! Views of the state: the answers to queries.
//!
//! | file | holds |
//! |---|---|
//! | `jobs.rs` | jobs and trials |
//! | `search.rs` | what a search has tried, for programs that ask and tell |
//! | `hops.rs` | how far the hops of running trials are |
//! | `evaluations.rs` | evaluations outside the search |
//! | `hosts.rs` | hosts and their devices |
//! | `demand.rs`, `costs.rs` | the work that there is for machines, and what bought ones have cost |
//! | `progress.rs` | how far the trials of a job are, in one walk |
//! | `time_left.rs`, `deadline.rs` | how long a job has to go, and how it stands to its deadline |
//! | `tokens.rs` | tokens that were issued, and whose a token is |
//! | `assimilation.rs` | the assimilators' queue |
//! | `figures.rs` | the whole server in numbers, for monitoring |
//! | `waiting.rs` | why jobs and trials wait, in words |

mod assimilation;
mod costs;
mod deadline;
mod demand;
mod evaluations;
mod figures;
mod hops;
mod hosts;
mod jobs;
mod progress;
mod search;
mod time_left;
mod tokens;
mod waiting;

use crate::{
    assimilation_queue::AssimilationQueue, clock::Clock, command::Query, effect::Answer,
    figures::Totals,
};
use sojourn_protocol::{error::ApiError, storage::Storage, time::UnixMillis};
use sojourn_scheduling::{
    config::CoreConfig,
    cost::Cost,
    data::DataPlacement,
    hosts::Hosts,
    index::DerivedIndex,
    leases::Leases,
    schedule::{Eligibility, Planner},
};
use sojourn_state::State;

/// Everything that the answers to queries rest on.
#[derive(Clone, Copy)]
pub(crate) struct Views<'a> {
    pub(crate) state: &'a State,
    pub(crate) config: &'a CoreConfig,
    pub(crate) hosts: &'a Hosts,
    pub(crate) leases: &'a Leases,
    pub(crate) data: &'a DataPlacement,
    pub(crate) now: UnixMillis,
    pub(crate) cost: Cost<'a>,
    pub(crate) eligible: Eligibility<'a>,
    pub(crate) index: &'a DerivedIndex,
    pub(crate) queue: &'a AssimilationQueue,
    pub(crate) clock: &'a Clock,
    pub(crate) storage: &'a Storage,
    pub(crate) planner: &'a Planner,
    pub(crate) totals: &'a Totals,
}

impl Views<'_> {
    /// The answer to a query.
    pub(crate) fn answer(&self, query: Query) -> Result<Answer, ApiError> {
        Ok(match query {
            Query::Jobs => Answer::Jobs(self.jobs()),
            Query::Job { job } => Answer::Job(Box::new(self.job(job)?)),
            Query::Trials { job, from, limit } => Answer::Trials(self.trials(job, from, limit)?),
            Query::LeadingTrials { job, limit } => Answer::Trials(self.leading_trials(job, limit)?),
            Query::Hops { job } => Answer::Hops(Box::new(self.hops(job)?)),
            Query::Search { job } => Answer::Search(Box::new(self.search(job)?)),
            Query::History { job, trial } => Answer::History(Box::new(self.history(job, trial)?)),
            Query::Evaluations { job, trial } => Answer::Evaluations(self.evaluations(job, trial)?),
            Query::Hosts => Answer::Hosts(self.hosts()),
            Query::HostsOf { job } => Answer::Hosts(self.hosts_of(job)?),
            Query::Host { host } => Answer::HostDetail(Box::new(self.host_detail(host)?)),
            Query::LeasedUnit { lease } => {
                Answer::LeasedUnit(self.state.lease(lease).map(|lease| lease.unit))
            }
            Query::Demand => Answer::Demand(Box::new(self.demand())),
            Query::Costs => Answer::Costs(Box::new(self.costs())),
            Query::Speeds => Answer::Speeds(self.speeds()),
            Query::HolderOf { token_sha256 } => Answer::HolderOf(self.holder_of(token_sha256)),
            Query::Tokens => Answer::Tokens(self.tokens()),
            Query::Links { job } => Answer::Tokens(self.links(job)?),
            Query::FailureQuota { token } => {
                Answer::FailureQuota(self.quotas().limits(token).map(|limits| limits.failures))
            }
            Query::BlobStatus { blob } => Answer::BlobStatus(self.state.blobs.status(&blob)),
            Query::LostBlobs => Answer::LostBlobs(self.state.blobs.all_lost().collect()),
            Query::Assimilations => Answer::Assimilations(self.assimilations()),
            Query::Figures => Answer::Figures(Box::new(self.figures())),
            Query::Position => Answer::Position(self.state.position),
        })
    }
}
