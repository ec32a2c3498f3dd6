//! A virtual client: fetches, trains in its slots, uploads, reports; as the real one does, where that
//! matters for time.
//!
//! ```text
//!   lease -- its blobs, over the line -- waits for a slot -- runs -- its checkpoint, over the line -- report
//!            (cached ones are free)                          '-- the slot goes on with the next unit
//! ```

use super::{
    cache::{Cache, Evicted, Name, Need, needs},
    fate::{Fate, Training},
    job::{count, index},
    link::Link,
    plan::Plan,
    queue::{Event, Queue},
    scenario::HostGroup,
    tally::{Bar, Came, Tally},
};
use sojourn_core::ReplyTo;
use sojourn_protocol::{
    api::{Held, HeldState, WorkAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId},
    inventory::{Demand, Inventory, Links},
    report::Report,
    time::Millis,
    unit::{Lease, Unit},
};
use std::collections::BTreeSet;

/// What a host may look at and write to.
pub(crate) struct Around<'a> {
    pub(crate) now: u64,
    pub(crate) plan: &'a Plan,
    pub(crate) queue: &'a mut Queue,
    pub(crate) tally: &'a mut Tally,
    /// Where bars of a chart go, if one is wanted.
    pub(crate) bars: Option<&'a mut Vec<Bar>>,
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

