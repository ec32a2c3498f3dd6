//! A virtual client: fetches, trains in its slots, uploads, reports; as the real one does, where that
//! matters for time.
//!
//! ```text
//!   lease -- its first blobs, over the line -- waits for a slot -- runs -- its checkpoint, over the line -- report
//!            (cached ones are free)                                |       '-- the slot goes on with the next unit
//!                                                                  later shards come meanwhile
//! ```
//!
//! Here: what it is, when it comes and goes, what it hears. `asks.rs`: what it says. `transfers.rs`: its
//! line. `units.rs` and `running.rs`: its slots, and a unit in one. `train.rs`: what a unit really gives.

mod asks;
mod running;
mod train;
mod transfers;
mod units;

use super::{
    cache::{Cache, Name, Need},
    job::count,
    link::Link,
    plan::Plan,
    queue::{Event, Queue},
    scenario::HostGroup,
    tally::{Bar, Tally},
    training::Trains,
};
use running::{Running, at_first};
use sojourn_core::ReplyTo;
use sojourn_protocol::{
    api::WorkAnswer,
    digest::BlobRef,
    ids::{HostId, LeaseId},
    report::Report,
    unit::Lease,
};
use std::collections::BTreeSet;

/// What a host may look at and write to.
pub(crate) struct HostContext<'a> {
    pub(crate) now: u64,
    pub(crate) plan: &'a Plan,
    pub(crate) queue: &'a mut Queue,
    pub(crate) tally: &'a mut Tally,
    /// Where bars of a chart go, if one is wanted.
    pub(crate) bars: Option<&'a mut Vec<Bar>>,
    /// Who really trains, if anybody does.
    pub(crate) trains: Option<&'a mut dyn Trains>,
    /// Why nobody could.
    pub(crate) broken: &'a mut Option<String>,
}

/// Is the machine there?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum There {
    Away,
    Here,
    /// It has heard that it will be taken away, and takes no more work.
    Leaving,
}

#[derive(Debug)]
struct Waiting {
    lease: Lease,
    /// Blobs that are still to come.
    missing: BTreeSet<Name>,
}

impl Waiting {
    /// Is all there that it begins with?
    fn is_ready(&self) -> bool {
        let waits = |need: &Need| self.missing.contains(&need.name);
        self.missing.is_empty() || !at_first(&self.lease).iter().any(waits)
    }
}

#[derive(Debug)]
struct Fetch {
    need: Need,
    bytes: u64,
    /// Not for a unit at hand.
    ahead: bool,
}

#[derive(Debug)]
struct Upload {
    report: Report,
    blob: BlobRef,
    /// Its unit has come to its end.
    whole: bool,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number among all places.
    pub(crate) index: u32,
    /// Which machine stands there.
    pub(crate) id: HostId,
    pub(crate) kind: usize,
    pub(crate) there: There,
    /// Counts its starts; what was scheduled for an earlier one is void.
    pub(crate) boot: u32,
    /// Whose answer it waits for.
    pub(crate) asked: Option<ReplyTo>,
    /// An ask is on its way.
    pub(crate) ask_due: bool,
    pub(crate) beat_due: bool,
    /// When it last said something.
    pub(crate) said_at: u64,
    send_inventory: bool,
    /// Idle slots that the open ask names.
    asked_idle: u32,
    waiting: Vec<Waiting>,
    slots: Vec<Option<Running>>,
    down: Link<Fetch>,
    up: Link<Upload>,
    cache: Cache,
    serial: u32,
    /// Units that it is silent for, until their leases have run out.
    late: BTreeSet<LeaseId>,
    /// It is silent until then.
    silent_to: u64,
    /// Until when its slot time has been counted.
    counted_to: u64,
}

impl Host {
    pub(crate) fn new(index: u32, kind: usize, group: &HostGroup) -> Self {
        let slots = (0..group.places()).map(|_| None).collect();
        Self {
            index,
            id: HostId(0),
            kind,
            there: There::Away,
            boot: 0,
            asked: None,
            ask_due: false,
            beat_due: false,
            said_at: 0,
            send_inventory: true,
            asked_idle: 0,
            waiting: Vec::new(),
            slots,
            down: Link::new(group.download, group.latency.0),
            up: Link::new(group.upload, group.latency.0),
            cache: Cache::new(group.cache.map(|bytes| bytes.0)),
            serial: 0,
            late: BTreeSet::new(),
            silent_to: 0,
            counted_to: 0,
        }
    }

    pub(crate) fn come(&mut self, around: &mut HostContext<'_>) {
        self.there = There::Here;
        self.counted_to = around.now;
        self.send_inventory = true;
        self.want(around);
    }

