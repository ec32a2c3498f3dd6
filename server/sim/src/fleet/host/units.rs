//! Units in a host's slots, from their start to their end, and how a chart shows them.

use super::{
    Host, HostContext,
    machine::StoredReport,
    running::{Running, WorkEnd},
};
use crate::fleet::{
    fate::{Training, UnitFate},
    job::{index, job_index},
    queue::Event,
    scenario::HostGroup,
    tally::{Bar, Came},
};
use sojourn_client_core::{self as client, BlobClass, ResultFacts};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
    quantity::SaturatingFrom as _,
    report::Report,
    unit::{Lease, Unit},
};

impl Host {
    pub(super) fn start(&mut self, lease: Lease, slot: u32, around: &mut HostContext<'_>) {
        let training = Training::new(&lease, self.kind, self.boot, around.plan);
        self.serial += 1;
        let serial = self.serial;
        let (host, boot) = (self.index, self.boot);
        if training.is_late() {
            self.network.cut(lease.id);
        }
        if let Some(after) = training.preempted_after() {
            let notice = self.group(around.plan).and_then(HostGroup::warned_before);
            around.queue.leave(host, boot, around.now, around.now + after, notice);
        }
        let running = Running::new(lease, training, serial, around.now);
        around.queue.add(running.reaches(), Event::Ends { host, boot, slot, serial });
        if let Some(place) = self.slots.get_mut(index(slot)) {
            *place = Some(running);
            self.idle_since = None;
        }
    }

    /// The slot of a lease whose unit runs.
    fn slot_of(&self, lease: LeaseId) -> Option<usize> {
        self.slots.iter().position(|of| of.as_ref().is_some_and(|unit| unit.lease.id == lease))
    }

    /// Has a unit end after the batch that it is at.
    pub(super) fn stop(&mut self, lease: LeaseId, around: &mut HostContext<'_>) {
        let Some(slot) = self.slot_of(lease) else { return };
        let Some(Some(running)) = self.slots.get_mut(slot) else { return };
        let Some(at) = running.stop(around.now) else { return };
        self.serial += 1;
        running.serial = self.serial;
        let (host, boot, serial) = (self.index, self.boot, self.serial);
        let slot = u32::saturating_from(slot);
        around.queue.add(at, Event::Ends { host, boot, slot, serial });
    }

    /// A later shard is here for a unit, which may stand still without it.
    pub(super) fn hand_over(
        &mut self,
        lease: LeaseId,
        shard: &Digest,
        around: &mut HostContext<'_>,
    ) {
        let Some(slot) = self.slot_of(lease) else { return };
        let Some(Some(running)) = self.slots.get_mut(slot) else { return };
        if let Some(at) = running.hand_over(shard, around.now) {
            let (host, boot, serial) = (self.index, self.boot, running.serial);
            let slot = u32::saturating_from(slot);
            around.queue.add(at, Event::Ends { host, boot, slot, serial });
        }
    }

    /// Handles the scheduled end of a unit's available work: the unit ends, goes on, or waits for a shard.
    pub(crate) fn ended(&mut self, slot: u32, serial: u32, around: &mut HostContext<'_>) {
        let running = self.slots.get(index(slot)).and_then(Option::as_ref);
        if running.is_none_or(|running| running.serial != serial) {
            return;
        }
        self.count_time(around);
        let Some(Some(running)) = self.slots.get_mut(index(slot)) else { return };
        let lease = running.lease.id;
        match running.reached(around.now) {
            WorkEnd::End => self.end(slot, around),
            WorkEnd::GoesOn(at) => {
                let (host, boot) = (self.index, self.boot);
                around.queue.add(at, Event::Ends { host, boot, slot, serial });
            }
            WorkEnd::Waits(shard) => self.tell(client::Event::ShardNeeded(lease, shard), around),
        }
    }

    fn end(&mut self, slot: u32, around: &mut HostContext<'_>) {
        let Some(running) = self.slots.get_mut(index(slot)).and_then(Option::take) else { return };
        self.note_idle(around.now);
        let took = running.worked(around.now);
        around.tally.trained += took;
        let came = match running.training.fate {
            UnitFate::Fails => Came::Lost,
            _ if running.training.is_stopped() => Came::Part,
            _ => Came::Whole,
        };
        self.draw(&running, slot, came, around);
        let lie = self.group(around.plan).and_then(|group| group.liar);
        let real = around.train(&running.lease, &running.training, lie);
        let job = around.plan.job(running.lease.unit.job());
        let is_verified = job.is_some_and(|job| job.spec.placement.verify.is_some());
        let (report, checkpoint) = running.training.report(&running.lease, took, real, is_verified);
        self.store_result(&running.lease.unit, report, checkpoint, around);
        let has_checkpoint = checkpoint.is_some();
        let continues_from = checkpoint.filter(|_| came == Came::Whole);
        let facts = ResultFacts { has_checkpoint, continues_from };
        self.tell(client::Event::UnitEnded(running.lease.id, facts), around);
    }

    /// Keeps a result until the server is done with it, and its checkpoint for the trial's next hop.
    fn store_result(
        &mut self,
        unit: &Unit,
        report: Report,
        checkpoint: Option<BlobRef>,
        around: &HostContext<'_>,
    ) {
        let known = around.plan.job(unit.job()).and_then(|job| job.checkpoint_bytes);
        let mut bytes = 0;
        if let Some(checkpoint) = checkpoint {
            bytes = known.unwrap_or(checkpoint.bytes);
            self.store(&BlobRef { bytes, ..checkpoint }, BlobClass::Checkpoint, false);
        }
        let stored = StoredReport { report, checkpoint, bytes, sent: 0 };
        self.machine.outbox.insert(stored.report.lease, stored);
    }

    /// Ends a unit of which nothing is wanted any more.
    pub(super) fn kill(&mut self, lease: LeaseId, around: &mut HostContext<'_>) {
        if let Some(slot) = self.slot_of(lease) {
            self.abort(slot, around);
            self.forget_late(lease, around);
        }
    }

    /// Ends the unit that runs in a slot, without a result.
    pub(super) fn abort(&mut self, slot: usize, around: &mut HostContext<'_>) {
        let Some(running) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.note_idle(around.now);
        around.tally.trained += running.worked(around.now);
        self.draw(&running, u32::saturating_from(slot), Came::Lost, around);
    }

    fn draw(&self, running: &Running, slot: u32, came: Came, around: &mut HostContext<'_>) {
        let Some(bars) = &mut around.bars else { return };
        let lease = &running.lease;
        let worked = running.worked(around.now);
        let bar = Bar {
            host: self.index,
            slot,
            job: u32::saturating_from(job_index(lease)),
            trial: lease.unit.trial().0,
            epoch: 0,
            shard: None,
            from: running.time_of(0, false),
            to: around.now,
            came,
        };
        if let Unit::Evaluate(evaluation) = &lease.unit {
            bars.push(Bar { epoch: evaluation.epoch.0, ..bar });
            return;
        }
        for (stretch, before) in running.legs() {
            let begun = running.training.at(before);
            let done = running.training.at(before + stretch.batches()).min(worked);
            let (epoch, shard) = (stretch.start.epoch.0, Some(stretch.start.shard.0));
            if begun < done {
                let (from, to) = (running.time_of(begun, true), running.time_of(done, false));
                bars.push(Bar { epoch, shard, from, to, ..bar });
            }
        }
    }
}
