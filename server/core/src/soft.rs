//! What isn't durable: contacts, terms of leases, who waits, what was measured.
//!
//! All of it may be lost with the server and comes back by itself: hosts say it again.

use crate::{
    assimilations::Assimilations, contact::Contact, event::UnitKey, parked::ParkedAsks,
    promises::Promises, round::Round, schedule::Schedule, shares::Shares,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, JobId, LeaseId, TrialId},
    time::{Millis, UnixMillis},
};
use std::collections::{BTreeMap, BTreeSet};

/// The soft state.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Soft {
    /// Hosts that were heard of since the server started.
    pub(crate) contacts: BTreeMap<HostId, Contact>,
    /// When each live lease runs out.
    pub(crate) terms: BTreeMap<LeaseId, Term>,
    /// The same by time (L2).
    pub(crate) expiry: BTreeSet<(UnixMillis, LeaseId)>,
    /// Asks that are held open.
    pub(crate) parked: ParkedAsks,
    /// Acknowledged results that assimilators are to take, or have.
    pub(crate) assimilations: Assimilations,
    /// Hosts that are given nothing, and until when.
    pub(crate) resting: BTreeMap<HostId, UnixMillis>,
    /// Recovered and not yet started: live leases have no terms yet.
    pub(crate) recovering: bool,
    /// Leases that each host gave back since its last report, and why the last time.
    pub(crate) returns: BTreeMap<HostId, (u32, String)>,
    /// When the first job's wall time is over, or would be if it hadn't ended.
    pub(crate) time_up: Option<UnixMillis>,
    /// When the server started.
    pub(crate) started_at: UnixMillis,
    /// When silent hosts are looked for next.
    pub(crate) look_for_silent: UnixMillis,
    /// Leases that ran out and that their host still runs: batches done, and since when.
    pub(crate) late: BTreeMap<LeaseId, (u32, UnixMillis)>,
    /// Leases that ran out and whose host was told to stop: what was uploaded under them is gone.
    pub(crate) dropped: BTreeSet<LeaseId>,
    /// Leases that hosts have before they are granted.
    pub(crate) promises: Promises,
    /// Blobs that hosts are to fetch ahead, and may read.
    pub(crate) ahead: BTreeMap<HostId, BTreeSet<Digest>>,
    /// Cached blobs that hosts are to drop.
    pub(crate) evict: BTreeMap<HostId, Vec<Digest>>,
    /// Shards have been given other homes since parked hosts were last looked at.
    pub(crate) rehoused: bool,
    /// What decisions about hops rest on.
    pub(crate) schedule: Schedule,
    /// Slot time that each job was given, by priority.
    pub(crate) shares: BTreeMap<i32, Shares>,
    /// Work may have become runnable since parked hosts were last looked at.
    pub(crate) work_changed: bool,
    /// How far a look at all of them has come, where they are too many for one step.
    pub(crate) round: Round,
    /// Trials of which something has become open since then.
    pub(crate) opened: Vec<(JobId, TrialId)>,
    /// Open evaluations that others leave to who made their checkpoints, and since when.
    pub(crate) left_to_makers: BTreeMap<UnitKey, UnixMillis>,
    /// Parked hosts that have something to hear.
    pub(crate) notify: BTreeSet<HostId>,
}

/// When a live lease runs out, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term {
    /// It runs out when its host isn't heard of until then.
    pub(crate) renew_by: UnixMillis,
    /// It runs out when it makes no progress until then.
    pub(crate) due: UnixMillis,
    /// The host said that it runs in a slot.
    pub(crate) started: bool,
    /// When it was first heard that it runs, or granted.
    pub(crate) since: UnixMillis,
    /// Batches that were done by then.
    pub(crate) first: u32,
    /// The host said that it is trained.
    pub(crate) finished: bool,
    /// The checkpoint that is on its way, as the host said.
    pub(crate) made: Option<BlobRef>,
    /// Since when its host has it: since it was granted, or promised.
    pub(crate) told: UnixMillis,
    /// Bytes of its blobs that are there, as the host said.
    pub(crate) fetched: u64,
    /// Batches done, as the host said; of how many, and when it was heard.
    pub(crate) done: u32,
    pub(crate) of: u32,
    pub(crate) done_at: UnixMillis,
    /// Most bytes of its result that were on their way at once, as the host said.
    pub(crate) sent: u64,
    /// Whether it is to end early.
    pub(crate) stop: Stop,
}

/// Whether a hop is to end after the batch that it is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nobody wants that.
    No,
    /// It is, and its host is to hear so at once.
    Wanted,
    /// It is, and its host has been told.
    Told,
}

impl Term {
    /// Microseconds for each of so many batches, as it went on since it was first heard of; `None` where it hasn't.
    pub(crate) fn pace(&self) -> Option<(u64, u32)> {
        let gained = self.done.checked_sub(self.first).filter(|gained| *gained > 0)?;
        let so_far = (self.done_at - self.since).0.saturating_mul(1000);
        (self.started && so_far > 0).then_some((so_far, gained))
    }

    /// Was its host asked to end it early?
    pub(crate) fn is_to_stop(&self) -> bool {
        self.stop != Stop::No
    }

    /// When it runs out.
    #[must_use]
    pub(crate) fn ends(&self) -> UnixMillis {
        self.renew_by.min(self.due)
    }
}

impl Soft {
    /// Sets when a lease runs out.
    pub(crate) fn set_term(&mut self, lease: LeaseId, term: Term) {
        match self.terms.insert(lease, term).map(|before| before.ends()) {
            Some(ends) if ends == term.ends() => return,
            Some(ends) => {
                self.expiry.remove(&(ends, lease));
            }
            None => {}
        }
        self.expiry.insert((term.ends(), lease));
    }

    /// Forgets a lease that lives no more.
    pub(crate) fn clear_term(&mut self, lease: LeaseId) {
        if let Some(term) = self.terms.remove(&lease) {
            self.expiry.remove(&(term.ends(), lease));
        }
    }

    /// Was the host heard of within `term`, or does it wait for an answer?
    #[must_use]
    pub(crate) fn is_live(&self, host: HostId, now: UnixMillis, term: Millis) -> bool {
        self.parked.waits(host)
            || self.contacts.get(&host).is_some_and(|contact| contact.seen_at + term >= now)
    }

    /// Forgets what hosts said that were silent since `before`: should they come back, they say it again.
    pub(crate) fn forget_silent(&mut self, before: UnixMillis) {
        let silent = |(host, contact): (&HostId, &Contact)| {
            (contact.seen_at < before && !self.parked.waits(*host)).then_some(*host)
        };
        let silent: BTreeSet<HostId> = self.contacts.iter().filter_map(silent).collect();
        if silent.is_empty() {
            return;
        }
        self.contacts.retain(|host, _| !silent.contains(host));
        self.returns.retain(|host, _| !silent.contains(host));
        self.ahead.retain(|host, _| !silent.contains(host));
        self.evict.retain(|host, _| !silent.contains(host));
        self.schedule.estimates.forget(&silent);
    }

    /// Is the host given nothing just now?
    #[must_use]
    pub(crate) fn is_resting(&self, host: HostId, now: UnixMillis) -> bool {
        self.resting.get(&host).is_some_and(|until| *until > now)
    }
}
