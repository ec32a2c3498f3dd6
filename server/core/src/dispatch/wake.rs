//! Waiting hosts are looked at after each step in which something has changed for them.
//!
//! Units of one trial that have become runnable are offered at once to the hosts that they fit. After other changes all waiting
//! hosts are looked at: in one step where they are few, else in batches (`sweep.rs`).

use super::{Waiters, Wake, WakeUps, dispatcher::Dispatcher, long_polls::Rank, sweep::SWEEP_BATCH};
use crate::{
    fault::CoreFault,
    schedule::{Priorities, Scheduler},
};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
};
use sojourn_state::Change;
use std::collections::BTreeSet;

/// Waiting hosts that work of a trial is offered to, of those that any work may be offered to.
const MAX_OFFERS: usize = 8;

impl Dispatcher<'_> {
    /// Answers waiting hosts for which something has changed: those whom the work of a trial fits; all of them, the fastest
    /// first, where more has changed; then those that have something else to hear.
    pub(crate) fn answer_waiting_hosts(&mut self) -> Result<(), CoreFault> {
        let WakeUps { all, trials, hosts } =
            std::mem::take(&mut self.leases.ledger.waiters.wakeups);
        let at_once = all && self.leases.ledger.waiters.fit_one_step();
        for (job, trial) in trials.into_iter().filter(|_| !at_once) {
            for host in self.scheduler().hosts_for(job, trial) {
                if self.leases.ledger.state.supply() > 0 {
                    self.answer_if_possible(host)?;
                }
            }
        }
        let mut looked_at = None;
        if at_once {
            self.leases.ledger.waiters.sweep.cancel();
            looked_at = self.look_through(None, usize::MAX)?.0;
        } else {
            if all {
                self.leases.ledger.waiters.sweep.request();
            }
            self.sweep()?;
        }
        self.offer_to_supplied()?;
        let polls = &self.leases.ledger.waiters.polls;
        let mut others: Vec<Rank> = hosts
            .into_iter()
            .filter_map(|host| polls.rank(host))
            .filter(|rank| looked_at.is_none_or(|last| *rank > last || !polls.waits(rank.host)))
            .collect();
        others.sort_unstable();
        others.dedup();
        for rank in others {
            self.answer_if_possible(rank.host)?;
        }
        Ok(())
    }

    /// Offers units that nobody waited for to hosts that have leases of lower priority which they haven't begun.
    fn offer_to_supplied(&mut self) -> Result<(), CoreFault> {
        for host in Priorities::of(&self.scheduler()).hosts_to_yield() {
            self.answer_if_possible(host)?;
        }
        Ok(())
    }

    /// While there is work, looks at so many of the waiting hosts behind this one. The last of them, and whether any got
    /// an answer.
    fn look_through(
        &mut self,
        behind: Option<Rank>,
        max: usize,
    ) -> Result<(Option<Rank>, bool), CoreFault> {
        let (mut last, mut of_use) = (behind, false);
        for _ in 0..max {
            if self.leases.ledger.state.supply() == 0 {
                break;
            }
            let Some(rank) = self.leases.ledger.waiters.polls.first_behind(last) else { break };
            last = Some(rank);
            of_use |= self.answer_if_possible(rank.host)?;
        }
        Ok((last, of_use))
    }

    /// Goes on with a sweep through all waiting hosts, where its next batch is due.
    fn sweep(&mut self) -> Result<(), CoreFault> {
        let now = self.leases.ledger.clock.now();
        if self.leases.ledger.state.supply() == 0 {
            self.leases.ledger.waiters.sweep.cancel();
            return Ok(());
        }
        let Some(behind) = self.leases.ledger.waiters.sweep.due(now) else { return Ok(()) };
        let looked = self.look_through(behind, SWEEP_BATCH)?;
        let sweep = &mut self.leases.ledger.waiters.sweep;
        match looked {
            (Some(last), true) => sweep.goes_on(last),
            _ => sweep.end(now),
        }
        Ok(())
    }

    /// Tells waiting hosts of shards that they are to keep from now on, so that they don't fetch them only when one of
    /// them is needed.
    pub(crate) fn announce_replicas(&mut self) -> Result<(), CoreFault> {
        for host in self.placement().take_hosts_to_tell() {
            let fetch = self.placement().prefetch(host);
            if !fetch.is_empty() {
                self.answer_with(host, fetch)?;
            }
        }
        Ok(())
    }
}

impl Waiters {
    /// Has the waiting hosts looked at for which something has changed: units may have become runnable, or a host's lease has
    /// ended.
    pub(crate) fn take_note(&mut self, change: Change) {
        match change {
            Change::LeaseEnded { host, .. } => {
                self.wake(Wake::Host(host));
                self.wake(Wake::All);
            }
            Change::Runnable(None) => self.wake(Wake::All),
            Change::Runnable(Some((job, trial))) => self.wake(Wake::Trial(job, trial)),
            Change::Work { .. }
            | Change::LeaseGranted(_)
            | Change::Reported(_)
            | Change::ResultSettled { .. }
            | Change::NothingFollows(_)
            | Change::Job(_)
            | Change::WallTime => {}
        }
    }

    /// Looks again at hosts that left something to others for as long as that was expected to take.
    pub(crate) fn expire_delays(&mut self, now: UnixMillis) {
        let due = self.delays.take_due(now);
        if due.is_empty() {
            return;
        }
        if self.fit_one_step() {
            self.delays.clear();
            self.wake(Wake::All);
        } else {
            due.into_iter().for_each(|host| self.wake(Wake::Host(host)));
        }
    }

    /// Are the waiting hosts so few that all of them can be looked at in one step?
    fn fit_one_step(&self) -> bool {
        self.polls.len() <= SWEEP_BATCH
    }
}

impl<'a> Scheduler<'a> {
    /// Waiting hosts that work of a trial is offered to, when it has become runnable: the one that its plan names, the one
    /// that holds its checkpoint, those that keep or hold its shards, the fastest first, and the fastest of all. Others
    /// get their chance when they ask again.
    pub(super) fn hosts_for(&self, job: JobId, trial: TrialId) -> Vec<HostId> {
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
