//! A host reports: the report is acknowledged once, ended once, and answered alike each time.

use super::{ResultHandler, validate::mismatch};
use crate::{
    effect::Effect,
    fault::CoreFault,
    hosts::HostHandler,
    ledger::MIN_MEASURED_BATCHES,
    reply::{Refusal, Reply, conflict},
};
use sojourn_protocol::{
    api::ReportAnswer,
    digest::BlobRef,
    error::ErrorKind,
    ids::{HostId, LeaseId},
    metrics::ByClass,
    report::{Evaluated, Outcome, Report, ReportState, Sums, Trained},
    text::plain_text,
    time::Millis,
};
use sojourn_scheduling::{leases::Deadline, waiters::Wake};
use sojourn_state::{Event, Fault, Lease, LeaseEnd, Past, PastState, UnitKey};
use std::sync::Arc;

/// The clocks of a slot and of the server may differ by this much over one unit.
const MAX_CLOCK_SKEW: Millis = Millis(1000);
/// Divisor of the time observed between heartbeats: a trainer may have been paused for half of it, so `1 / PAUSE_DIVISOR` of it
/// counts as training.
const PAUSE_DIVISOR: u64 = 2;
/// Characters of an error message that are kept.
const MAX_MESSAGE_CHARS: usize = 8_000;
/// Characters of the reason why a report is refused that are kept.
const MAX_REASON_CHARS: usize = 1_000;

