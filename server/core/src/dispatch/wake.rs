//! Waiting hosts are looked at after each step in which something has changed for them.
//!
//! Units of one trial that have become runnable are offered at once to the hosts that they fit. After other changes all waiting
//! hosts are looked at: in one step where they are few, else in batches (`Sweep` in `server/scheduling`).

use super::dispatcher::Dispatcher;
use crate::fault::CoreFault;
use sojourn_scheduling::{
    schedule::Priorities,
    waiters::{Rank, SWEEP_BATCH, WakeUps},
};

impl Dispatcher<'_> {
    /// Answers waiting hosts for which something has changed: those whom the work of a trial fits; all of them, the fastest
    /// first, where more has changed; then those that have something else to hear.
    pub(crate) fn answer_waiting_hosts(&mut self) -> Result<(), CoreFault> {
        let WakeUps { all, trials, hosts } = self.leases.ledger.waiters.take_wakeups();
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
            self.leases.ledger.waiters.sweep_mut().cancel();
            looked_at = self.look_through(None, usize::MAX)?.0;
        } else {
            if all {
                self.leases.ledger.waiters.sweep_mut().request();
            }
            self.sweep()?;
        }
        self.offer_to_supplied()?;
        let polls = self.leases.ledger.waiters.polls();
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
            let Some(rank) = self.leases.ledger.waiters.polls().first_behind(last) else { break };
            last = Some(rank);
            of_use |= self.answer_if_possible(rank.host)?;
        }
        Ok((last, of_use))
    }

    /// Goes on with a sweep through all waiting hosts, where its next batch is due.
    fn sweep(&mut self) -> Result<(), CoreFault> {
        let now = self.leases.ledger.clock.now();
        if self.leases.ledger.state.supply() == 0 {
            self.leases.ledger.waiters.sweep_mut().cancel();
            return Ok(());
        }
        let Some(behind) = self.leases.ledger.waiters.sweep_mut().due(now) else { return Ok(()) };
        let looked = self.look_through(behind, SWEEP_BATCH)?;
        let sweep = self.leases.ledger.waiters.sweep_mut();
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
