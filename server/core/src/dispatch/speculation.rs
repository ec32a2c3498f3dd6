//! When it is looked for hops that are worth a second lease, and the grants.

use super::Dispatcher;
use crate::{effect::Answer, fault::CoreFault, ledger::SPECULATION_INTERVAL};
use sojourn_protocol::ids::JobId;
use sojourn_scheduling::schedule::{Assignment, Speculate, SpeculationTarget};
use std::collections::BTreeMap;

impl Dispatcher<'_> {
    /// Gives speculative leases to waiting hosts, where it is the time to look.
    pub(crate) fn speculate(&mut self) -> Result<(), CoreFault> {
        let now = self.leases.ledger.clock.now();
        if !self.leases.ledger.planner.begin_speculation(now) || self.storage.is_low() {
            return Ok(());
        }
        let jobs: Vec<JobId> =
            self.scheduler().by_fair_share().into_iter().map(|job| job.id).collect();
        self.find_stragglers(&jobs);
        for job in jobs {
            while self.leases.ledger.waiters.polls().any_idle() {
                match self.scheduler().find_speculation(job) {
                    Speculate::Grant(target, assignment) => {
                        self.grant_speculation(target, *assignment)?;
                    }
                    Speculate::Later(look_at) => {
                        if let Some(at) = look_at {
                            let at = at.max(now + SPECULATION_INTERVAL);
                            self.leases.ledger.planner.speculate_at(at);
                        }
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks for the leases by which jobs would end later: hosts that ask from now on may get second ones.
    fn find_stragglers(&mut self, jobs: &[JobId]) {
        let now = self.leases.ledger.clock.now();
        let mut all = BTreeMap::new();
        for job in jobs {
            let (straggler, look_at) = self.scheduler().straggler(*job);
            all.extend(straggler.map(|lease| (*job, lease)));
            if let Some(at) = look_at {
                self.leases.ledger.planner.speculate_at(at.max(now + SPECULATION_INTERVAL));
            }
        }
        self.leases.ledger.planner.set_stragglers(all);
    }

    fn grant_speculation(
        &mut self,
        target: SpeculationTarget,
        assignment: Assignment,
    ) -> Result<(), CoreFault> {
        let SpeculationTarget { host, device, .. } = target;
        let Some(poll) = self.leases.ledger.waiters.polls_mut().take(host) else { return Ok(()) };
        let mut answer = self.work(host, &poll.request)?;
        if answer.leases.is_empty() {
            answer.leases.extend(self.give(host, &device, assignment)?);
        }
        self.leases.ledger.reply(poll.to, Ok(Answer::Work(Box::new(answer))));
        Ok(())
    }
}
