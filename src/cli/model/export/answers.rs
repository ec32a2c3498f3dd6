//! A server's answers about one job: all that tables and event files are made of.

use super::journal::{Journal, UnreadableEvent};
use crate::{api_client::ApiClient, cli::terminal::exit::Failure};
use sojourn_api::endpoints;
use sojourn_http::CallError;
use sojourn_protocol::{
    error::error_chain,
    ids::{HostId, JobId, TrialId},
    machines::CostsView,
    money::MicroUsd,
    spec::TrialConfig,
    unit::{Base, Hop},
    view::{EventView, HopRecord, HostView, JobDetail, TrialHistory, TrialView},
};
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// Histories of trials that are asked for at a time.
const HISTORIES: usize = 8;

/// The fixed part of a trial, and the hops that are in its model.
#[derive(Debug, Clone)]
pub(in crate::cli::model) struct TrialRecord {
    /// The seed from which the trial's row order and dropout follow.
    pub(in crate::cli::model) seed: u64,
    /// The trial's hyper-parameters.
    pub(in crate::cli::model) config: TrialConfig,
    /// In the order of the versions that they made.
    pub(in crate::cli::model) hops: Vec<AcceptedHop>,
}

/// A result that is in its trial's model.
#[derive(Debug, Clone)]
pub(in crate::cli::model) struct AcceptedHop {
    pub(in crate::cli::model) record: HopRecord,
    /// Optimiser steps of the checkpoint that it was trained from. None where the data lacks a shard of the hop.
    pub(in crate::cli::model) first_step: Option<u64>,
}

impl TrialRecord {
    /// The part of a history that is needed: not the data, which is the job's and may be long.
    pub(in crate::cli::model) fn of(history: &TrialHistory) -> Self {
        let base: Base = history.first_base();
        let accepted = |record: &HopRecord| {
            let hop: Option<Hop> = history.hop_of(record, base);
            AcceptedHop { record: record.clone(), first_step: hop.map(|hop| hop.start.step) }
        };
        Self {
            seed: history.job_seed,
            config: history.context.config.clone(),
            hops: history.hops.iter().map(accepted).collect(),
        }
    }
}

/// The server's answers about a job.
#[derive(Debug)]
pub(in crate::cli::model) struct Answers {
    pub(in crate::cli::model) detail: JobDetail,
    /// In their order.
    pub(in crate::cli::model) trials: Vec<TrialView>,
    pub(in crate::cli::model) records: BTreeMap<TrialId, TrialRecord>,
    pub(in crate::cli::model) journal: Journal,
    /// Names of hosts. A host that the server has forgotten has none.
    pub(in crate::cli::model) hosts: BTreeMap<HostId, String>,
    /// Where machines were bought.
    pub(in crate::cli::model) costs: BTreeMap<TrialId, MicroUsd>,
}

/// Answers that came at once, some of them only for trials and events that weren't known.
pub(in crate::cli::model) struct Fresh {
    pub(in crate::cli::model) detail: JobDetail,
    pub(in crate::cli::model) trials: Vec<TrialView>,
    pub(in crate::cli::model) records: BTreeMap<TrialId, TrialRecord>,
    pub(in crate::cli::model) events: Vec<EventView>,
}

impl Answers {
    /// Reads everything. Events are read last: then they know of all that the other answers say.
    pub(in crate::cli::model) async fn read(
        client: &ApiClient,
        job: JobId,
    ) -> Result<Self, Failure> {
        let hosts = client.call(endpoints::Hosts::request()).await?;
        let costs = client.call(endpoints::Costs::request()).await?;
        let fresh = fresh(client, job, &BTreeMap::new(), 0).await?;
        Ok(Self::of(job, fresh, &hosts, &costs)?)
    }

    /// Puts answers together.
    pub(in crate::cli::model) fn of(
        job: JobId,
        fresh: Fresh,
        hosts: &[HostView],
        costs: &CostsView,
    ) -> Result<Self, UnreadableEvent> {
        let Fresh { detail, trials, records, events } = fresh;
        let mut journal = Journal::default();
        journal.take(&events)?;
        let hosts = hosts.iter().map(|host| (host.host, host.name.clone())).collect();
        // Hosts that were lent cost nothing that the server knows.
        let is_bought = costs.cost > MicroUsd(0) || !costs.machines.is_empty();
        let of_job = costs.jobs.iter().filter(|cost| is_bought && cost.job == job);
        let costs = of_job.flat_map(|cost| &cost.trials).map(|trial| (trial.trial, trial.cost));
        let costs = costs.collect();
        Ok(Self { detail, trials, records, journal, hosts, costs })
    }

    /// Asks for what has changed since. The hops of trials that are known aren't asked for again.
    pub(in crate::cli::model) async fn ask_again(
        &self,
        client: &ApiClient,
    ) -> Result<Fresh, CallError> {
        let job = self.detail.summary.job;
        fresh(client, job, &self.records, self.journal.last()).await
    }

    /// Takes the answers of [`Self::ask_again`].
    pub(in crate::cli::model) fn take(&mut self, fresh: Fresh) -> Result<(), UnreadableEvent> {
        let Fresh { detail, trials, records, events } = fresh;
        self.detail = detail;
        self.trials = trials;
        self.records.extend(records);
        self.journal.take(&events)
    }
}

async fn fresh(
    client: &ApiClient,
    job: JobId,
    known: &BTreeMap<TrialId, TrialRecord>,
    after: u64,
) -> Result<Fresh, CallError> {
    // The job first: once it has ended, no trial changes any more.
    let detail = client.call(endpoints::Job::request(job)).await?;
    let trials = client.call(endpoints::Trials::request(job)).await?;
    let unknown = trials.iter().map(|view| view.trial).filter(|trial| !known.contains_key(trial));
    let unknown: Vec<TrialId> = unknown.collect();
    let mut records = BTreeMap::new();
    for some in unknown.chunks(HISTORIES) {
        let mut asked = JoinSet::new();
        for trial in some.iter().copied() {
            let client = client.clone();
            asked.spawn(async move {
                (trial, client.call(endpoints::History::request(job, trial)).await)
            });
        }
        for (trial, history) in asked.join_all().await {
            records.insert(trial, TrialRecord::of(&history?));
        }
    }
    let mut events = Vec::new();
    let mut after = after;
    loop {
        let page = client.call(endpoints::Events::request(job).after(after)).await?;
        let Some(last) = page.last() else { break };
        after = last.position;
        events.extend(page);
    }
    Ok(Fresh { detail, trials, records, events })
}

impl From<UnreadableEvent> for Failure {
    fn from(error: UnreadableEvent) -> Self {
        Failure::work(error_chain(&error))
    }
}
