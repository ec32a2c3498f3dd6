//! How leases come, live and end in the state.

use super::{Lease, Past, PastState, State, Trial};
use crate::event::{LeaseEnd, UnitKey};
use sojourn_protocol::{
    ids::LeaseId,
    report::{Outcome, Report},
    time::UnixMillis,
};
use std::sync::Arc;

impl State {
    pub(super) fn granted(&mut self, lease: Lease) {
        self.last_lease = self.last_lease.max(lease.id);
        if let Some(job) = self.jobs.get_mut(&lease.unit.job()) {
            job.counters.leases_live += 1;
            if lease.copy_of.is_some() {
                let work = job.work_of(&lease);
                job.counters.copies += 1;
                job.counters.copied = job.counters.copied.saturating_add(work);
            }
            job.employs(lease.host);
            if let Some((live, _)) = job.attempts_mut(&lease.unit) {
                live.insert(lease.id);
            }
        }
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.live.insert(lease.id);
        }
        self.change_hop(&lease, |trial| trial.hop_granted(&lease));
        self.leases.insert(lease.id, Arc::new(lease));
    }

    /// Changes the trial of a hop's lease.
    fn change_hop(&mut self, lease: &Lease, change: impl FnOnce(&mut Trial)) {
        let UnitKey::Train { job, trial, .. } = lease.unit else { return };
        if self.trial(job, trial).is_some_and(|trial| trial.merging.is_some()) {
            self.change_trial(job, trial, self.at, change);
        } else if let Some(trial) = self.trial_mut(job, trial) {
            // No blob is referred to otherwise than before.
            change(trial);
        }
    }

    /// Nothing more of a hop's lease is to come.
    pub(super) fn hop_over(&mut self, lease: &Lease) {
        self.change_hop(lease, |trial| trial.hop_over(lease));
    }

    /// Takes a lease out of the live ones; its state is for the caller to say.
    fn unlive(&mut self, lease: LeaseId) -> Option<Arc<Lease>> {
        let lease = self.leases.remove(&lease)?;
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.live.remove(&lease.id);
        }
        if let Some(job) = self.jobs.get_mut(&lease.unit.job()) {
            job.counters.leases_live -= 1;
            job.dismisses(lease.host);
            if let Some((live, _)) = job.attempts_mut(&lease.unit) {
                live.remove(&lease.id);
            }
        }
        Some(lease)
    }

    pub(super) fn lease_ended(&mut self, id: LeaseId, end: &LeaseEnd, at: UnixMillis) {
        let Some(lease) = self.unlive(id) else { return };
        if *end != LeaseEnd::Revoked {
            self.lost_beside_a_copy(&lease);
        }
        let ran_out = matches!(end, LeaseEnd::Silent | LeaseEnd::Overdue);
        self.change_hop(&lease, |trial| match ran_out {
            true => trial.hop_late(&lease),
            false => trial.hop_over(&lease),
        });
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.expired += u64::from(ran_out);
            if ran_out {
                host.reliability.break_one(at);
            }
        }
        let forget_at = at + self.remember;
        self.past_order.insert((forget_at, id));
        self.past.insert(id, Past { lease, state: PastState::Lapsed(end.clone()), forget_at });
        self.count(id, |counters| {
            counters.leases_expired += u64::from(ran_out);
            counters.leases_returned += u64::from(!ran_out);
        });
    }

    pub(super) fn acknowledged(&mut self, report: &Report, at: UnixMillis) {
        let id = report.lease;
        let lease = match self.unlive(id) {
            Some(lease) => {
                self.kept_deadline(&lease, &report.outcome, at);
                lease
            }
            None => match self.past.remove(&id) {
                Some(past) => {
                    self.past_order.remove(&(past.forget_at, id));
                    past.lease
                }
                None => return,
            },
        };
        let wanted = self.is_wanted(&lease);
        self.change_hop(&lease, |trial| match &report.outcome {
            Outcome::Trained(trained) if wanted => trial.hop_reported(&lease, trained),
            _ => trial.hop_over(&lease),
        });
        let state = PastState::Acknowledged(Box::new(report.outcome.clone()));
        // Open until it ends; nothing forgets it before that.
        self.past.insert(id, Past { lease, state, forget_at: at });
    }

    /// A live lease was reported. Trainer errors are counted elsewhere.
    fn kept_deadline(&mut self, lease: &Lease, outcome: &Outcome, at: UnixMillis) {
        if let Outcome::Failed(_) = outcome {
            self.lost_beside_a_copy(lease);
        } else if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.reliability.keep(at);
        }
    }

    /// A lease came to nothing. Its copy, where it has one, repeats nothing any more: it is the only one.
    fn lost_beside_a_copy(&mut self, lost: &Lease) {
        let Some(job) = self.jobs.get(&lost.unit.job()) else { return };
        let live = job.live_of(&lost.unit).into_iter().flatten().copied();
        let copies: Vec<LeaseId> = live
            .filter(|id| self.leases.get(id).is_some_and(|lease| lease.copy_of == Some(lost.id)))
            .collect();
        for copy in copies {
            let Some(lease) = self.leases.get_mut(&copy) else { continue };
            Arc::make_mut(lease).copy_of = None;
            if let Some(job) = self.jobs.get_mut(&lost.unit.job()) {
                let work = job.work_of(lease);
                job.counters.copied = job.counters.copied.saturating_sub(work);
            }
        }
    }

    pub(super) fn forget_old_leases(&mut self) {
        while let Some((at, id)) = self.past_order.first().copied()
            && at < self.at
        {
            self.past_order.pop_first();
            self.past.remove(&id);
        }
    }
}
