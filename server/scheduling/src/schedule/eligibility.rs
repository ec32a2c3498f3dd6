//! Eligibility: which hosts may do a unit, by its numeric class, its engines, its memory and the failures so far.

use crate::{
    cost::{Cost, is_proved},
    data::DataPlacement,
    hosts::{DeviceRef, DeviceSlots, Hosts, Session, workload_of},
    index::{DerivedIndex, RemainingWorkIndex},
    leases::Occupancy,
    waiters::Waiters,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, ShardId},
    inventory::Workload,
    manifest::DataSplit,
    quantity::to_u64,
    reason::{IdleReason, WaitReason},
    time::UnixMillis,
};
use sojourn_state::{FailedBy, Host, Job, State, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// The view that says which hosts may do a unit. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Eligibility<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// Data on hosts.
    pub data: &'a DataPlacement,
    /// Requests that wait.
    pub waiters: &'a Waiters,
    /// The time of the step.
    pub now: UnixMillis,
    /// How long things take.
    pub cost: Cost<'a>,
    /// When running work ends.
    pub occupancy: Occupancy<'a>,
}

/// Trials that are looked at for one idle host: those of a job differ little.
const MAX_TRIALS_TRIED: usize = 64;

/// Why a host that holds nothing is given nothing, though there are units; `None` where that isn't known.
pub fn idle_reason(
    state: &State,
    index: &DerivedIndex,
    hosts: &Hosts,
    host: HostId,
) -> Option<IdleReason> {
    let session = hosts.session(host).filter(|session| session.is_known())?;
    if !state.hosts.get(&host)?.live.is_empty() {
        return None;
    }
    // Of a job of many trials few may have a hop to give.
    let jobs = index.jobs().filter_map(|id| state.jobs.get(&id));
    let jobs = jobs.filter(|job| job.is_running() && job.paused_at.is_none());
    let trials = jobs.flat_map(|job| {
        let open = index.remaining(job.id).into_iter().flat_map(RemainingWorkIndex::open);
        open.filter_map(move |(trial, ..)| Some((job, job.trial(trial)?)))
    });
    let trials: Vec<(&Job, &Trial)> = trials.take(MAX_TRIALS_TRIED).collect();
    if trials.is_empty() {
        return None;
    }
    let slots = || session.devices.values();
    if !trials.iter().any(|(_, trial)| slots().any(|slots| supports(slots, trial))) {
        let models = trials.iter().map(|(_, trial)| trial.context.config.model.name());
        let models: BTreeSet<_> = models.collect();
        // One that has refused a model which it trains doesn't support more once it is updated, as far as is known.
        let is_outdated = slots().map(|slots| &slots.device).all(|device| {
            device.names_no_engine() && !models.iter().any(|model| device.trains(model))
        });
        return Some(IdleReason::NoEngine { models, is_outdated });
    }
    let may = |(job, trial): &(&Job, &Trial)| {
        let kept = state.required_class(job, trial);
        slots().any(|slots| match kept {
            Some(kept) => slots.classes.offers(kept),
            None => slots.classes.iter().any(|of| is_proved(state, hosts, job, of.class)),
        })
    };
    if is_alone(state, hosts, host) && !trials.iter().any(may) {
        return Some(IdleReason::AloneInClass);
    }
    let lends = session.cache?;
    let fits = trials.iter().any(|(job, trial)| disk_for_hops(job, trial) <= lends);
    (!fits).then_some(IdleReason::TooLittleDisk)
}

/// Is a host in contact, and does no other party in contact offer any of its classes?
fn is_alone(state: &State, hosts: &Hosts, host: HostId) -> bool {
    let (offers, parties) = (hosts.offers(), state.parties());
    let alone = |class: &Digest| !offers.has_parties(*class, parties, 2);
    offers.of(host).is_some_and(|classes| classes.iter().all(alone))
}

/// Bytes that a host keeps at once while it trains a hop.
fn disk_for_hops(job: &Job, trial: &Trial) -> u64 {
    job.sizes.largest_shard().saturating_add(trial.checkpoint_bytes)
}

impl<'a> Eligibility<'a> {
    /// The view over these parts.
    pub fn new(occupancy: Occupancy<'a>, data: &'a DataPlacement, waiters: &'a Waiters) -> Self {
        let Occupancy { state, hosts, now, cost, .. } = occupancy;
        Self { state, hosts, data, waiters, now, cost, occupancy }
    }

    /// Was the host heard of within a lease's term, or does it wait for an answer?
    pub fn is_live(&self, host: HostId) -> bool {
        let heard = |session: &Session| session.seen_at + self.cost.config.lease_term >= self.now;
        self.waiters.waits(host) || self.hosts.session(host).is_some_and(heard)
    }

