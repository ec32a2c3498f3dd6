//! What runs in a host's slots, from its start to its end, and how a chart shows it.

use super::{
    Host, HostContext, Waiting,
    running::{Reached, Running},
};
use crate::fleet::{
    cache::Name,
    fate::{Training, UnitFate},
    job::{index, job_index},
    queue::Event,
    scenario::HostGroup,
    tally::{Bar, Came},
};
use sojourn_protocol::{ids::LeaseId, quantity::SaturatingFrom as _, unit::Unit};

impl Host {
    /// Ends hops after the batch that they are at.
    pub(crate) fn stop(&mut self, leases: &[LeaseId], around: &mut HostContext<'_>) {
        for slot in 0..self.slots.len() {
            let Some(Some(running)) = self.slots.get_mut(slot) else { continue };
            if !leases.contains(&running.lease.id) {
                continue;
            }
            let Some(at) = running.stop(around.now) else { continue };
            self.serial += 1;
            running.serial = self.serial;
            let (host, boot, serial) = (self.index, self.boot, self.serial);
            let slot = u32::saturating_from(slot);
            around.queue.add(at, Event::Ends { host, boot, slot, serial });
        }
    }

    /// A blob has come that units in slots may stand still for.
    pub(super) fn goes_on(&mut self, name: &Name, around: &mut HostContext<'_>) {
        let (host, boot) = (self.index, self.boot);
        for (slot, running) in (0u32..).zip(&mut self.slots) {
            let Some(running) = running else { continue };
            if let Some(at) = running.come(name, around.now) {
                let serial = running.serial;
                around.queue.add(at, Event::Ends { host, boot, slot, serial });
            }
        }
    }

    /// Starts what is ready, in idle slots, in the order in which it came.
    pub(super) fn start(&mut self, around: &mut HostContext<'_>) {
        while let Some(slot) = self.slots.iter().position(Option::is_none)
            && let Some(ready) = self.waiting.iter().position(Waiting::is_ready)
        {
            let Waiting { lease, missing } = self.waiting.remove(ready);
            let training = Training::new(&lease, self.kind, self.boot, around.plan);
            self.serial += 1;
            let serial = self.serial;
            let running = Running::new(lease, training, missing, serial, around.now);
            let at = running.reaches();
            let (host, boot) = (self.index, self.boot);
            if running.training.is_late() {
                self.late.insert(running.lease.id);
            }
            if let Some(after) = running.training.preempted_after() {
                let notice = self.group(around.plan).and_then(HostGroup::warned_before);
                around.queue.leave(host, boot, around.now, around.now + after, notice);
            }
            if let Some(place) = self.slots.get_mut(slot) {
                *place = Some(running);
            }
            let slot = u32::saturating_from(slot);
            around.queue.add(at, Event::Ends { host, boot, slot, serial });
        }
    }

    /// A unit has come as far as it could when that was last looked at.
    pub(crate) fn ended(&mut self, slot: u32, serial: u32, around: &mut HostContext<'_>) {
        let running = self.slots.get(index(slot)).and_then(Option::as_ref);
        if running.is_none_or(|running| running.serial != serial) {
            return;
        }
        self.count_time(around);
        let running = self.slots.get_mut(index(slot)).and_then(Option::as_mut);
        match running.map(|running| running.reached(around.now)) {
            Some(Reached::End) => self.end(slot, around),
            Some(Reached::GoesOn(at)) => {
                let (host, boot) = (self.index, self.boot);
                around.queue.add(at, Event::Ends { host, boot, slot, serial });
            }
            Some(Reached::Stands) | None => {}
        }
    }

    fn end(&mut self, slot: u32, around: &mut HostContext<'_>) {
        let Some(running) = self.slots.get_mut(index(slot)).and_then(Option::take) else { return };
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
        let (report, uploaded) = running.training.report(&running.lease, took, real);
        match uploaded {
            Some(blob) => self.upload(&running.lease, report, (blob, came == Came::Whole), around),
            None => self.report(report, None, around),
        }
        self.start(around);
        self.want(around);
    }

    /// What runs in a slot comes to nothing.
    pub(super) fn abort(&mut self, slot: usize, around: &mut HostContext<'_>) {
        let Some(running) = self.slots.get_mut(slot).and_then(Option::take) else { return };
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
