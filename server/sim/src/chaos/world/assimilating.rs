//! The server's own side: assimilators, syncs of the journal, and the replies that wait for them.

use super::{SYNC, World, WorldEvent};
use crate::chaos::{
    server::Reply,
    training::{self, With},
};
use sojourn_core::{Answer, AssimilationUnit, Command, Fault, MergeOffer, ReplyTo};
use sojourn_protocol::{digest::Digest, time::Millis, unit::Merge};

impl World {
    pub(super) fn assimilator(&mut self) -> Result<(), String> {
        let faults = self.faults();
        self.later(Millis(10), WorldEvent::Assimilator);
        if self.server.core().is_none() {
            return Ok(());
        }
        let to = ReplyTo(u64::MAX);
        self.apply(Command::TakeAssimilation { to, losses: true })?;
        let (replies, deletes) = self.server.sync();
        let taken = replies.iter().find_map(|(caller, answer)| match answer.as_deref() {
            Ok(Answer::Assimilation(Some(unit))) if *caller == to => Some(unit.clone()),
            _ => None,
        });
        self.deliver(replies, &deletes)?;
        let Some(unit) = taken else { return Ok(()) };
        if self.happens(faults.forget) {
            return Ok(());
        }
        let offer = if self.happens(faults.forget / 4) {
            let reason = "the assimilator didn't like it".into();
            Command::OfferRejected { to: ReplyTo(0), lease: unit.lease, reason, fault: Fault::Host }
        } else {
            offer(&unit)
        };
        self.apply(offer.clone())?;
        if self.happens(faults.duplicate) {
            self.apply(offer)?;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), String> {
        self.later(SYNC, WorldEvent::Sync);
        if self.server.core().is_none() {
            return Ok(());
        }
        let faults = self.faults();
        if self.happens(faults.server) {
            self.server.check_determinism()?;
            self.server.crash();
            self.outcome.server_crashes += 1;
            let away = Millis(u64::from(self.below(30_000)));
            self.later(away, WorldEvent::ServerStarts);
            return Ok(());
        }
        let (replies, deletes) = self.server.sync();
        for plan in self.server.plans() {
            // One that comes late, or never, harms nothing.
            self.send(plan);
        }
        self.deliver(replies, &deletes)
    }

    pub(super) fn deliver(
        &mut self,
        replies: Vec<Reply>,
        deletes: &[Digest],
    ) -> Result<(), String> {
        for (to, answer) in replies {
            if self.calls.contains_key(&to) {
                self.travel(WorldEvent::Heard { to, answer });
            }
        }
        for blob in deletes {
            self.apply(Command::Deleted { blob: *blob })?;
        }
        Ok(())
    }
}

/// The offer of an assimilator that has done its work.
fn offer(unit: &AssimilationUnit) -> Command {
    let AssimilationUnit { lease, version, trained, hop, merge, .. } = unit;
    let made = merge.as_ref().map(|merge| {
        let Merge { current, state, staleness, in_flight, flush, .. } = *merge;
        let with = With { base: hop.base, current, state, staleness, in_flight, flush };
        let (checkpoint, state) = training::merge(trained.checkpoint, &with);
        (checkpoint, MergeOffer { state, flush, in_flight })
    });
    let (checkpoint, merged) = match made {
        Some((checkpoint, merged)) => (checkpoint, Some(merged)),
        None => (trained.checkpoint, None),
    };
    let (lease, version) = (*lease, *version);
    Command::OfferAssimilated { to: ReplyTo(0), lease, version, checkpoint, merged }
}
