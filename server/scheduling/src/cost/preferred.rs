//! The numeric class that each job prefers where devices offer several, and the class that a device then works in.

use super::view::Cost;
use crate::{
    hosts::{DeviceClasses, Hosts},
    memo::Memo,
};
use sojourn_protocol::{digest::Digest, ids::JobId, inventory::COMMON_SPEED};
use sojourn_state::{Job, Lease, State};
use std::collections::BTreeMap;

/// The classes that jobs prefer. Soft state: it follows from the fleet and the trials.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PreferredClasses {
    by_job: BTreeMap<JobId, Digest>,
    /// The versions of the fleet and of the jobs with work, and the number of running trials, for which they were chosen.
    pub chosen_for: Memo<[u64; 3]>,
}

impl PreferredClasses {
    /// These are the preferred classes from now on. True where one is another than before.
    pub fn set(&mut self, by_job: BTreeMap<JobId, Digest>) -> bool {
        let changed = self.by_job != by_job;
        self.by_job = by_job;
        changed
    }

    /// Is any class preferred to others?
    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }
}

/// Is a numeric class proved for a job: have so many parties come to its calibration's bytes as have to come to each result? The class
/// is the digest of these bytes, so the parties in contact that offer it have.
pub fn is_proved(state: &State, hosts: &Hosts, job: &Job, class: Digest) -> bool {
    let Some(quorum) = job.verified_quorum() else { return true };
    hosts.offers().has_parties(class, state.parties(), quorum)
}

impl Cost<'_> {
    /// The numeric class in which a device trains new trials of a job: the one that the job prefers, if the device offers
    /// it, else the device's fastest; of several one that is proved. A unit that pins nothing is computed as fast as in the fastest.
    pub fn class_for(&self, job: &Job, classes: &DeviceClasses) -> Digest {
        let preferred = self.preferred.by_job.get(&job.id).copied();
        let preferred = preferred.filter(|preferred| classes.offers(*preferred));
        let first = preferred.unwrap_or(classes.fastest().class);
        if self.is_proved(job, first) {
            return first;
        }
        self.proved_class(job, classes).unwrap_or(first)
    }

    /// The fastest class of a device that is proved for a job.
    pub fn proved_class(&self, job: &Job, classes: &DeviceClasses) -> Option<Digest> {
        classes.iter().map(|of| of.class).find(|class| self.is_proved(job, *class))
    }

    /// May trials of a job begin in a numeric class: do enough parties offer it, where the job's results are verified?
    pub fn is_proved(&self, job: &Job, class: Digest) -> bool {
        is_proved(self.state, self.hosts, job, class)
    }

    /// May a device begin a trial of a job?
    pub fn may_begin(&self, job: &Job, classes: &DeviceClasses) -> bool {
        job.verified_quorum().is_none() || self.proved_class(job, classes).is_some()
    }

    /// How fast a device computes a lease's unit, in thousandths of its speed in its common class.
    pub fn lease_speed(&self, lease: &Lease) -> u64 {
        let Some(slots) = self.hosts.device(lease.host, &lease.device) else { return COMMON_SPEED };
        let job = self.state.jobs.get(&lease.unit.job());
        match lease.class.filter(|_| job.is_some_and(|job| job.spec.placement.reproducible)) {
            Some(class) => slots.classes.speed(class),
            None => slots.classes.fastest().speed,
        }
    }
}