    /// Has the host a device whose arithmetic some trial of the job may use, and whose engines support it?
    pub fn could_train(&self, job: &Job, host: HostId) -> bool {
        let Some(session) = self.hosts.session(host) else { return false };
        let mut trials = job.trials.iter().filter(|trial| trial.is_running());
        trials.any(|trial| {
            let kept = self.state.required_class(job, trial);
            let mut devices = session.devices.values();
            devices.any(|slots| self.may_train_on(job, kept, slots) && supports(slots, trial))
        })
    }

    /// May the trial be trained there, if the device is capable of it?
    pub fn may_train(&self, job: &Job, trial: &Trial, at: DeviceRef<'_>) -> bool {
        let kept = self.state.required_class(job, trial);
        self.may_train_on(job, kept, at.slots)
            && self.lends_disk_for_hops(job, trial, at.host)
            && self.may_try(job, trial, at.host)
            && !(self.state.blobs.any_lost()
                && trial.blobs().any(|blob| self.state.blobs.is_lost(&blob.sha256)))
            // Nobody else could do what a replica's host failed to do, until that cools down and another is assigned.
            && (self.has_replicas(job) || self.may_retry(job, trial, kept, at.host))
    }

    /// Could a host train a shard of a trial, on any of its devices?
    pub fn could_train_shard(
        &self,
        job: &Job,
        trial: &Trial,
        shard: ShardId,
        host: HostId,
    ) -> bool {
        let session = self.hosts.session(host);
        let mut devices = session.into_iter().flat_map(|session| session.devices.values());
        devices.any(|slots| {
            self.may_train(job, trial, DeviceRef { host, slots, ahead: false })
                && self.is_capable(slots, trial)
                && self.keeps_replica(job, &slots.classes, shard, host)
        })
    }

    /// May a device train hops of a trial that is kept in a class, or is to begin in one?
    pub(super) fn may_train_on(
        &self,
        job: &Job,
        kept: Option<Digest>,
        slots: &DeviceSlots,
    ) -> bool {
        match kept {
            Some(kept) => slots.classes.offers(kept),
            None => self.cost.may_begin(job, &slots.classes),
        }
    }

    /// Isn't the trial's workload held back from a host, since it has failed?
    pub fn may_try(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        let (strikes, state) = (self.hosts.strikes(), self.state);
        let is_live = |lease| state.leases.contains_key(&lease);
        !strikes.limits(job.id)
            || strikes.may_try(&workload_of(job.id, trial), host, self.now, is_live)
    }

    /// A host that failed a hop gets it again only when every other live host that could do it has failed it as often.
    fn may_retry(&self, job: &Job, trial: &Trial, class: Option<Digest>, host: HostId) -> bool {
        let others = self.live_hosts(class).filter(|other| {
            *other != host
                && !self.hosts.is_cooling_down(*other, self.now)
                && self.state.admits_host(job, *other)
                && self.lends_disk_for_hops(job, trial, *other)
                && self.has_device_for_hops(job, trial, *other)
        });
        may_retry_beside(&trial.hop_failures(), host, others)
    }

    /// Has a host slots on a device that is capable of a trial's units, of the class where one is given?
    pub fn has_device_for(&self, trial: &Trial, class: Option<Digest>, host: HostId) -> bool {
        self.has_device(trial, host, |slots| class.is_none_or(|class| slots.classes.offers(class)))
    }

    /// Has a host slots on a device that is capable of a trial's hops, of the class that the trial is in, or may begin in?
    pub fn has_device_for_hops(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        let kept = self.state.required_class(job, trial);
        self.has_device(trial, host, |slots| self.may_train_on(job, kept, slots))
    }

    pub(super) fn has_device(
        &self,
        trial: &Trial,
        host: HostId,
        fits: impl Fn(&DeviceSlots) -> bool,
    ) -> bool {
        let session = self.hosts.session(host);
        let mut devices = session.into_iter().flat_map(|session| session.devices.values());
        devices.any(|slots| slots.count > 0 && fits(slots) && self.is_capable(slots, trial))
    }

    /// Why no device in contact may begin a trial, where that is for want of parties that offer its numeric class.
    pub fn unproved(&self, job: &Job) -> Option<WaitReason> {
        let quorum = job.verified_quorum()?;
        let mut alone = Vec::new();
        for host in self.live_hosts(None) {
            let devices = self.hosts.session(host).into_iter().flat_map(|of| of.devices.values());
            for slots in devices.filter(|slots| slots.count > 0) {
                if self.cost.may_begin(job, &slots.classes) {
                    return None;
                }
            }
            if self.is_alone(host) {
                alone.push(host);
            }
        }
        Some(WaitReason::Unproved { quorum: to_u64(quorum), alone })
    }

    /// Does no other party in contact offer any class of a host?
    pub fn is_alone(&self, host: HostId) -> bool {
        is_alone(self.state, self.hosts, host)
    }

    /// Could a device do the trial's units: do its engines support them, and has it the memory?
    pub fn is_capable(&self, slots: &DeviceSlots, trial: &Trial) -> bool {
        supports(slots, trial) && self.fits_memory(slots, trial)
    }