#[derive(Debug)]
struct Running {
    lease: Lease,
    training: Training,
    from: u64,
    serial: u32,
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
            counted_to: 0,
        }
    }

    // --- coming and going ----------------------------------------------------------------------

    pub(crate) fn come(&mut self, around: &mut Around<'_>) {
        self.there = There::Here;
        self.counted_to = around.now;
        self.send_inventory = true;
        self.want(around);
    }

    /// It will be taken away: what runs goes on, nothing else is begun. Gives what it hands back.
    pub(crate) fn wind_down(&mut self, around: &mut Around<'_>) -> Vec<LeaseId> {
        self.count_time(around);
        self.there = There::Leaving;
        self.asked = None;
        let back = self.waiting.iter().map(|waiting| waiting.lease.id).collect();
        self.waiting.clear();
        back
    }

    /// What it asks then: for nothing, so that the server knows.
    pub(crate) fn last_request(&self, now: u64) -> WorkRequest {
        WorkRequest {
            demand: Vec::new(),
            holding: self.holding(now),
            reported: Vec::new(),
            wait: Millis(0),
            inventory: None,
        }
    }

    /// What runs ends after the batch that it is at.
    pub(crate) fn close(&mut self, around: &mut Around<'_>) {
        let running = self.slots.iter().flatten().map(|running| running.lease.id);
        self.stop(&running.collect::<Vec<_>>(), around);
    }

    /// It is gone, with all that it had in work. Gives the leases that it had.
    pub(crate) fn go(&mut self, another: bool, around: &mut Around<'_>) -> Vec<LeaseId> {
        self.count_time(around);
        let held = self.holding(around.now).iter().map(|held| held.lease).collect();
        for slot in 0..self.slots.len() {
            self.abort(slot, around);
        }
        self.waiting.clear();
        self.down.clear();
        self.up.clear();
        if another {
            self.cache.clear();
        }
        self.there = There::Away;
        self.boot += 1;
        self.asked = None;
        (self.ask_due, self.beat_due) = (false, false);
        held
    }

    // --- what it says --------------------------------------------------------------------------

    /// Has it an ask to send? One is open while it could do with more, and newer ones say more.
    pub(crate) fn want(&mut self, around: &mut Around<'_>) {
        if self.there != There::Here || self.ask_due {
            return;
        }
        let (idle, wanted) = self.demand(around.plan);
        let heard = self.asked.is_none() || idle > self.asked_idle;
        if wanted > 0 && heard {
            self.ask_due = true;
            let at = around.now + self.latency(around.plan);
            around.queue.add(at, Event::Ask { host: self.index, boot: self.boot });
        }
    }

    pub(crate) fn request(&mut self, around: &Around<'_>, reply: ReplyTo) -> WorkRequest {
        let (idle, wanted) = self.demand(around.plan);
        self.asked = Some(reply);
        self.asked_idle = idle;
        self.said_at = around.now;
        let device = around.plan.kinds.get(self.kind).map(|kind| &kind.device);
        let told = device.filter(|_| std::mem::take(&mut self.send_inventory));
        let inventory = told.map(|device| Inventory {
            cached: self.cache.data(),
            devices: vec![device.clone()],
            client: "sim".into(),
            links: Links {
                download: Some(self.down.bytes_per_second().unwrap_or(u64::MAX)),
                upload: Some(self.up.bytes_per_second().unwrap_or(u64::MAX)),
            },
        });
        let slots = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let device = device.map_or_else(String::new, |device| device.name.clone());
        WorkRequest {
            demand: vec![Demand { device, slots, idle, wanted }],
            holding: self.holding(around.now),
            reported: Vec::new(),
            wait: Millis(around.plan.longest_wait.div_ceil(1000)),
            inventory,
        }
    }

    /// Idle slots, and leases wanted.
    fn demand(&self, plan: &Plan) -> (u32, u32) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let held = number(self.waiting.len() + self.slots.iter().flatten().count());
        let slots = number(self.slots.len());
        let ahead = self.group(plan).map_or(0, HostGroup::units_ahead);
        let wanted = (slots + slots * ahead).saturating_sub(held);
        (slots.saturating_sub(held), wanted)
    }

    /// Leases that it holds and hasn't reported.
    pub(crate) fn holding(&self, now: u64) -> Vec<Held> {
        let waiting = self.waiting.iter().map(|waiting| {
            let fetched = self.down.progress(now);
            let fetching = !waiting.missing.is_empty();
            let state = if fetching { HeldState::Fetching { fetched } } else { HeldState::Waiting };
            Held { lease: waiting.lease.id, state }
        });
        let running = self.slots.iter().flatten().map(|running| {
            let (done, of) = running.training.progress(now - running.from);
            Held { lease: running.lease.id, state: HeldState::Running { done, of } }
        });
        let uploads = self.up.items().map(|upload| {
            let sent = self.up.progress(now);
            Held { lease: upload.report.lease, state: HeldState::Sending { sent } }
        });
        waiting.chain(running).chain(uploads).collect()
    }

    /// Does it hold anything that must be kept alive?
    pub(crate) fn is_busy(&self) -> bool {
        !self.waiting.is_empty()
            || self.slots.iter().any(Option::is_some)
            || self.up.items().next().is_some()
    }

    // --- what it hears -------------------------------------------------------------------------

    pub(crate) fn hear(&mut self, answer: WorkAnswer, around: &mut Around<'_>) {
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

    fn take(&mut self, lease: Lease, around: &mut Around<'_>) {
        let mut missing = BTreeSet::new();
        for need in needs(&lease) {
            if self.cache.has(&need) {
                continue;
            }
            missing.insert(need.name);
            let on_its_way = |fetch: &Fetch| fetch.need == need;
            if !self.down.items().any(on_its_way) {
                let bytes = true_bytes(&need, &lease, around.plan);
                self.fetch(Fetch { need, bytes, ahead: false }, around);
            }
        }
        self.waiting.push(Waiting { lease, missing });
        if self.down.is_instant() {
            self.have_all(around);
        }
    }

    fn fetch(&mut self, fetch: Fetch, around: &mut Around<'_>) {
        let bytes = fetch.bytes;
        let ending = self.down.push(around.now, fetch, bytes);
        if let Some(ending) = ending.filter(|_| !self.down.is_instant()) {
            let (host, boot, serial) = (self.index, self.boot, ending.serial);
            around.queue.add(ending.at, Event::Fetched { host, boot, serial });
        }
    }

    /// Over a line without limits, everything is there at once.
    fn have_all(&mut self, around: &mut Around<'_>) {
        while let Some((fetch, ..)) = self.down.end_first(around.now) {
            self.have(&fetch, around);
        }
    }

    fn fetch_ahead(&mut self, blobs: &[BlobRef], around: &mut Around<'_>) {
        for blob in blobs {
            let need = Need { name: Name::Data(blob.sha256), blob: *blob };
            let on_its_way = self.down.items().any(|fetch| fetch.need == need);
            if !on_its_way && !self.cache.has(&need) && self.cache.has_room(blob.bytes) {
                self.fetch(Fetch { need, bytes: blob.bytes, ahead: true }, around);
            }
        }
        if self.down.is_instant() {
            self.have_all(around);
        }
    }

    pub(crate) fn drop_leases(&mut self, leases: &[LeaseId], around: &mut Around<'_>) {
        if leases.is_empty() {
            return;
        }
        self.count_time(around);
        let gone = |id: &LeaseId| leases.contains(id);
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
        let waiting = &self.waiting;
        let next = self.down.retain(around.now, |fetch| {
            fetch.ahead || waiting.iter().any(|of| of.missing.contains(&fetch.need.name))
        });
        if let Some(next) = next {
            around.queue.add(next.at, Event::Fetched { host, boot, serial: next.serial });
        }
        self.start(around);
    }

    /// Ends hops after the batch that they are at.
    pub(crate) fn stop(&mut self, leases: &[LeaseId], around: &mut Around<'_>) {
        for slot in 0..self.slots.len() {
            let Some(Some(running)) = self.slots.get_mut(slot) else { continue };
            if !leases.contains(&running.lease.id) {
                continue;
            }
            let Some(left) = running.training.stop(around.now - running.from) else { continue };
            self.serial += 1;
            running.serial = self.serial;
            let (host, boot, serial) = (self.index, self.boot, self.serial);
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            around.queue.add(around.now + left, Event::Ends { host, boot, slot, serial });
        }
    }

    // --- what happens to it --------------------------------------------------------------------

    pub(crate) fn fetched(&mut self, serial: u32, around: &mut Around<'_>) {
        let Some((fetch, _, next)) = self.down.end(around.now, serial) else { return };
        self.count_time(around);
        if let Some(next) = next {
            let (host, boot, serial) = (self.index, self.boot, next.serial);
            around.queue.add(next.at, Event::Fetched { host, boot, serial });
        }
        self.have(&fetch, around);
        self.start(around);
    }

    fn have(&mut self, fetch: &Fetch, around: &mut Around<'_>) {
        match fetch.need.name {
            Name::Data(_) => {
                around.tally.shards += 1;
                around.tally.shard_bytes += fetch.bytes;
                self.send_inventory |= fetch.ahead;
            }
            Name::Checkpoint(..) => around.tally.checkpoints_down += fetch.bytes,
        }
        self.keep(&fetch.need, fetch.bytes);
        for waiting in &mut self.waiting {
            waiting.missing.remove(&fetch.need.name);
        }
    }

    /// Takes a blob into the cache; the server hears of shards that had to go for it.
    fn keep(&mut self, need: &Need, bytes: u64) {
        let leases = self.waiting.iter().map(|waiting| &waiting.lease);
        let leases = leases.chain(self.slots.iter().flatten().map(|running| &running.lease));
        let needed: BTreeSet<Name> = match self.cache.would_overflow(bytes) {
            true => leases.flat_map(needs).map(|need| need.name).collect(),
            false => BTreeSet::new(),
        };
        self.send_inventory |= self.cache.insert(need, bytes, &needed) == Evicted::Data;
    }

    /// Starts what is ready, in idle slots, in the order in which it came.
    fn start(&mut self, around: &mut Around<'_>) {
        while let Some(slot) = self.slots.iter().position(Option::is_none)
            && let Some(ready) = self.waiting.iter().position(|of| of.missing.is_empty())
        {
            let lease = self.waiting.remove(ready).lease;
            let training = Training::new(&lease, self.kind, around.plan);
            self.serial += 1;
            let serial = self.serial;
            let at = around.now + training.takes();
            if let Some(place) = self.slots.get_mut(slot) {
                *place = Some(Running { lease, training, from: around.now, serial });
            }
            let (host, boot) = (self.index, self.boot);
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            around.queue.add(at, Event::Ends { host, boot, slot, serial });
        }
    }

    /// A unit has ended.
    pub(crate) fn ended(&mut self, slot: u32, serial: u32, around: &mut Around<'_>) {
        let Some(place) = self.slots.get_mut(index(slot)) else { return };
        if place.as_ref().is_none_or(|running| running.serial != serial) {
            return;
        }
        self.count_time(around);
        let Some(running) = self.slots.get_mut(index(slot)).and_then(Option::take) else { return };
        let took = around.now - running.from;
        around.tally.trained += took;
        let came = match running.training.fate {
            Fate::Fails => Came::Lost,
            _ if running.training.is_stopped() => Came::Part,
            _ => Came::Whole,
        };
        self.draw(&running, slot, came, around);
        let (report, uploaded) = running.training.report(&running.lease, took);
        match uploaded {
            Some(blob) => self.upload(&running.lease, report, blob, around),
            None => self.report(report, None, around),
        }
        self.start(around);
        self.want(around);
    }

    fn upload(&mut self, lease: &Lease, report: Report, blob: BlobRef, around: &mut Around<'_>) {
        let unit = &lease.unit;
        let need = Need { name: Name::Checkpoint(unit.job(), unit.trial()), blob };
        let bytes = true_bytes(&need, lease, around.plan);
        self.keep(&need, bytes);
        let ending = self.up.push(around.now, Upload { report, blob }, bytes);
        if self.up.is_instant() {
            if let Some((upload, ..)) = self.up.end_first(around.now) {
                around.tally.checkpoints_up += bytes;
                self.report(upload.report, Some(upload.blob), around);
            }
        } else if let Some(ending) = ending {
            let (host, boot, serial) = (self.index, self.boot, ending.serial);
            around.queue.add(ending.at, Event::Sent { host, boot, serial });
        }
    }

    pub(crate) fn sent(&mut self, serial: u32, around: &mut Around<'_>) {
        let Some((upload, bytes, next)) = self.up.end(around.now, serial) else { return };
        if let Some(next) = next {
            let (host, boot, serial) = (self.index, self.boot, next.serial);
            around.queue.add(next.at, Event::Sent { host, boot, serial });
        }
        around.tally.checkpoints_up += bytes;
        self.report(upload.report, Some(upload.blob), around);
    }

    fn report(&mut self, report: Report, uploaded: Option<BlobRef>, around: &mut Around<'_>) {
        self.said_at = around.now;
        let at = around.now + self.latency(around.plan);
        let report = Box::new(report);
        around.queue.add(at, Event::Report { host: self.index, report, uploaded });
    }

    /// What runs in a slot comes to nothing.
    fn abort(&mut self, slot: usize, around: &mut Around<'_>) {
        let Some(running) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        around.tally.trained += around.now - running.from;
        self.draw(&running, u32::try_from(slot).unwrap_or(u32::MAX), Came::Lost, around);
    }

    fn draw(&self, running: &Running, slot: u32, came: Came, around: &mut Around<'_>) {
        let Some(bars) = &mut around.bars else { return };
        let lease = &running.lease;
        let (from, to) = (running.from, around.now);
        let bar = Bar {
            host: self.index,
            slot,
            job: u32::try_from(job_index(lease)).unwrap_or(u32::MAX),
            trial: lease.unit.trial().0,
            epoch: 0,
            shard: None,
            from,
            to,
            came,
        };
        let hop = match &lease.unit {
            Unit::Train(hop) => hop,
            Unit::Evaluate(evaluation) => {
                bars.push(Bar { epoch: evaluation.epoch.0, ..bar });
                return;
            }
        };
        // Each shard of the way gets its part of the time.
        let all = running.training.until().max(1);
        let mut done = 0u32;
        for stretch in hop.stretches().take_while(|_| to > from) {
            let begun = done;
            done = all.min(done.saturating_add(stretch.batches()));
            let at = |batches: u32| from + (to - from) * u64::from(batches) / u64::from(all);
            let (epoch, shard) = (stretch.start.epoch.0, Some(stretch.start.shard.0));
            if begun < done {
                bars.push(Bar { epoch, shard, from: at(begun), to: at(done), ..bar });
            }
        }
    }

    /// Counts what its slots did since they were last counted.
    pub(crate) fn count_time(&mut self, around: &mut Around<'_>) {
        let passed = around.now - self.counted_to;
        self.counted_to = around.now;
        if passed == 0 || self.there == There::Away {
            return;
        }
        let busy = count(self.slots.iter().flatten().count());
        let free = count(self.slots.len()) - busy;
        let coming = self.waiting.iter().filter(|waiting| !waiting.missing.is_empty()).count();
        let waiting = free.min(count(coming));
        around.tally.busy += busy * passed;
        around.tally.waiting += waiting * passed;
        around.tally.idle += (free - waiting) * passed;
    }

    fn group<'p>(&self, plan: &'p Plan) -> Option<&'p HostGroup> {
        plan.groups.get(plan.kinds.get(self.kind)?.group)
    }

    pub(crate) fn latency(&self, plan: &Plan) -> u64 {
        self.group(plan).map_or(0, |group| group.latency.0)
    }
}

/// The core counts jobs from 1, in the order in which they were submitted.
pub(crate) fn job_index(lease: &Lease) -> usize {
    usize::try_from(lease.unit.job().0.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// The digest of what a lease's unit makes.
pub(crate) fn made_by(lease: LeaseId) -> Digest {
    Digest::of(&lease.0.to_le_bytes())
}

/// A checkpoint is as large as the scenario says, whatever the core takes it for.
fn true_bytes(need: &Need, lease: &Lease, plan: &Plan) -> u64 {
    let known = plan.jobs.get(job_index(lease)).and_then(|job| job.checkpoint_bytes);
    match need.name {
        Name::Checkpoint(..) => known.unwrap_or(need.blob.bytes),
        Name::Data(_) => need.blob.bytes,
    }
}
