//! Errors of trainers: whose fault they are, and what they end.

use crate::{
    core::Core,
    effect::Effect,
    event::{Event, LeaseEnd, UnitKey},
    state::{Lease, Trial},
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    inventory::Workload,
    report::{Failure, FailureKind},
    time::Millis,
};

/// Trainer errors at one unit that count against the host (on one) or the job (on as many hosts).
const MOST_FAILURES: u32 = 3;
/// The longest rest of a host.
const LONGEST_REST: Millis = Millis::from_secs(3600);

impl Core {
    /// The three-failures rule (DESIGN section 4).
    pub(super) fn unit_failed(&mut self, lease: &Lease, failure: Failure) {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        self.emit(Event::UnitFailed { lease: lease.id, failure: failure.clone() });
        self.effect(Effect::DropUpload(lease.id));
        if failure.kind == FailureKind::OutOfMemory {
            self.ran_out_of_memory(lease);
        }
        let failures = self.state.jobs.get(&job).and_then(|job| job.failures_of(&lease.unit));
        let hosts = failures.map_or(0, |failures| failures.len());
        let count = failures.map_or(0, |failures| failures.values().map(|f| f.count).sum());
        let non_finite = failures.map_or(0, |failures| {
            let finals = failures.values().filter(|f| f.last.kind == FailureKind::NonFinite);
            finals.count()
        });
        let ends = match failure.kind {
            FailureKind::NonFinite => non_finite >= 2 || !self.has_other_host(lease),
            // It waits for a host with more memory; where one after the other had too little, it is the job.
            FailureKind::OutOfMemory => {
                u32::try_from(hosts).is_ok_and(|hosts| hosts >= MOST_FAILURES)
                    && self.unit_fits_nowhere(lease)
            }
            FailureKind::Trainer
            | FailureKind::Died
            | FailureKind::Stalled
            | FailureKind::Damaged => match lease.unit {
                // Nothing is lost with it, and somebody waits: so whoever's fault it is.
                UnitKey::Extra { .. } => count >= MOST_FAILURES,
                UnitKey::Train { .. } | UnitKey::Evaluate { .. } => {
                    u32::try_from(hosts).is_ok_and(|hosts| hosts >= MOST_FAILURES)
                }
            },
        };
        match lease.unit {
            UnitKey::Extra { name, .. } if ends => self.fail_extra(job, name, failure.message),
            _ if ends => self.fail_trial(job, trial, failure.message),
            _ => self.rest_if_failing(lease.host),
        }
    }

    /// The unit's workload isn't given to that device again.
    fn ran_out_of_memory(&mut self, lease: &Lease) {
        let Some(trial) = self.state.trial(lease.unit.job(), lease.unit.trial()) else { return };
        let workload = Workload::of(&trial.context);
        let contact = self.soft.contacts.get_mut(&lease.host);
        if let Some(slots) = contact.and_then(|contact| contact.devices.get_mut(&lease.device)) {
            slots.ran_out.insert(workload);
            // Its shards may need another home.
            self.soft.schedule.housed.0 = u64::MAX;
        }
    }

    fn unit_fits_nowhere(&self, lease: &Lease) -> bool {
        let Some(job) = self.state.jobs.get(&lease.unit.job()) else { return false };
        job.trial(lease.unit.trial()).is_some_and(|trial| self.fits_nowhere(job, trial))
    }

    fn has_other_host(&self, lease: &Lease) -> bool {
        let Some(job) = self.state.jobs.get(&lease.unit.job()) else { return false };
        let class = job.trial(lease.unit.trial()).and_then(|trial| self.kept_class(job, trial));
        if self.hosts_in_contact(class).any(|host| host != lease.host) {
            return true;
        }
        // Right after a start the others have not had the time to show themselves.
        let early = self.now < self.soft.started_at + self.config.lease_term;
        early && self.state.hosts.values().any(|host| host.id != lease.host && !host.revoked)
    }

    pub(super) fn fail_trial(&mut self, job: JobId, trial: TrialId, error: String) {
        let failures = self.state.trial(job, trial).map(Trial::all_failures);
        for host in failures.unwrap_or_default().keys() {
            self.soft.resting.remove(host);
        }
        let cleanup = self.state.trial(job, trial).map(cleanup_of).unwrap_or_default();
        self.emit(Event::TrialFailed { job, trial, error });
        // Its hops are planned beside others'.
        self.plan_outdated(job);
        self.clean_up(cleanup);
    }

    /// Ends what was under way for a trial that has ended.
    pub(crate) fn clean_up(&mut self, (live, awaiting): (Vec<LeaseId>, Vec<LeaseId>)) {
        for lease in live {
            self.end_lease(lease, LeaseEnd::Revoked);
        }
        for lease in awaiting {
            self.supersede(lease);
        }
    }

    /// Ends an acknowledged report that isn't wanted any more.
    pub(crate) fn supersede(&mut self, lease: LeaseId) {
        self.soft.assimilations.forget(lease);
        let host = self.state.past.get(&lease).map(|past| past.lease.host);
        self.soft.notify.extend(host);
        self.emit(Event::Superseded { lease });
        self.effect(Effect::DropUpload(lease));
    }

    /// A host that fails again and again is given nothing for a while, longer each time.
    pub(crate) fn rest_if_failing(&mut self, host: HostId) {
        let in_a_row = self.state.hosts.get(&host).map_or(0, |host| host.failures_in_a_row);
        if in_a_row == 0 || !in_a_row.is_multiple_of(MOST_FAILURES) {
            return;
        }
        let doublings = (in_a_row / MOST_FAILURES - 1).min(20);
        let rest = self.config.first_rest.0.saturating_mul(1 << doublings).min(LONGEST_REST.0);
        self.soft.resting.insert(host, self.now + Millis(rest));
    }
}

/// What is under way for a trial: its live leases, and its results that wait.
pub(crate) fn cleanup_of(trial: &Trial) -> (Vec<LeaseId>, Vec<LeaseId>) {
    (trial.live_leases(), trial.waiting().collect())
}
