//! What becomes due by itself, and what a start makes anew.

use crate::{
    core::Core,
    effect::Effect,
    event::{Event, LeaseEnd},
    soft::{Stop, Term},
    state::PastState,
};
use sojourn_protocol::{
    ids::{JobId, LeaseId, TrialId},
    time::{Millis, UnixMillis},
};

/// How often hosts are looked for that haven't been heard of for long.
const LOOK_FOR_SILENT: Millis = Millis::from_secs(3600);

impl Core {
    /// Expires all that is due now.
    pub(crate) fn expire(&mut self) {
        while let Some((at, lease)) = self.soft.expiry.first().copied()
            && at <= self.now
        {
            let silent = self.soft.terms.get(&lease).is_some_and(|term| term.renew_by <= self.now);
            self.end_lease(lease, if silent { LeaseEnd::Silent } else { LeaseEnd::Overdue });
        }
        self.stop_jobs();
        self.look_at_fleet();
        self.expire_parked();
        self.expire_assimilators();
        self.expire_blobs();
        let now = self.now;
        if self.soft.look_for_silent <= now {
            self.soft.look_for_silent = now + LOOK_FOR_SILENT;
            let long_ago = now.0.saturating_sub(self.config.remember_leases.0);
            self.soft.forget_silent(UnixMillis(long_ago));
            self.find_useless_blobs();
            let past = &self.state.past;
            self.soft.dropped.retain(|lease| past.contains_key(lease));
        }
        self.look_again();
        let before = self.soft.resting.len();
        self.soft.resting.retain(|_, until| *until > now);
        self.soft.work_changed |= self.soft.resting.len() != before;
    }

    fn expire_assimilators(&mut self) {
        for _ in 0..self.soft.assimilations.expire(self.now) {
            self.effect(Effect::Assimilate);
        }
    }

    fn expire_blobs(&mut self) {
        while !self.has_failed()
            && let Some((since, blob)) = self.state.blobs.oldest_idle()
            && since + self.config.condemn_after <= self.now
        {
            self.emit(Event::BlobCondemned { blob });
        }
        while !self.has_failed()
            && let Some((since, blob)) = self.state.blobs.oldest_awaited()
            && since + self.config.awaited_for <= self.now
        {
            self.emit(Event::BlobCondemned { blob });
        }
        while !self.has_failed()
            && let Some((since, blob)) = self.state.blobs.oldest_condemned()
            && since + self.config.delete_after <= self.now
        {
            self.emit(Event::BlobDoomed { blob });
            self.effect(Effect::Delete(blob));
        }
    }

    /// The server has started: live leases get a full term, and what was under way is said again.
    pub(crate) fn started(&mut self) {
        self.soft.started_at = self.now;
        self.soft.recovering = false;
        self.rank_all();
        self.look_at_wall_times();
        let leases: Vec<LeaseId> = self.state.leases.keys().copied().collect();
        for lease in leases {
            self.soft.set_term(lease, self.fresh_term(lease));
        }
        for (job, trial) in self.with_results() {
            self.take_up(job, trial);
        }
        let doomed: Vec<_> = self.state.blobs.doomed().collect();
        for blob in doomed {
            self.effect(Effect::Delete(blob));
        }
        self.soft.work_changed = true;
    }

    /// Running trials with results that wait for nothing but to be taken in.
    fn with_results(&self) -> Vec<(JobId, TrialId)> {
        let trials = self.state.jobs.values().flat_map(|job| {
            let trials =
                job.trials.iter().filter(|trial| trial.is_running() && !trial.awaiting.is_empty());
            trials.map(|trial| (job.id, trial.id))
        });
        trials.collect()
    }

    /// The term of a lease that has just been granted, or whose server has just started.
    pub(crate) fn fresh_term(&self, lease: LeaseId) -> Term {
        self.term_of(lease, self.estimate(lease))
    }

    /// The same, where it is known how long its unit should take.
    pub(crate) fn term_of(&self, lease: LeaseId, estimate: Millis) -> Term {
        Term {
            renew_by: self.now + self.config.lease_term,
            due: self.now + self.config.start_grace + self.patience(lease, estimate),
            started: false,
            since: self.now,
            first: 0,
            finished: false,
            made: None,
            told: self.now,
            fetched: 0,
            done: 0,
            of: 0,
            done_at: self.now,
            sent: 0,
            stop: Stop::No,
        }
    }

    /// Ends a live lease without a report.
    pub(crate) fn end_lease(&mut self, lease: LeaseId, end: LeaseEnd) {
        let known = self.state.leases.get(&lease).cloned();
        let begun = self.soft.terms.get(&lease).is_some_and(|term| term.started);
        self.soft.clear_term(lease);
        if let Some(known) = known {
            let host = known.host;
            self.settle_held(&known);
            if end != LeaseEnd::Revoked {
                self.plan_outdated(known.unit.job());
            }
            if matches!(end, LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }) {
                self.effect(Effect::DropUpload(lease));
            }
            if end == LeaseEnd::Overdue && !begun {
                self.slow_down(host, "let a lease run out that it had not begun");
            }
            self.emit(Event::LeaseEnded { lease, end });
            self.soft.notify.insert(host);
            self.soft.work_changed = true;
        }
    }

    /// Is there a result of this lease that waits to be assimilated, first in its trial's line?
    pub(crate) fn is_to_assimilate(&self, lease: LeaseId) -> bool {
        let Some(past) = self.state.past.get(&lease) else { return false };
        let unit = past.lease.unit;
        matches!(past.state, PastState::Acknowledged(_))
            && self.state.trial(unit.job(), unit.trial()).is_some_and(|trial| {
                trial.awaiting.front() == Some(&lease) && trial.check.is_none()
            })
    }
}
