//! A unit in a slot: it begins when its first shard is there, and stands still where a later one isn't.
//!
//! ```text
//!   from --- leg 0 ---|--- leg 1 ---|  (shard 2 is on its way)  |--- leg 2 ---|
//!            worked: grows          | stands                    | grows
//! ```

use crate::fleet::fate::Training;
use sojourn_client_core::Needs;
use sojourn_protocol::{
    digest::Digest,
    trainer::Progress,
    unit::{Lease, ShardSegment, Unit},
};
use std::collections::BTreeSet;

#[derive(Debug)]
pub(super) struct Running {
    pub(super) lease: Lease,
    pub(super) training: Training,
    /// The serial number of the unit's events: what was scheduled with another one is void.
    pub(super) serial: u32,
    /// Later shards that weren't handed over yet.
    missing: BTreeSet<Digest>,
    from: u64,
    /// Microseconds of work that were done when it was last looked at.
    worked: u64,
    /// Since when it has been at work again; none: it stands still.
    since: Option<u64>,
    /// When it stood still: after so much work, for so long.
    stood: Vec<(u64, u64)>,
    /// Since when it stands still.
    stands: u64,
}

/// The state of a unit that has worked as far as it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkEnd {
    /// The unit is at its end.
    End,
    /// The unit goes on, until this time in microseconds.
    GoesOn(u64),
    /// The unit waits for this shard.
    Waits(Digest),
}

impl Running {
    /// Begins now. The shards of its later hops are handed over as they come.
    pub(super) fn new(lease: Lease, training: Training, serial: u32, now: u64) -> Self {
        let later = Needs::of(&lease.unit).later;
        Self {
            lease,
            training,
            serial,
            missing: later.iter().map(|need| need.blob.sha256).collect(),
            from: now,
            worked: 0,
            since: Some(now),
            stood: Vec::new(),
            stands: now,
        }
    }

    pub(super) const fn is_at_work(&self) -> bool {
        self.since.is_some()
    }

    /// Microseconds of work that are done.
    pub(super) fn worked(&self, now: u64) -> u64 {
        self.worked + self.since.map_or(0, |since| now - since)
    }

    /// Batches done, and batches in all.
    pub(super) fn progress(&self, now: u64) -> Progress {
        let (done, of) = self.training.progress(self.worked(now));
        Progress { done: done.max(self.whole_before(self.worked(now))), of }
    }

    /// When it has worked as far as it can with what is there.
    pub(super) fn reaches(&self) -> u64 {
        let left = self.training.at(self.batches_at_hand()).saturating_sub(self.worked);
        self.since.unwrap_or(self.stands) + left
    }

    /// Takes note that the unit has worked as far as it could when it was last looked at, and says how it goes on.
    pub(super) fn reached(&mut self, now: u64) -> WorkEnd {
        self.worked = self.worked(now);
        self.since = None;
        let at_hand = self.batches_at_hand();
        if at_hand >= self.training.until() && self.worked >= self.training.at(at_hand) {
            return WorkEnd::End;
        }
        self.stands = now;
        match self.first_missing() {
            Some((shard, _)) if self.worked >= self.training.at(at_hand) => WorkEnd::Waits(shard),
            _ => {
                self.since = Some(now);
                WorkEnd::GoesOn(self.reaches())
            }
        }
    }

    /// A later shard is here: if it goes on with that, the time until when.
    pub(super) fn hand_over(&mut self, shard: &Digest, now: u64) -> Option<u64> {
        if !self.missing.remove(shard) || self.is_at_work() {
            return None;
        }
        if self.worked >= self.training.at(self.batches_at_hand()) {
            return None;
        }
        self.stood.push((self.worked, now - self.stands));
        self.since = Some(now);
        Some(self.reaches())
    }

    /// Ends the unit after the batch that it is at. Gives the time of that, if it is earlier.
    pub(super) fn stop(&mut self, now: u64) -> Option<u64> {
        if self.is_at_work() {
            return self.training.stop(self.worked(now)).map(|left| now + left);
        }
        self.training.stop_at(self.batches_at_hand()).then_some(now)
    }

    /// The time at which so much work was done; where it stood still then, the time before or after that.
    pub(super) fn time_of(&self, work: u64, after: bool) -> u64 {
        let stood = self.stood.iter().filter(|(at, _)| *at < work || (after && *at == work));
        self.from + work + stood.map(|(_, long)| long).sum::<u64>()
    }

    /// The segments of the unit's hop, each with the number of batches done before it.
    pub(super) fn legs(&self) -> Vec<(ShardSegment, u32)> {
        let Unit::Train(hop) = &self.lease.unit else { return Vec::new() };
        let mut done = 0u32;
        let legs = hop.segments().map(|segment| {
            let before = done;
            done = done.saturating_add(segment.batches());
            (segment, before)
        });
        legs.collect()
    }

    /// The first shard that it lacks, and the batches before it.
    fn first_missing(&self) -> Option<(Digest, u32)> {
        if self.missing.is_empty() {
            return None;
        }
        let mut legs = self.legs().into_iter().map(|(leg, before)| (leg.shard.blob.sha256, before));
        legs.find(|(shard, _)| self.missing.contains(shard))
    }

    /// Batches that it can do with the shards that are there.
    fn batches_at_hand(&self) -> u32 {
        let until = self.training.until();
        self.first_missing().map_or(until, |(_, before)| before.min(until))
    }

    /// Batches of the legs that are whole after so much work: what rounding may not take away.
    fn whole_before(&self, worked: u64) -> u32 {
        if self.stood.is_empty() && self.is_at_work() {
            return 0;
        }
        let at_hand = self.batches_at_hand();
        if worked >= self.training.at(at_hand) { at_hand } else { 0 }
    }
}
