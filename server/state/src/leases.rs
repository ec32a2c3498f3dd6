//! How leases are granted and end in the state.

use super::{FoldFault, Lease, Past, PastState, State, Trial};
use crate::event::{HopUnit, LeaseEnd};
use sojourn_protocol::{
    ids::{HostId, LeaseId},
    report::{Outcome, Report},
    time::UnixMillis,
};
use std::sync::Arc;

impl State {
    pub(super) fn granted(&mut self, lease: Lease) -> Result<(), FoldFault> {
        let (job, unit, at) = (lease.unit.job(), lease.unit, lease.granted_at);
        self.known_host(lease.host)?;
        self.known_trial(job, unit.trial())?;
        let known = self.known_job_mut(job)?;
        let (live, _) = known.attempts_mut(&unit).ok_or(FoldFault::UnknownEvaluation(unit))?;
        live.insert(lease.id);
        known.counters.leases_live += 1;
        if lease.speculative_for.is_some() {
            let work = known.work_of(&lease);
            known.counters.speculative_leases += 1;
            known.counters.speculative_work = known.counters.speculative_work.saturating_add(work);
        }
        known.add_host(lease.host);
        self.known_host_mut(lease.host)?.live.insert(lease.id);
        self.machine_took(lease.host);
        self.change_hop(&lease, at, |trial, _| trial.hop_granted(&lease))?;
        self.settle_trial(&lease)?;
        self.last_lease = self.last_lease.max(lease.id);
        self.leases.insert(lease.id, Arc::new(lease));
        Ok(())
    }

    /// Changes the trial of a hop's lease. Leases of evaluations are no part of a trial's chain.
    fn change_hop(
        &mut self,
        lease: &Lease,
        at: UnixMillis,
        change: impl FnOnce(&mut Trial, HopUnit),
    ) -> Result<(), FoldFault> {
        let Some(hop) = lease.unit.hop() else { return Ok(()) };
        let trial = self.known_trial_mut(hop.job, hop.trial)?;
        if trial.merging.is_some() {
            return self.change_trial(hop.job, hop.trial, at, |trial| change(trial, hop));
        }
        // No blob is referred to otherwise than before.
        change(trial, hop);
        Ok(())
    }

    /// A hop's lease has ended, and no result of it is expected any more.
    pub(super) fn hop_over(&mut self, lease: &Lease, at: UnixMillis) -> Result<(), FoldFault> {
        self.change_hop(lease, at, |trial, hop| trial.hop_over(hop, lease))
    }

    /// A live lease whose host, trial and count are there, so that it can be ended.
    fn live(&self, lease: LeaseId) -> Result<&Arc<Lease>, FoldFault> {
        let live = self.leases.get(&lease).ok_or_else(|| match self.past.contains_key(&lease) {
            true => FoldFault::NotLive(lease),
            false => FoldFault::UnknownLease(lease),
        })?;
        self.known_host(live.host)?;
        self.known_trial(live.unit.job(), live.unit.trial())?;
        match self.known_job(live.unit.job())?.counters.leases_live {
            0 => Err(FoldFault::CountBelowZero("live leases")),
            _ => Ok(live),
        }
    }

    /// Takes a live lease out of the live ones. The caller records how it ended.
    fn remove_live(&mut self, lease: &Lease, at: UnixMillis) -> Result<(), FoldFault> {
        self.leases.remove(&lease.id);
        self.known_host_mut(lease.host)?.live.remove(&lease.id);
        self.machine_gave(lease, at)?;
        let job = self.known_job_mut(lease.unit.job())?;
        let below_zero = FoldFault::CountBelowZero("live leases");
        job.counters.leases_live = job.counters.leases_live.checked_sub(1).ok_or(below_zero)?;
        job.remove_host(lease.host);
        // A unit that was settled, or whose trial has ended, has no attempts any more.
        if let Some((live, _)) = job.attempts_mut(&lease.unit) {
            live.remove(&lease.id);
        }
        Ok(())
    }