    /// Has a slot the memory for the trial's units? Where nobody has reported what they take, it is at least their
    /// checkpoint, and what clients take for the least.
    fn fits_memory(&self, slots: &DeviceSlots, trial: &Trial) -> bool {
        if slots.device.memory.is_none() && slots.ran_out.is_empty() {
            return true;
        }
        let workload = Workload::of(&trial.context);
        if slots.ran_out.contains(&workload) {
            return false;
        }
        let Some(memory) = slots.device.memory else { return true };
        let own = slots.peaks.get(&workload).copied();
        let least = self.cost.estimates.least_memory(&slots.device.name, &workload, trial);
        let least = trial.checkpoint_bytes.max(least);
        let others = || self.cost.estimates.expected_peak(&slots.device.name, &workload, least);
        own.or_else(others).unwrap_or(0).max(least) <= memory
    }

    /// Does a host lend the disk for an evaluation: for a checkpoint, and all shards of a split at once?
    pub fn lends_disk_for(
        &self,
        job: &Job,
        split: DataSplit,
        checkpoint: BlobRef,
        host: HostId,
    ) -> bool {
        let Some(lends) = self.hosts.session(host).and_then(|session| session.cache) else {
            return true;
        };
        job.sizes.split(split).saturating_add(checkpoint.bytes) <= lends
    }

    /// Does a host lend the disk for a trial's hops: for a checkpoint, and the largest of the shards?
    pub fn lends_disk_for_hops(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        let Some(lends) = self.hosts.session(host).and_then(|session| session.cache) else {
            return true;
        };
        disk_for_hops(job, trial) <= lends
    }

    /// Has no device in contact that supports the trial the memory for it, though there are some?
    pub fn fits_nowhere(&self, job: &Job, trial: &Trial) -> bool {
        let class = self.state.required_class(job, trial);
        let sessions = self.live_hosts(class).filter_map(|host| self.hosts.session(host));
        let of_class = |slots: &&DeviceSlots| {
            slots.count > 0
                && class.is_none_or(|class| slots.classes.offers(class))
                && supports(slots, trial)
        };
        let mut slots = sessions.flat_map(|session| session.devices.values().filter(of_class));
        let mut any = false;
        let fits = slots.any(|slots| {
            any = true;
            self.fits_memory(slots, trial)
        });
        any && !fits
    }

    /// Why no device in contact, of the class where one is given, supports a trial's units. `None` where one does, or none
    /// is in contact.
    pub fn unsupported(&self, trial: &Trial, class: Option<Digest>) -> Option<WaitReason> {
        let model = trial.context.config.model.name();
        let (mut hosts, mut outdated, mut refused) = (0_u64, 0, 0);
        for session in self.live_hosts(class).filter_map(|host| self.hosts.session(host)) {
            let of_class = |slots: &&DeviceSlots| {
                slots.count > 0 && class.is_none_or(|class| slots.classes.offers(class))
            };
            let mut devices = session.devices.values().filter(of_class);
            if devices.clone().any(|slots| supports(slots, trial)) {
                return None;
            }
            hosts += 1;
            if devices.clone().any(|slots| slots.device.trains(model)) {
                refused += 1;
            } else if devices.all(|slots| slots.device.names_no_engine()) {
                outdated += 1;
            }
        }
        let model = model.to_owned();
        (hosts > 0).then_some(WaitReason::NoEngine { model, outdated, refused })
    }

    /// Hosts in contact, with a device of the class where one is given; those that cool down too.
    pub fn live_hosts(&self, class: Option<Digest>) -> impl Iterator<Item = HostId> {
        let sessions = self.hosts.sessions().filter(move |(host, session)| {
            // A host without slots has announced that it ends.
            let of_class = |slots: &DeviceSlots| {
                slots.count > 0 && class.is_none_or(|class| slots.classes.offers(class))
            };
            session.devices.values().any(of_class)
                && self.is_live(*host)
                && self.state.hosts.get(host).is_some_and(Host::is_admitted)
        });
        sessions.map(|(host, _)| host)
    }
}

/// Do a device's engines support the trial's units: does one train the model, and has none refused the workload?
pub(super) fn supports(slots: &DeviceSlots, trial: &Trial) -> bool {
    slots.device.trains(trial.context.config.model.name())
        && (slots.unsupported.is_empty()
            || !slots.unsupported.contains(&Workload::of(&trial.context)))
}

/// A host that failed a unit gets it again only when each of the others, who could do it, has failed it as often.
pub(super) fn may_retry_beside(
    failures: &BTreeMap<HostId, FailedBy>,
    host: HostId,
    mut others: impl Iterator<Item = HostId>,
) -> bool {
    let count = |host: HostId| failures.get(&host).map_or(0, |failed| failed.count);
    let own = count(host);
    own == 0 || others.all(|other| count(other) >= own)
}