    /// It will be taken away: what runs goes on, nothing else is begun. Gives what it hands back.
    pub(crate) fn wind_down(&mut self, around: &mut HostContext<'_>) -> Vec<LeaseId> {
        self.count_time(around);
        self.there = There::Leaving;
        self.asked = None;
        let back = self.waiting.iter().map(|waiting| waiting.lease.id).collect();
        self.waiting.clear();
        back
    }

    /// What runs ends after the batch that it is at.
    pub(crate) fn close(&mut self, around: &mut HostContext<'_>) {
        let running = self.slots.iter().flatten().map(|running| running.lease.id);
        self.stop(&running.collect::<Vec<_>>(), around);
    }

    /// It is gone, with all that it had in work. Gives the leases that it had.
    pub(crate) fn go(&mut self, another: bool, around: &mut HostContext<'_>) -> Vec<LeaseId> {
        self.count_time(around);
        let held = self.holding(around.now).iter().map(|held| held.lease).collect();
        for slot in 0..self.slots.len() {
            self.abort(slot, around);
        }
        self.waiting.clear();
        self.down.clear();
        self.up.clear();
        self.late.clear();
        self.silent_to = 0;
        if another {
            self.cache.clear();
        }
        self.there = There::Away;
        self.boot += 1;
        self.asked = None;
        (self.ask_due, self.beat_due) = (false, false);
        held
    }

    pub(crate) fn hear(&mut self, answer: WorkAnswer, around: &mut HostContext<'_>) {
        self.asked = None;
        self.count_time(around);
        self.send_inventory |= answer.send_inventory;
        self.drop_leases(&answer.drop, around);
        for digest in &answer.evict {
            self.cache.remove(&Name::Data(*digest));
        }
        for lease in answer.leases {
            let ids = self.waiting.iter().map(|waiting| waiting.lease.id);
            let mut ids = ids.chain(self.slots.iter().flatten().map(|running| running.lease.id));
            if !ids.any(|id| id == lease.id) {
                self.take(lease, around);
            }
        }
        self.stop(&answer.stop, around);
        self.fetch_ahead(&answer.fetch, around);
        self.start(around);
        self.want(around);
    }

    pub(crate) fn drop_leases(&mut self, leases: &[LeaseId], around: &mut HostContext<'_>) {
        if leases.is_empty() {
            return;
        }
        self.count_time(around);
        let gone = |id: &LeaseId| leases.contains(id);
        self.late.retain(|id| !gone(id));
        self.waiting.retain(|waiting| !gone(&waiting.lease.id));
        for slot in 0..self.slots.len() {
            let running = self.slots.get(slot).and_then(Option::as_ref);
            if running.is_some_and(|running| gone(&running.lease.id)) {
                self.abort(slot, around);
            }
        }
        let (host, boot) = (self.index, self.boot);
        let next = self.up.retain(around.now, |upload| !gone(&upload.report.lease));
        if let Some(next) = next {
            around.queue.add(next.at, Event::Sent { host, boot, serial: next.serial });
        }
        let (waiting, slots) = (&self.waiting, &self.slots);
        let next = self.down.retain(around.now, |fetch| {
            let name = &fetch.need.name;
            fetch.ahead
                || waiting.iter().any(|of| of.missing.contains(name))
                || slots.iter().flatten().any(|running| running.awaits(name))
        });
        if let Some(next) = next {
            around.queue.add(next.at, Event::Fetched { host, boot, serial: next.serial });
        }
        self.start(around);
    }

    /// All jobs have ended: what still runs comes to nothing.
    pub(crate) fn close_books(&mut self, around: &mut HostContext<'_>) {
        self.count_time(around);
        for slot in 0..self.slots.len() {
            self.abort(slot, around);
        }
    }

    /// Counts what its slots did since they were last counted.
    pub(crate) fn count_time(&mut self, around: &mut HostContext<'_>) {
        let passed = around.now - self.counted_to;
        self.counted_to = around.now;
        if passed == 0 || self.there == There::Away {
            return;
        }
        let running = self.slots.iter().flatten();
        let busy = count(running.clone().filter(|running| running.is_at_work()).count());
        let stand = count(running.count()) - busy;
        let free = count(self.slots.len()) - busy;
        let coming = self.waiting.iter().filter(|waiting| !waiting.is_ready()).count();
        let waiting = free.min(count(coming) + stand);
        around.tally.busy += busy * passed;
        around.tally.waiting += waiting * passed;
        around.tally.idle += (free - waiting) * passed;
    }

    /// Does nobody hear of it?
    pub(crate) fn is_silent(&self, now: u64) -> bool {
        now < self.silent_to || !self.late.is_empty()
    }

    fn group<'p>(&self, plan: &'p Plan) -> Option<&'p HostGroup> {
        plan.groups.get(plan.kinds.get(self.kind)?.group)
    }

    pub(crate) fn latency(&self, plan: &Plan) -> u64 {
        self.group(plan).map_or(0, |group| group.latency.0)
    }
}
