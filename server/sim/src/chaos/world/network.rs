//! The network and time: what is sent, lost and repeated, and chance.

use super::{World, WorldEvent};
use crate::chaos::scenario::Faults;
use sojourn_core::Command;
use sojourn_protocol::{
    seeds,
    time::{Millis, UnixMillis},
};

impl World {
    pub(super) fn send(&mut self, command: Command) {
        let faults = self.faults();
        if self.happens(faults.duplicate) {
            self.travel(WorldEvent::Arrives(Box::new(command.clone())));
        }
        self.travel(WorldEvent::Arrives(Box::new(command)));
    }

    pub(super) fn travel(&mut self, happening: WorldEvent) {
        let faults = self.faults();
        if self.happens(faults.lose) {
            return;
        }
        let slow = self.happens(faults.lag);
        let takes = if slow { self.below(20_000) } else { 1 + self.below(30) };
        self.later(Millis(u64::from(takes)), happening);
    }

    pub(super) fn later(&mut self, after: Millis, happening: WorldEvent) {
        self.count += 1;
        self.queue.insert((self.now + after, self.count), happening);
    }

    pub(super) fn faulty(&self) -> bool {
        self.now < UnixMillis(1_000_000) + self.scenario.faults_end
    }

    pub(super) fn faults(&self) -> Faults {
        if self.faulty() { self.scenario.faults } else { Faults::NONE }
    }

    pub(super) fn happens(&mut self, thousandths: u32) -> bool {
        self.below(1000) < thousandths
    }

    pub(super) fn below(&mut self, bound: u32) -> u32 {
        seeds::below(&mut self.chance, bound)
    }
}