impl ResultHandler<'_> {
    /// Acknowledges a report. `uploaded` is the reported checkpoint if the shell holds its complete upload, else `None`.
    pub(crate) fn report(
        &mut self,
        host: HostId,
        mut report: Report,
        uploaded: Option<BlobRef>,
    ) -> Reply<ReportAnswer> {
        let state = &*self.ledger.state;
        state.check_host(host)?;
        let id = report.lease;
        let (lease, ended) = match (state.leases.get(&id), state.past.get(&id)) {
            (Some(lease), _) => (lease.clone(), None),
            (None, Some(past)) => (past.lease.clone(), past.report_state()),
            (None, None) => return Err(self.leases().unknown_lease(host, id)),
        };
        if lease.host != host {
            let message = format!("lease {id} is another host's");
            return Err(Refusal::new(ErrorKind::Forbidden, message));
        }
        if let Some(state) = ended {
            return Ok(ReportAnswer { lease: id, state });
        }
        let wanted = state.is_wanted(&lease)
            && !self.was_upload_dropped(id)
            && !self.is_overtaken(&lease, &report.outcome)
            && !self.is_of_other_length(&lease)
            && !self.eligibility().occupancy.begins_beyond_budget(&lease);
        let refusal = if wanted { mismatch(state, &lease, &report.outcome) } else { None };
        if let Outcome::Trained(trained) = &report.outcome
            && wanted
            && refusal.is_none()
            && uploaded != Some(trained.checkpoint)
        {
            let message = format!("upload the checkpoint of lease {id} first");
            return conflict(message);
        }
        self.credit(&lease, &mut report.outcome);
        let seen = self.ledger.leases.deadline(id).and_then(Deadline::pace);
        let seen = seen.map_or(0, |(micros, _)| micros / PAUSE_DIVISOR);
        trim(&mut report.outcome, wanted && refusal.is_none());
        self.ledger.leases.end(id);
        self.ledger.leases.reported(id);
        self.hosts.clear_releases(host);
        if self.ledger.state.leases.contains_key(&id) {
            self.charge(&lease, &report.outcome);
        }
        let outcome = report.outcome.clone();
        self.ledger.record(Event::ReportAcknowledged { report: Box::new(report), host })?;
        let trained = wanted && refusal.is_none() && matches!(outcome, Outcome::Trained(_));
        if let (true, Outcome::Trained(of)) = (trained, &outcome) {
            self.record_losses(&lease, &of.sums);
        }
        match refusal {
            Some(reason) => {
                let reason = plain_text(&reason, MAX_REASON_CHARS);
                self.ledger.record(Event::Rejected { lease: id, reason, fault: Fault::Host })?;
                self.ledger.effect(Effect::DropUpload(id));
                self.result_rejected(host);
            }
            None => self.end_or_queue(&lease, outcome, wanted, seen)?,
        }
        let job = self.ledger.state.jobs.get(&lease.unit.job());
        let capped = job.is_some_and(|job| job.spec.placement.max_hosts.is_some());
        // A trained hop makes nothing runnable before it is taken in, unless the job has a limit of hosts (`max_hosts`).
        if !trained || capped {
            self.ledger.waiters.wake(Wake::All);
        }
        let state = self.ledger.state.past.get(&id).and_then(|past| past.report_state());
        Ok(ReportAnswer { lease: id, state: state.unwrap_or(ReportState::Acknowledged) })
    }

    /// Takes in the training losses of a hop, where its job's policy looks at them.
    fn record_losses(&mut self, lease: &Lease, sums: &Sums) {
        let state = &*self.ledger.state;
        let Some(hop) = lease.unit.hop() else { return };
        let job = state.jobs.get(&hop.job).filter(|job| job.spec.placement.residency.looks());
        if let Some(trial) = job.and_then(|job| job.trial(hop.trial)) {
            self.ledger.leases.losses_mut().reported(state, trial, (hop.job, lease.id), sums);
        }
    }

    /// Whether the lease's upload was deleted. The shell may have found the upload just before the deletion, so `uploaded` alone
    /// doesn't prove that it is there.
    fn was_upload_dropped(&self, lease: LeaseId) -> bool {
        let revoked = |past: &Past| {
            let end = &past.state;
            matches!(end, PastState::Closed(LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }))
        };
        self.ledger.leases.was_upload_dropped(lease)
            || self.ledger.state.past.get(&lease).is_some_and(revoked)
    }

    /// Whether the result is a partial checkpoint that another host's running attempt makes useless. Using a partial checkpoint
    /// ends the other attempt, so it is used only if this lease is live and further than the other one.
    fn is_overtaken(&self, lease: &Lease, outcome: &Outcome) -> bool {
        let (Outcome::Trained(trained), UnitKey::Train { .. }) = (outcome, lease.unit) else {
            return false;
        };
        let state = &*self.ledger.state;
        let Some((done, is_part)) = state.trained_of(lease, trained) else { return false };
        let is_live = state.leases.contains_key(&lease.id);
        let is_further = |live: LeaseId| {
            let other = state.leases.get(&live).is_some_and(|live| live.host != lease.host);
            let theirs = self.ledger.leases.deadline(live).map_or(0, |of| u64::from(of.done));
            other && (!is_live || theirs >= done)
        };
        is_part && state.live_leases_of(&lease.unit).into_iter().any(is_further)
    }

    /// Whether the unit's pending verification is of a result trained for another length of the trial, with which this result
    /// can't be compared.
    fn is_of_other_length(&self, lease: &Lease) -> bool {
        let Some(job) = self.ledger.state.jobs.get(&lease.unit.job()) else { return false };
        let first = job.verification_of(&lease.unit).map(|pending| pending.first);
        let trial = job.trial(lease.unit.trial()).filter(|_| lease.unit.hop().is_some());
        trial.zip(first).is_some_and(|(trial, first)| {
            trial.context_of(first).total_steps != trial.context_of(lease.id).total_steps
        })
    }

    /// Counts the slot time of a unit towards its job's slot share.
    fn charge(&mut self, lease: &Lease, outcome: &Outcome) {
        let (state, now) = (&*self.ledger.state, self.ledger.clock.now());
        match outcome {
            Outcome::Trained(Trained { train_micros, .. })
            | Outcome::Evaluated(Evaluated { train_micros, .. }) => {
                self.ledger.planner.settle(state, lease, *train_micros);
            }
            Outcome::Failed(_) => self.ledger.planner.settle_held(state, lease, now),
        }
    }

    fn end_or_queue(
        &mut self,
        lease: &Lease,
        outcome: Outcome,
        wanted: bool,
        seen: u64,
    ) -> Result<(), CoreFault> {
        match outcome {
            Outcome::Failed(failure) if wanted => self.unit_failed(lease, failure),
            Outcome::Evaluated(evaluated) if wanted => self.evaluation_arrived(lease, &evaluated),
            Outcome::Trained(trained) if wanted => {
                self.measure(lease, &trained, seen);
                self.result_arrived(lease)
            }
            Outcome::Failed(_) | Outcome::Evaluated(_) | Outcome::Trained(_) => {
                self.ledger.record(Event::Superseded { lease: lease.id })?;
                self.ledger.effect(Effect::DropUpload(lease.id));
                Ok(())
            }
        }
    }

    /// No host is credited with more training than the time for which it has had the unit.
    fn credit(&self, lease: &Lease, outcome: &mut Outcome) {
        let deadline = self.ledger.leases.deadline(lease.id);
        let sent_at = deadline.map_or(lease.granted_at, |deadline| deadline.sent_at);
        let had = (self.ledger.clock.now() - sent_at).0.saturating_add(MAX_CLOCK_SKEW.0);
        let micros = match outcome {
            Outcome::Trained(trained) => &mut trained.train_micros,
            Outcome::Evaluated(evaluated) => &mut evaluated.train_micros,
            Outcome::Failed(_) => return,
        };
        *micros = (*micros).min(had.saturating_mul(1000));
    }

    /// Takes in the counts of an acknowledged evaluation.
    pub(super) fn take_in_evaluation(&mut self, id: LeaseId) -> Result<(), CoreFault> {
        let Some((lease, evaluated)) = self.ledger.state.evaluated_result(id) else {
            return Ok(());
        };
        let (lease, evaluated) = (Arc::clone(lease), evaluated.clone());
        match lease.unit {
            UnitKey::Extra { .. } => self.requested_evaluation_done(&lease, &evaluated),
            UnitKey::Train { .. } | UnitKey::Evaluate { .. } => {
                self.evaluation_done(&lease, &evaluated)
            }
        }
    }

    /// Takes the sums of a wanted evaluation of the search, which may end its trial.
    fn evaluation_done(&mut self, lease: &Lease, evaluated: &Evaluated) -> Result<(), CoreFault> {
        let UnitKey::Evaluate { job, trial, epoch } = lease.unit else { return Ok(()) };
        let others = self.ledger.state.live_leases_of(&lease.unit);
        let in_flight = self.ledger.state.in_flight(job, trial);
        let valid = evaluated.sums();
        let f1 = evaluated.by_class.as_ref().map(ByClass::macro_f1);
        let of_job = self.ledger.state.jobs.get(&job);
        let own = of_job.map(|job| job.spec.search.of_arrays(&evaluated.arrays));
        let own = own.unwrap_or_default();
        self.ledger.record(Event::Evaluated { lease: lease.id, epoch, valid, f1, own })?;
        self.leases().revoke(others)?;
        self.workload_succeeded(lease);
        let trial = self.ledger.state.trial(job, trial);
        if trial.is_some_and(|trial| trial.merging.is_some() && trial.merge_fault().is_some()) {
            self.ledger.planner.merge_modes().invalidate();
        }
        if trial.is_some_and(|trial| trial.stopped.is_some()) {
            // Its hops are planned beside others'.
            self.ledger.planner.outdate_plan(job);
            self.abandon(in_flight)?;
        }
        Ok(())
    }

    /// Takes the sums of a wanted evaluation outside the search.
    fn requested_evaluation_done(
        &mut self,
        lease: &Lease,
        evaluated: &Evaluated,
    ) -> Result<(), CoreFault> {
        let others = self.ledger.state.live_leases_of(&lease.unit);
        let sums = evaluated.sums();
        self.ledger.record(Event::ExtraEvaluated { lease: lease.id, sums })?;
        self.workload_succeeded(lease);
        self.leases().revoke(others)
    }

    /// A result was taken in: its host has proved how long it takes.
    pub(crate) fn proved(&mut self, lease: &Lease, trained: &Trained) {
        self.workload_succeeded(lease);
        if self.has_seen_all_of(lease) {
            let unit = (lease.unit.job(), lease.unit.trial());
            let device = self.ledger.cost(self.hosts).device_of(lease);
            let estimates = self.ledger.planner.estimates_mut();
            estimates.taken_in(device, unit, trained.sums.rows, trained.train_micros);
        }
    }

    /// Whether this server was already running when the lease was granted. For older leases the server doesn't know how long the
    /// host has had the unit.
    fn has_seen_all_of(&self, lease: &Lease) -> bool {
        lease.granted_at >= self.ledger.clock.started_at()
    }

    /// Adds a hop's training time to the estimates, if the hop is whole or has at least `MIN_MEASURED_BATCHES` batches. The
    /// training time counts as at least `seen`, in microseconds. Leases granted before the server started are skipped.
    fn measure(&mut self, lease: &Lease, trained: &Trained, seen: u64) {
        let state = &*self.ledger.state;
        let hop = state.first_hop_batches(lease).unwrap_or(MIN_MEASURED_BATCHES);
        let done = state.trained_of(lease, trained).map_or(hop, |(done, _)| done);
        if done < hop.min(MIN_MEASURED_BATCHES) || !self.has_seen_all_of(lease) {
            return;
        }
        let (rows, micros) = (trained.sums.rows, trained.train_micros.max(seen));
        let unit = (lease.unit.job(), lease.unit.trial());
        let device = self.ledger.cost(self.hosts).device_of(lease);
        let estimates = self.ledger.planner.estimates_mut();
        estimates.measured(device, unit, rows, micros);
        self.ledger.take_in_estimates();
        HostHandler { ledger: self.ledger.reborrow(), hosts: self.hosts }.update_fleet(lease.host);
    }
}

/// Cuts what nobody reads, so that no host can fill the journal with it.
fn trim(outcome: &mut Outcome, is_of_use: bool) {
    match outcome {
        Outcome::Failed(failure) => {
            failure.message = plain_text(&failure.message, MAX_MESSAGE_CHARS);
        }
        Outcome::Evaluated(evaluated) if !is_of_use => {
            evaluated.shards.clear();
            evaluated.by_class = None;
            evaluated.arrays.clear();
        }
        Outcome::Evaluated(_) | Outcome::Trained(_) => {}
    }
}
