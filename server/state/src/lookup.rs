//! Finding what an event names: what isn't there is a fault with its id.

use super::{FoldFault, Host, Job, Lease, PastState, State, Trial};
use crate::event::HopUnit;
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    report::{Outcome, Trained},
};
use std::sync::Arc;

impl State {
    pub(super) fn known_job(&self, job: JobId) -> Result<&Job, FoldFault> {
        self.jobs.get(&job).ok_or(FoldFault::UnknownJob(job))
    }

    pub(super) fn known_job_mut(&mut self, job: JobId) -> Result<&mut Job, FoldFault> {
        self.jobs.get_mut(&job).ok_or(FoldFault::UnknownJob(job))
    }

    pub(super) fn known_trial(&self, job: JobId, trial: TrialId) -> Result<&Trial, FoldFault> {
        let unknown = FoldFault::UnknownTrial { job, trial };
        self.known_job(job)?.trial(trial).ok_or(unknown)
    }

    pub(super) fn known_trial_mut(
        &mut self,
        job: JobId,
        trial: TrialId,
    ) -> Result<&mut Trial, FoldFault> {
        let unknown = FoldFault::UnknownTrial { job, trial };
        self.known_job_mut(job)?.trial_mut(trial).ok_or(unknown)
    }

    pub(super) fn known_host(&self, host: HostId) -> Result<&Host, FoldFault> {
        self.hosts.get(&host).ok_or(FoldFault::UnknownHost(host))
    }

    pub(super) fn known_host_mut(&mut self, host: HostId) -> Result<&mut Host, FoldFault> {
        self.hosts.get_mut(&host).ok_or(FoldFault::UnknownHost(host))
    }

    /// A lease, live or past.
    pub(super) fn known_lease(&self, lease: LeaseId) -> Result<&Arc<Lease>, FoldFault> {
        self.lease(lease).ok_or(FoldFault::UnknownLease(lease))
    }

    /// A report that was acknowledged and waits for its end.
    pub(super) fn reported(&self, lease: LeaseId) -> Result<(&Arc<Lease>, &Outcome), FoldFault> {
        let past = self.past.get(&lease).ok_or_else(|| match self.leases.contains_key(&lease) {
            true => FoldFault::NotAcknowledged(lease),
            false => FoldFault::UnknownLease(lease),
        })?;
        match &past.state {
            PastState::Acknowledged(outcome) => Ok((&past.lease, outcome)),
            PastState::Closed(_) | PastState::Failed(_) | PastState::Ended(_) => {
                Err(FoldFault::NotAcknowledged(lease))
            }
        }
    }

    /// The same of a trained hop.
    pub(super) fn trained(
        &self,
        lease: LeaseId,
    ) -> Result<(&Arc<Lease>, HopUnit, &Trained), FoldFault> {
        match self.reported(lease)? {
            (of, Outcome::Trained(trained)) => {
                let hop = of.unit.hop().ok_or(FoldFault::WrongUnit(lease))?;
                Ok((of, hop, trained))
            }
            (_, Outcome::Evaluated(_) | Outcome::Failed(_)) => Err(FoldFault::WrongUnit(lease)),
        }
    }
}
