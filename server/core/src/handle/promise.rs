//! A host goes on with the trial whose result is on its way: what it may train next, what it is promised, and what
//! becomes of that (`promises.rs`).

use super::{choose::Chosen, fit::Place, plan::visits, reason::Words};
use crate::{
    core::Core,
    event::{Event, UnitKey},
    promises::Promise,
    schedule::PlaceName,
    state::{Lease, Trial},
};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId},
    manifest::DataSplit,
    position::Position,
    unit::{self, Base, Unit, shard_index},
};
use sojourn_workgen::Chain;
use std::{collections::BTreeSet, sync::Arc};

/// The result that a unit is to go on from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After {
    pub(crate) lease: LeaseId,
    pub(crate) made: BlobRef,
    /// Where the unit begins.
    pub(crate) start: Position,
}

/// A trial as it will be at a place when what is under way there has been taken in.
pub(crate) struct Continued {
    pub(crate) chain: Chain,
    /// The lease that it goes on from, and what that has made; none as long as that isn't trained.
    pub(crate) after: Option<(LeaseId, BlobRef)>,
}

impl Core {
    /// A trial that one place has in hand, as it will be when the result has been taken in; `None` where another
    /// place has it, or it is promised already.
    pub(crate) fn goes_on_at(&self, trial: &Trial, place: Place<'_>) -> Option<Continued> {
        if trial.merging.is_some() {
            return None;
        }
        let mut in_hand = trial.in_hand();
        let (lease, None) = (in_hand.next()?, in_hand.next()) else { return None };
        let known = self.state.lease(lease)?;
        let here = known.host == place.host && known.device == place.slots.device.name;
        if !here || self.soft.promises.after(lease).is_some() {
            return None;
        }
        let mut chain = trial.chain.clone();
        advance(&mut chain, known)?;
        let term = self.soft.terms.get(&lease);
        let made =
            term.filter(|term| term.finished && !term.is_to_stop()).and_then(|term| term.made);
        let made = made.filter(|made| made.bytes == trial.checkpoint_bytes);
        Some(Continued { chain, after: made.map(|made| (lease, made)) })
    }

    /// A trial's chain as it will be when all that is in hand, and promised, has been taken in.
    pub(crate) fn chain_ahead(&self, trial: &Trial) -> Chain {
        let mut chain = trial.chain.clone();
        // Of two copies the first one counts.
        let in_hand = trial.in_hand().next();
        let lease = in_hand.and_then(|lease| self.state.lease(lease));
        let promised = in_hand.and_then(|lease| self.soft.promises.after(lease));
        for lease in
            lease.map(Arc::as_ref).into_iter().chain(promised.map(|promise| &promise.lease))
        {
            if advance(&mut chain, lease).is_none() {
                break;
            }
        }
        chain
    }

    /// What is promised of a trial.
    pub(crate) fn promised(&self, trial: &Trial) -> Option<&Promise> {
        trial.in_hand().filter_map(|lease| self.soft.promises.after(lease)).next()
    }

    /// Promises a host's device what was chosen for it: the lease, as the host gets it at once.
    pub(crate) fn promise(
        &mut self,
        host: HostId,
        device: &str,
        chosen: Chosen,
        after: After,
    ) -> Option<unit::Lease> {
        let known = self.soft.contacts.get(&host)?.device(device)?;
        let name = PlaceName { host, device, flops: known.flops };
        let takes = self.unit_micros(name, chosen.unit, &chosen.then);
        let hops = chosen.then.len() + 1;
        let others = self.soft.parked.idle_beside(host);
        let why = Words { reason: chosen.why, hops, takes, others }.to_string();
        let lease = Lease {
            id: self.next_lease(),
            host,
            unit: chosen.unit,
            then: chosen.then,
            until: chosen.until,
            base: chosen.base,
            device: device.to_owned(),
            class: Some(known.numeric_class),
            copy_of: None,
            granted_at: self.now,
        };
        let promise = Promise { lease, start: after.start, base: after.made, takes, why };
        let wired = self.wire_promise(&promise)?;
        let lease = promise.lease.clone();
        self.soft.promises.make(after.lease, promise);
        self.has_shards_of(&lease);
        self.granted_by_plan(&lease, chosen.planned);
        Some(wired)
    }

    /// A promised lease as it goes over the wire.
    pub(crate) fn wire_promise(&self, promise: &Promise) -> Option<unit::Lease> {
        let lease = &promise.lease;
        let base = Base::Checkpoint { version: lease.base, blob: promise.base };
        let hop = self.hop_of(lease, base, promise.start.step)?;
        Some(unit::Lease {
            id: lease.id,
            unit: Unit::Train(hop),
            device: lease.device.clone(),
            renew_by: self.now + self.config.lease_term,
            heartbeat_every: self.config.heartbeat_every,
            upload_bytes: promise.base.bytes,
        })
    }

