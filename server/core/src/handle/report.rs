//! A host reports: acknowledged once, ended once, answered alike each time.

use crate::{
    command::ReplyTo,
    core::Core,
    effect::{Answer, Effect},
    event::{Event, Fault, LeaseEnd, UnitKey},
    state::{Lease, Past, PastState},
};
use sojourn_protocol::{
    api::ReportAnswer,
    digest::BlobRef,
    error::ErrorKind,
    ids::{HostId, LeaseId},
    metrics::ByClass,
    report::{Evaluated, Outcome, Report, ReportState, Trained},
    time::{Millis, UnixMillis},
};

/// A slot's clock and ours may differ by this much over one unit.
const CLOCK_SLACK: Millis = Millis(1000);
/// The longest error message that is kept, in characters.
const LONGEST_MESSAGE: usize = 8_000;

impl Core {
    pub(crate) fn report(
        &mut self,
        to: ReplyTo,
        host: HostId,
        report: Report,
        uploaded: Option<BlobRef>,
    ) {
        if self.refuse_stranger(to, host) {
            return;
        }
        let id = report.lease;
        let (lease, state) = match (self.state.leases.get(&id), self.state.past.get(&id)) {
            (Some(lease), _) => (lease.clone(), None),
            (None, Some(past)) => (past.lease.clone(), past.report_state()),
            (None, None) => return self.refuse_unknown(to, host, id),
        };
        if lease.host != host {
            return self.refuse(to, ErrorKind::Forbidden, format!("lease {id} is another host's"));
        }
        if let Some(state) = state {
            return self.reply(to, Ok(Answer::Report(ReportAnswer { lease: id, state })));
        }
        let wanted = self.state.is_wanted(&lease)
            && !self.was_dropped(id)
            && !self.is_outrun(&lease, &report.outcome);
        let refusal = if wanted { self.mismatch(&lease, &report.outcome) } else { None };
        if let Outcome::Trained(trained) = &report.outcome
            && wanted
            && refusal.is_none()
            && uploaded != Some(trained.checkpoint)
        {
            let message = format!("upload the checkpoint of lease {id} first");
            return self.refuse(to, ErrorKind::Conflict, message);
        }
        let told = self.soft.terms.get(&id).map_or(lease.granted_at, |term| term.told);
        self.soft.clear_term(id);
        self.soft.late.remove(&id);
        self.soft.dropped.remove(&id);
        self.soft.returns.remove(&host);
        let mut report = report;
        self.credit(told, &mut report.outcome);
        trim(&mut report.outcome, wanted);
        if self.state.leases.contains_key(&id) {
            self.settle_share(&lease, &report.outcome);
        }
        let outcome = report.outcome.clone();
        self.emit(Event::ReportAcknowledged { report: Box::new(report), host });
        let job = lease.unit.job();
        let trained = wanted && refusal.is_none() && matches!(outcome, Outcome::Trained(_));
        if let Some(reason) = refusal {
            self.emit(Event::Rejected { lease: id, reason, fault: Fault::Host });
            self.effect(Effect::DropUpload(id));
            self.rest_if_failing(host);
        } else {
            self.end_or_queue(&lease, outcome, wanted);
        }
        let job = self.state.jobs.get(&job);
        let capped = job.is_some_and(|job| job.spec.placement.max_hosts.is_some());
        // A trained hop opens nothing before it is taken in, unless the job's hosts are counted.
        self.soft.work_changed |= !trained || capped;
        let state = self.state.past.get(&id).and_then(|past| past.report_state());
        let state = state.unwrap_or(ReportState::Acknowledged);
        self.reply(to, Ok(Answer::Report(ReportAnswer { lease: id, state })));
    }

