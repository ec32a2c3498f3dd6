//! When replicas are assigned anew, and the classes that jobs prefer chosen anew: whenever hosts come or go.

use crate::ledger::Ledger;
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId},
    quantity::to_u64,
    spec::Replicas,
};
use sojourn_scheduling::{data::DataPlacement, hosts::Hosts, schedule::Eligibility, waiters::Wake};
use sojourn_state::Job;
use std::collections::BTreeMap;

/// Assigns replicas, prefetches and evictions.
pub(crate) struct PlacementHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) hosts: &'a Hosts,
    pub(crate) data: &'a mut DataPlacement,
}

impl PlacementHandler<'_> {
    pub(super) fn eligibility(&self) -> Eligibility<'_> {
        self.ledger.eligibility(self.hosts, self.data)
    }

    /// Assigns replicas anew where the fleet or its cool-downs have changed, and those of jobs that have none yet.
    pub(crate) fn reassign_replicas(&mut self) {
        let (fleet, cooldowns) = (self.hosts.fleet().version(), self.hosts.cooldown_version());
        let cooling = || self.hosts.cooldowns().map(|(host, _)| host).collect();
        let versions = [fleet, cooldowns, self.ledger.index.version()];
        let Some(outdated) = self.data.outdated(versions, cooling) else { return };
        let state = &*self.ledger.state;
        let due = self.ledger.index.jobs().filter_map(|job| {
            let Replicas::Fixed(copies) = state.jobs.get(&job)?.spec.placement.replicas else {
                return None;
            };
            let is_due =
                outdated.all || !self.data.has_replicas(job) || outdated.jobs.contains(&job);
            is_due.then_some((job, copies))
        });
        let due: Vec<(JobId, u32)> = due.collect();
        for (job, copies) in due {
            let mut replicas = self.data.take_replicas(job);
            if let Some(known) = self.ledger.state.jobs.get(&job) {
                replicas = self.eligibility().assign_replicas(known, copies, replicas);
            }
            self.data.set_replicas(job, replicas);
            self.ledger.waiters.wake(Wake::All);
        }
        let index = &*self.ledger.index;
        self.data.keep_jobs(|job| index.has_work(job));
    }

    /// Hosts that wait and lack a shard that they are to keep, if replicas were assigned since this was asked last.
    pub(crate) fn take_hosts_to_tell(&mut self) -> Vec<HostId> {
        if !self.data.take_reassigned() {
            return Vec::new();
        }
        let jobs = self.data.all_replicas();
        let jobs = jobs.filter_map(|(job, _)| self.ledger.state.jobs.get(&job));
        let jobs: Vec<&Job> = jobs.filter(|job| job.is_open()).collect();
        let eligibility = self.eligibility();
        let lacks = |host: &HostId| {
            jobs.iter().any(|job| !eligibility.missing_replicas(job, *host).is_empty())
        };
        self.ledger.waiters.polls().fastest().filter(lacks).collect()
    }

    /// Chooses anew which numeric class each job prefers, where the fleet, the jobs or the number of trials have changed.
    pub(crate) fn prefer_classes(&mut self) {
        let (fleet, index) = (self.hosts.fleet(), &*self.ledger.index);
        let is_choice = fleet.offers_choice();
        let preferred = self.ledger.planner.preferred_mut();
        let inputs = [fleet.version(), to_u64(index.running_trials()), index.version()];
        if (!is_choice && preferred.is_empty()) || !preferred.chosen_for.changed(inputs) {
            return;
        }
        let jobs = index.jobs().filter(|_| is_choice).filter_map(|id| {
            let job = self.ledger.state.jobs.get(&id)?;
            let remaining = index.remaining(id)?;
            let class = self.eligibility().preferred_class(job, remaining)?;
            Some((id, class))
        });
        let by_job: BTreeMap<JobId, Digest> = jobs.collect();
        if self.ledger.planner.preferred_mut().set(by_job) {
            self.data.invalidate();
            self.ledger.planner.outdate_plans_but(None);
            self.ledger.waiters.wake(Wake::All);
        }
    }
}
