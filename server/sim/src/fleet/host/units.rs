//! What runs in a host's slots, from its start to its end, and how a chart shows it.

use super::{Around, Host, Running, job_index};
use crate::fleet::{
    fate::{Fate, Training},
    job::index,
    queue::Event,
    tally::{Bar, Came},
};
use sojourn_protocol::{ids::LeaseId, unit::Unit};

impl Host {
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

    /// Starts what is ready, in idle slots, in the order in which it came.
    pub(super) fn start(&mut self, around: &mut Around<'_>) {
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

    /// What runs in a slot comes to nothing.
    pub(super) fn abort(&mut self, slot: usize, around: &mut Around<'_>) {
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
}