    /// Was what came under this lease thrown away? Then whoever reports it may have seen its upload a
    /// moment before.
    fn was_dropped(&self, lease: LeaseId) -> bool {
        let taken_back = |past: &Past| {
            let end = &past.state;
            matches!(end, PastState::Lapsed(LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }))
        };
        self.soft.dropped.contains(&lease) || self.state.past.get(&lease).is_some_and(taken_back)
    }

    /// Is it a mere part of hops that another host is at? To use it would end the other's attempt: however far
    /// that is, where this host had lost its lease; else where the other is further.
    fn is_outrun(&self, lease: &Lease, outcome: &Outcome) -> bool {
        let (Outcome::Trained(trained), UnitKey::Train { shard, .. }) = (outcome, lease.unit)
        else {
            return false;
        };
        let job = self.state.jobs.get(&lease.unit.job());
        let Some(trial) = job.and_then(|job| job.trial(lease.unit.trial())) else { return false };
        let way = std::iter::once(shard).chain(lease.then.iter().copied());
        let whole: u64 = way.map(|shard| u64::from(trial.chain.left_of(shard))).sum();
        let Some((_, first)) = trial.base_of(lease) else { return false };
        let done = trained.end.step.saturating_sub(first);
        let is_part = done < whole;
        let is_live = self.state.leases.contains_key(&lease.id);
        let is_further = |live: LeaseId| {
            let other = self.state.leases.get(&live).is_some_and(|live| live.host != lease.host);
            let theirs = self.soft.terms.get(&live).map_or(0, |term| u64::from(term.done));
            other && (!is_live || theirs >= done)
        };
        is_part && self.live_attempts(&lease.unit).into_iter().any(is_further)
    }

    /// What the job's unit took of a slot counts towards its share.
    fn settle_share(&mut self, lease: &Lease, outcome: &Outcome) {
        match outcome {
            Outcome::Trained(Trained { train_micros, .. })
            | Outcome::Evaluated(Evaluated { train_micros, .. }) => {
                let job = lease.unit.job();
                let micros = self.weighed(job, *train_micros);
                self.shares_of(job).settle(job, lease.id, micros);
            }
            Outcome::Failed(_) => self.settle_held(lease),
        }
    }

    fn end_or_queue(&mut self, lease: &Lease, outcome: Outcome, wanted: bool) {
        match outcome {
            Outcome::Failed(failure) if wanted => self.unit_failed(lease, failure),
            Outcome::Evaluated(evaluated) if wanted => match lease.unit {
                UnitKey::Extra { .. } => self.extra_evaluated(lease, &evaluated),
                _ => self.evaluated(lease, &evaluated),
            },
            Outcome::Trained(trained) if wanted => {
                self.measure(lease, trained.sums.rows, trained.train_micros);
                self.waits(lease);
            }
            Outcome::Failed(_) | Outcome::Evaluated(_) | Outcome::Trained(_) => {
                self.emit(Event::Superseded { lease: lease.id });
                self.effect(Effect::DropUpload(lease.id));
            }
        }
    }

    /// Nobody is credited with more training than the time that they have had the unit.
    fn credit(&self, told: UnixMillis, outcome: &mut Outcome) {
        let had = (self.now - told).0.saturating_add(CLOCK_SLACK.0);
        let micros = match outcome {
            Outcome::Trained(trained) => &mut trained.train_micros,
            Outcome::Evaluated(evaluated) => &mut evaluated.train_micros,
            Outcome::Failed(_) => return,
        };
        *micros = (*micros).min(had.saturating_mul(1000));
    }

    fn evaluated(&mut self, lease: &Lease, evaluated: &Evaluated) {
        let UnitKey::Evaluate { epoch, .. } = lease.unit else { return };
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        let others = self.live_attempts(&lease.unit);
        let under_way = self.under_way(job, trial);
        let valid = evaluated.sums();
        let f1 = evaluated.by_class.as_ref().map(ByClass::macro_f1);
        self.emit(Event::Evaluated { lease: lease.id, epoch, valid, f1 });
        self.revoke(others);
        self.end_if_stopped(job, trial, under_way);
    }

    fn measure(&mut self, lease: &Lease, rows: u64, micros: u64) {
        let place = self.place_of(lease);
        let of = (lease.unit.job(), lease.unit.trial());
        self.soft.schedule.estimates.measured(place, of, rows, micros);
        if self.soft.schedule.estimates.have_changed() {
            self.rank_all();
            self.plans_outdated();
        }
        self.renew_fleet(lease.host);
    }
}

/// What a host says, as text that a terminal shows and doesn't obey, of at most `most` characters.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(shown).take(most).collect()
}

/// Cuts what nobody reads, so that no host can fill the journal with it.
fn trim(outcome: &mut Outcome, wanted: bool) {
    match outcome {
        Outcome::Failed(failure) => failure.message = plain(&failure.message, LONGEST_MESSAGE),
        Outcome::Evaluated(evaluated) if !wanted => {
            evaluated.shards.clear();
            evaluated.by_class = None;
        }
        Outcome::Evaluated(_) | Outcome::Trained(_) => {}
    }
}