    pub(super) fn lease_ended(
        &mut self,
        id: LeaseId,
        end: &LeaseEnd,
        at: UnixMillis,
    ) -> Result<HostId, FoldFault> {
        let lease = Arc::clone(self.live(id)?);
        self.remove_live(&lease, at)?;
        if *end != LeaseEnd::Revoked {
            self.free_speculative_leases_of(&lease)?;
        }
        let ran_out = matches!(end, LeaseEnd::Silent | LeaseEnd::Overdue);
        self.change_hop(&lease, at, |trial, hop| match ran_out {
            true => trial.hop_late(hop, &lease),
            false => trial.hop_over(hop, &lease),
        })?;
        let (host, job) = (lease.host, lease.unit.job());
        let of = self.known_host_mut(host)?;
        of.expired += u64::from(ran_out);
        if ran_out {
            of.reliability.break_one(at);
        }
        let forget_at = at + self.remember;
        self.past_order.insert((forget_at, id));
        self.past.insert(id, Past { lease, state: PastState::Closed(end.clone()), forget_at });
        let counters = &mut self.known_job_mut(job)?.counters;
        counters.leases_expired += u64::from(ran_out);
        counters.leases_returned += u64::from(!ran_out);
        Ok(host)
    }

    /// A report was acknowledged, whether its lease was live or not.
    pub(super) fn acknowledged(
        &mut self,
        report: &Report,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let id = report.lease;
        let is_live = self.leases.contains_key(&id);
        let lease = match self.past.get(&id) {
            _ if is_live => Arc::clone(self.live(id)?),
            Some(past) if matches!(past.state, PastState::Closed(_)) => Arc::clone(&past.lease),
            Some(_) => return Err(FoldFault::NotLive(id)),
            None => return Err(FoldFault::UnknownLease(id)),
        };
        self.known_host(lease.host)?;
        self.known_trial(lease.unit.job(), lease.unit.trial())?;
        if is_live {
            self.remove_live(&lease, at)?;
            self.kept_deadline(&lease, &report.outcome, at)?;
        } else if let Some(past) = self.past.remove(&id) {
            self.past_order.remove(&(past.forget_at, id));
        }
        let wanted = self.is_wanted(&lease);
        self.change_hop(&lease, at, |trial, hop| match &report.outcome {
            Outcome::Trained(trained) if wanted => trial.hop_reported(hop, &lease, trained),
            _ => trial.hop_over(hop, &lease),
        })?;
        if let Outcome::Evaluated(evaluated) = &report.outcome
            && wanted
        {
            self.evaluation_reported(&lease, evaluated);
        }
        let state = PastState::Acknowledged(Box::new(report.outcome.clone()));
        // It isn't forgotten before the report has ended.
        self.past.insert(id, Past { lease, state, forget_at: at });
        Ok(())
    }

    /// A live lease was reported. Trainer errors are counted elsewhere.
    fn kept_deadline(
        &mut self,
        lease: &Lease,
        outcome: &Outcome,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        if let Outcome::Failed(_) = outcome {
            return self.free_speculative_leases_of(lease);
        }
        self.known_host_mut(lease.host)?.reliability.keep(at);
        Ok(())
    }

    /// A lease came to nothing. A speculative lease of the same unit is no duplicate of it any more.
    fn free_speculative_leases_of(&mut self, lost: &Lease) -> Result<(), FoldFault> {
        let job = self.jobs.get_mut(&lost.unit.job());
        let job = job.ok_or(FoldFault::UnknownJob(lost.unit.job()))?;
        let live = job.live_of(&lost.unit).into_iter().flatten().copied();
        for id in live.collect::<Vec<LeaseId>>() {
            let lease = self.leases.get_mut(&id).ok_or(FoldFault::NotLive(id))?;
            if lease.speculative_for == Some(lost.id) {
                Arc::make_mut(lease).speculative_for = None;
                let work = job.work_of(lease);
                job.counters.speculative_work = job.counters.speculative_work.saturating_sub(work);
            }
        }
        Ok(())
    }

    /// Past leases are forgotten after a time. A late one whose result could still have been merged isn't waited for any more.
    pub(super) fn forget_old_leases(&mut self) -> Result<(), FoldFault> {
        while let Some((at, id)) = self.past_order.first().copied()
            && at < self.at
        {
            self.past_order.pop_first();
            if let Some(past) = self.past.remove(&id)
                && let Some(hop) = past.lease.unit.hop()
                && self.trial(hop.job, hop.trial).is_some_and(|trial| trial.is_late(hop, id))
            {
                let lease = &past.lease;
                self.change_trial(hop.job, hop.trial, self.at, |trial| trial.hop_over(hop, lease))?;
                self.renew_open(hop.job, Some((hop.trial, None)));
            }
        }
        Ok(())
    }
}