    /// A lease's result has been taken in: what was promised on it is granted, where it still can be.
    pub(crate) fn keep_promise(&mut self, after: LeaseId) {
        let Some(promise) = self.soft.promises.take_after(after) else { return };
        if !self.can_keep(&promise) {
            return self.broken(&promise);
        }
        let Promise { lease, takes, why, .. } = promise;
        let (id, since) = (lease.id, lease.granted_at);
        let job = lease.unit.job();
        self.pass_over_before(job);
        self.emit(Event::LeaseGranted {
            lease: id,
            host: lease.host,
            device: lease.device,
            unit: lease.unit,
            then: lease.then,
            until: lease.until,
            base: lease.base,
            class: lease.class,
            copy_of: None,
            why,
        });
        let mut term = self.fresh_term(id);
        term.told = since;
        self.soft.set_term(id, term);
        self.look_for_copies();
        let micros = self.weighed(job, takes);
        self.shares_of(job).give(job, id, micros);
    }

    fn can_keep(&self, promise: &Promise) -> bool {
        let lease = &promise.lease;
        let UnitKey::Train { job, trial, shard, .. } = lease.unit else { return false };
        let Some(job) = self.state.jobs.get(&job).filter(|job| job.is_open()) else {
            return false;
        };
        let Some(trial) = job.trial(trial) else { return false };
        let host = self.state.hosts.get(&lease.host).is_some_and(|host| !host.revoked);
        host && self.soft.contacts.contains_key(&lease.host)
            && trial.is_runnable()
            && trial.version == lease.base
            && trial.checkpoint == Some(promise.base)
            && trial.chain.next(shard) == Some(promise.start)
            && !self.state.blobs.is_lost(&promise.base.sha256)
            && self.lost_data(job).is_none()
            && self.may_employ(job, lease.host)
            && self.is_id_free(lease.id)
    }

    fn is_id_free(&self, lease: LeaseId) -> bool {
        !self.state.leases.contains_key(&lease) && !self.state.past.contains_key(&lease)
    }

    /// The id of the next lease.
    pub(crate) fn next_lease(&self) -> LeaseId {
        self.state.last_lease.max(self.soft.promises.last()).next()
    }

    /// What an event does to promises: those that go on from a result which won't come are broken.
    pub(crate) fn break_promises(&mut self, event: &Event) {
        let broken = match event {
            Event::LeaseEnded { lease, .. }
            | Event::Rejected { lease, .. }
            | Event::Superseded { lease }
            | Event::UnitFailed { lease, .. } => {
                self.soft.promises.take_after(*lease).into_iter().collect()
            }
            Event::JobCancelled { job }
            | Event::JobPaused { job }
            | Event::JobExtended { job, .. } => self.soft.promises.take_of(*job),
            _ => Vec::new(),
        };
        for promise in broken {
            self.broken(&promise);
        }
    }

    /// A promise isn't kept: its host is to hear so, and its hops are for somebody else.
    fn broken(&mut self, promise: &Promise) {
        self.soft.notify.insert(promise.lease.host);
        self.plan_outdated(promise.lease.unit.job());
    }

    /// A host gives a promised lease back.
    pub(crate) fn release_promise(&mut self, host: HostId, lease: LeaseId) -> bool {
        let promise = self.soft.promises.take(host, lease);
        if let Some(promise) = &promise {
            self.broken(promise);
        }
        promise.is_some()
    }

    /// What was promised to a host that doesn't hold it: the answer was lost, or the host began anew.
    pub(crate) fn promised_but(&self, host: HostId, held: &BTreeSet<LeaseId>) -> Vec<unit::Lease> {
        let promised = self.soft.promises.of(host);
        let missing = promised.filter(|promise| !held.contains(&promise.lease.id));
        missing.filter_map(|promise| self.wire_promise(promise)).collect()
    }

    /// The host will hold what it trains on, or evaluates with, by the time that it does.
    pub(crate) fn has_shards_of(&mut self, lease: &Lease) {
        let Some(contact) = self.soft.contacts.get_mut(&lease.host) else { return };
        let Some(job) = self.state.jobs.get(&lease.unit.job()) else { return };
        let train = &job.data.train;
        let evaluated = match lease.unit {
            UnitKey::Train { .. } => &[],
            UnitKey::Evaluate { .. } => job.data.split(DataSplit::Valid),
            UnitKey::Extra { name, .. } => job.data.split(name.split),
        };
        let visited = visits(lease).filter_map(|shard| train.get(shard_index(shard)));
        for shard in visited.chain(evaluated) {
            contact.will_have(job.id, train, shard.blob.sha256);
        }
    }

    /// Has a host a lease that isn't granted yet?
    #[must_use]
    pub fn is_promised(&self, host: HostId, lease: LeaseId) -> bool {
        self.soft.promises.has(host, lease)
    }

    /// Leases that were promised, which may yet be granted.
    pub fn promised_leases(&self) -> impl Iterator<Item = LeaseId> {
        self.soft.promises.ids()
    }
}

/// Takes all of a lease's hops into a chain.
fn advance(chain: &mut Chain, lease: &Lease) -> Option<()> {
    for shard in visits(lease) {
        let start = chain.next(shard)?;
        let left = chain.left_of(shard);
        let end =
            Position { batch: start.batch + left, step: start.step + u64::from(left), ..start };
        chain.advance(start, end).ok()?;
    }
    Some(())
}
