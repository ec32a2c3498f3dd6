//! The waiting hosts that work of a trial is offered to.

use super::scheduler::Scheduler;
use crate::waiters::Rank;
use sojourn_protocol::ids::{HostId, JobId, TrialId};
use std::collections::BTreeSet;

/// Waiting hosts that work of a trial is offered to, of those that any work may be offered to.
const MAX_OFFERS: usize = 8;

impl<'a> Scheduler<'a> {
    /// Waiting hosts that work of a trial is offered to, when it has become runnable: the one that its plan names, the one
    /// that holds its checkpoint, those that keep or hold its shards, the fastest first, and the fastest of all. Others
    /// get their chance when they ask again.
    pub fn hosts_for(&self, job: JobId, trial: TrialId) -> Vec<HostId> {
        let Some(known) = self.state.jobs.get(&job) else { return Vec::new() };
        let Some(of_job) = known.trial(trial) else { return Vec::new() };
        let planned = self.planned_host(known, of_job);
        let last = of_job.history.last().map(|hop| hop.host);
        let first = of_job.home().into_iter().chain(planned).chain(last);
        let mut hosts: Vec<HostId> = first.filter(|host| self.waiters.waits(*host)).collect();
        match self.data.replicas(job) {
            Some(replicas) => {
                let open = of_job.open_chain().next_shards().flat_map(|shard| replicas.all(shard));
                let waiting = open.filter_map(|host| self.waiters.polls().rank(host));
                let waiting: BTreeSet<Rank> = waiting.collect();
                hosts.extend(waiting.into_iter().map(|rank| rank.host));
                // An evaluation needs no replica.
                hosts.extend(self.waiters.polls().fastest().take(1));
            }
            None => {
                hosts.extend(self.local.waiting_holders(known, of_job).take(MAX_OFFERS));
                hosts.extend(self.waiters.polls().fastest().take(MAX_OFFERS));
            }
        }
        let mut seen = BTreeSet::new();
        hosts.retain(|host| seen.insert(*host));
        hosts
    }
}
