//! Who may do a unit: the arithmetic that its trial keeps to, the memory that it takes, and who has failed it.

use crate::{
    contact::Slots,
    core::Core,
    state::{FailedBy, Job, Trial},
};
use sojourn_protocol::{digest::Digest, ids::HostId, inventory::Workload};
use std::collections::BTreeMap;

/// A device of a host that asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) host: HostId,
    pub(crate) slots: &'a Slots,
    /// Its slots have work: what is chosen waits for its turn.
    pub(crate) ahead: bool,
}

impl Place<'_> {
    pub(crate) fn class(self) -> Digest {
        self.slots.device.numeric_class
    }
}

impl Core {
    /// Nothing but memory speaks against training the trial there.
    pub(crate) fn may_train(&self, job: &Job, trial: &Trial, place: Place<'_>) -> bool {
        let kept = self.kept_class(job, trial);
        kept.is_none_or(|kept| kept == place.class())
            && !(self.state.blobs.any_lost()
                && trial.blobs().any(|blob| self.state.blobs.is_lost(&blob)))
            // Nobody else could do what a home failed to do, until it rests and another is found.
            && (self.has_homes(job) || self.may_retry(kept, &trial.hop_failures(), place.host))
    }

    /// The numeric class that the trial must stay in.
    pub(crate) fn kept_class(&self, job: &Job, trial: &Trial) -> Option<Digest> {
        trial.class.filter(|_| job.spec.placement.reproducible)
    }

    /// A host that failed a unit gets it again only when every other live host has failed it as often.
    pub(crate) fn may_retry(
        &self,
        class: Option<Digest>,
        failures: &BTreeMap<HostId, FailedBy>,
        host: HostId,
    ) -> bool {
        let count = |host: HostId| failures.get(&host).map_or(0, |failed| failed.count);
        let own = count(host);
        let mut others = self
            .hosts_in_contact(class)
            .filter(|other| *other != host && !self.soft.is_resting(*other, self.now));
        own == 0 || others.all(|other| count(other) >= own)
    }

    /// Has a slot the memory for the trial's units? Where nobody has said what they take, their checkpoint is
    /// what they take at least.
    pub(crate) fn has_room(&self, slots: &Slots, trial: &Trial) -> bool {
        if slots.device.memory.is_none() && slots.ran_out.is_empty() {
            return true;
        }
        let workload = Workload::of(&trial.context);
        if slots.ran_out.contains(&workload) {
            return false;
        }
        let Some(memory) = slots.device.memory else { return true };
        let own = slots.peaks.get(&workload).copied();
        let estimates = &self.soft.schedule.estimates;
        let takes = own.or_else(|| estimates.least_peak(&slots.device.name, &workload));
        takes.unwrap_or(0).max(trial.checkpoint_bytes) <= memory
    }

    /// Has no device in contact that could train the trial the memory for it, though there are some?
    pub(crate) fn fits_nowhere(&self, job: &Job, trial: &Trial) -> bool {
        let class = self.kept_class(job, trial);
        let contacts =
            self.hosts_in_contact(class).filter_map(|host| self.soft.contacts.get(&host));
        let of_class = |slots: &&Slots| {
            slots.count > 0 && class.is_none_or(|class| slots.device.numeric_class == class)
        };
        let mut places = contacts.flat_map(|contact| contact.devices.values().filter(of_class));
        let mut any = false;
        let fits = places.any(|slots| {
            any = true;
            self.has_room(slots, trial)
        });
        any && !fits
    }

    /// Hosts in contact, with a device of the class where one is asked for; resting ones too.
    pub(crate) fn hosts_in_contact(
        &self,
        class: Option<Digest>,
    ) -> impl Iterator<Item = HostId> + '_ {
        let contacts = self.soft.contacts.iter();
        contacts
            .filter(move |(host, contact)| {
                // One without slots has said that it ends.
                let of_class = |slots: &Slots| {
                    slots.count > 0 && class.is_none_or(|c| slots.device.numeric_class == c)
                };
                contact.devices.values().any(of_class)
                    && self.soft.is_live(**host, self.now, self.config.lease_term)
                    && self.state.hosts.get(host).is_some_and(|host| !host.revoked)
            })
            .map(|(host, _)| *host)
    }
}
