//! What goes over a host's line: blobs for its units, shards ahead, checkpoints, reports.

use super::{Fetch, Host, HostContext, Upload, Waiting};
use crate::fleet::{
    cache::{Evicted, Name, Need, needs},
    job::job_index,
    plan::Plan,
    queue::Event,
};
use sojourn_protocol::{digest::BlobRef, report::Report, unit::Lease};
use std::collections::BTreeSet;

/// A late report comes so long after its lease has run out, at the least.
const BEYOND: u64 = 1_000_000;

impl Host {
    pub(super) fn take(&mut self, lease: Lease, around: &mut HostContext<'_>) {
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

    fn fetch(&mut self, fetch: Fetch, around: &mut HostContext<'_>) {
        let bytes = fetch.bytes;
        let ending = self.down.push(around.now, fetch, bytes);
        if let Some(ending) = ending.filter(|_| !self.down.is_instant()) {
            let (host, boot, serial) = (self.index, self.boot, ending.serial);
            around.queue.add(ending.at, Event::Fetched { host, boot, serial });
        }
    }

    /// Over a line without limits, everything is there at once.
    fn have_all(&mut self, around: &mut HostContext<'_>) {
        while let Some((fetch, ..)) = self.down.end_first(around.now) {
            self.have(&fetch, around);
        }
    }

    pub(super) fn fetch_ahead(&mut self, blobs: &[BlobRef], around: &mut HostContext<'_>) {
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

    pub(crate) fn fetched(&mut self, serial: u32, around: &mut HostContext<'_>) {
        let Some((fetch, _, next)) = self.down.end(around.now, serial) else { return };
        self.count_time(around);
        if let Some(next) = next {
            let (host, boot, serial) = (self.index, self.boot, next.serial);
            around.queue.add(next.at, Event::Fetched { host, boot, serial });
        }
        self.have(&fetch, around);
        self.start(around);
    }

    fn have(&mut self, fetch: &Fetch, around: &mut HostContext<'_>) {
        match fetch.need.name {
            Name::Data(_) => {
                around.tally.shards += 1;
                around.tally.requests.transfers += 1;
                around.tally.shard_bytes += fetch.bytes;
                self.send_inventory |= fetch.ahead;
            }
            Name::Checkpoint(..) => {
                around.tally.requests.transfers += 1;
                around.tally.checkpoints_down += fetch.bytes;
            }
        }
        self.keep(&fetch.need, fetch.bytes);
        for waiting in &mut self.waiting {
            waiting.missing.remove(&fetch.need.name);
        }
        self.goes_on(&fetch.need.name, around);
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

    pub(super) fn upload(
        &mut self,
        lease: &Lease,
        report: Report,
        (blob, whole): (BlobRef, bool),
        around: &mut HostContext<'_>,
    ) {
        let unit = &lease.unit;
        let need = Need { name: Name::Checkpoint(unit.job(), unit.trial()), blob };
        let bytes = true_bytes(&need, lease, around.plan);
        self.keep(&need, bytes);
        let ending = self.up.push(around.now, Upload { report, blob, whole }, bytes);
        if self.up.is_instant() {
            if let Some((upload, ..)) = self.up.end_first(around.now) {
                around.tally.requests.transfers += 1;
                around.tally.checkpoints_up += bytes;
                self.report(upload.report, Some(upload.blob), around);
            }
        } else if let Some(ending) = ending {
            let (host, boot, serial) = (self.index, self.boot, ending.serial);
            around.queue.add(ending.at, Event::Sent { host, boot, serial });
        }
    }

    pub(crate) fn sent(&mut self, serial: u32, around: &mut HostContext<'_>) {
        let Some((upload, bytes, next)) = self.up.end(around.now, serial) else { return };
        if let Some(next) = next {
            let (host, boot, serial) = (self.index, self.boot, next.serial);
            around.queue.add(next.at, Event::Sent { host, boot, serial });
        }
        around.tally.requests.transfers += 1;
        around.tally.checkpoints_up += bytes;
        self.report(upload.report, Some(upload.blob), around);
    }

    pub(super) fn report(
        &mut self,
        report: Report,
        uploaded: Option<BlobRef>,
        around: &mut HostContext<'_>,
    ) {
        let mut at = around.now + self.latency(around.plan);
        if self.late.remove(&report.lease) {
            // Nothing that it says then comes before.
            at = at.max(self.said_at + around.plan.lease_term + BEYOND);
            self.silent_to = at;
            self.ask_due = true;
            around.queue.add(at, Event::Ask { host: self.index, boot: self.boot });
        } else {
            self.said_at = around.now;
        }
        let report = Box::new(report);
        around.queue.add(at, Event::Report { host: self.index, report, uploaded });
    }
}

/// A checkpoint is as large as the scenario says, whatever the core takes it for.
fn true_bytes(need: &Need, lease: &Lease, plan: &Plan) -> u64 {
    let known = plan.jobs.get(job_index(lease)).and_then(|job| job.checkpoint_bytes);
    match need.name {
        Name::Checkpoint(..) => known.unwrap_or(need.blob.bytes),
        Name::Data(_) => need.blob.bytes,
    }
}
