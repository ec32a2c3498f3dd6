//! Where trials of jobs whose results are verified may begin: on which hosts, and in which numeric classes.
//!
//! A job verifies the results of all hosts, or those of strangers' hosts. So a class must be proved, where the results of all are
//! verified, and a stranger's host needs another party that could confirm it. Jobs that verify nothing begin anywhere.

use super::eligibility::Eligibility;
use sojourn_protocol::{digest::Digest, ids::HostId};
use sojourn_state::{Job, Trial};

impl Eligibility<'_> {
    /// May a trial of a job begin on a host in this numeric class?
    pub fn may_begin_in(&self, job: &Job, host: HostId, class: Digest) -> bool {
        self.cost.is_proved(job, class) && self.is_confirmable(job, host, class)
    }

    /// Is a host believed in this class, or does another party in contact offer the class as well, so that it can confirm what the host
    /// does?
    pub(super) fn is_confirmable(&self, job: &Job, host: HostId, class: Digest) -> bool {
        if !(job.spec.placement.verifies_strangers() && self.state.is_strangers(host)) {
            return true;
        }
        self.live_hosts(Some(class)).any(|other| {
            !self.state.are_of_one_party(other, host) && !self.state.has_lost_trust(other)
        })
    }

    /// Could a trial begin on one of a host's devices, if it hasn't begun?
    pub fn may_begin_on(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        trial.class.is_some() || self.has_device_in(job, host, None)
    }

    /// Has a host a device whose results could be confirmed: of the class that is given, else one where a trial may begin?
    pub fn has_device_in(&self, job: &Job, host: HostId, class: Option<Digest>) -> bool {
        let session = self.hosts.session(host);
        let mut devices = session.into_iter().flat_map(|session| session.devices.values());
        devices.any(|slots| match class.filter(|class| slots.classes.offers(*class)) {
            Some(own) => self.is_confirmable(job, host, own),
            None => self.may_begin_in(job, host, self.cost.class_for(job, &slots.classes)),
        })
    }
}
