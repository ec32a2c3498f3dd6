//! Assimilators claim results, and offer back what they made of them.

use super::unit::{assimilation_unit, merge_record, next_version};
use crate::{
    command::MergeOffer,
    effect::{Effect, Offered},
    fault::CoreFault,
    reply::{Refusal, Reply, invalid},
    results::ResultHandler,
};
use sojourn_protocol::{
    assimilation::AssimilationUnit,
    digest::BlobRef,
    error::ErrorKind,
    ids::{ClaimId, JobId, LeaseId, TrialId, Version},
    storage::Storage,
    text::plain_text,
};
use sojourn_scheduling::waiters::{ReplyTo, Wake};
use sojourn_state::{BlobStatus, Event, Fault, InFlight};

/// Characters of a rejection's reason that are kept.
const MAX_REASON_CHARS: usize = 1000;

/// Claims and offers of assimilators.
pub(crate) struct AssimilationHandler<'a> {
    pub(crate) results: ResultHandler<'a>,
    pub(crate) storage: &'a Storage,
}

impl AssimilationHandler<'_> {
    /// Gives out the first result that the assimilator can do, if there is one. Passes over at most `most` others. What an
    /// assimilator makes of it needs room on the disk.
    pub(crate) fn claim(
        &mut self,
        to: ReplyTo,
        most: usize,
        can_do: impl Fn(&AssimilationUnit) -> bool,
    ) -> Option<Box<AssimilationUnit>> {
        if self.storage.is_full() {
            return None;
        }
        let (state, queue) = (&*self.results.ledger.state, &mut *self.results.queue);
        let now = self.results.ledger.clock.now();
        let term = self.results.ledger.config.assimilation_term;
        let (mut behind, mut passed) = (None, 0);
        while let Some((position, lease)) = queue.first_behind(behind).filter(|_| passed <= most) {
            behind = Some(position);
            let Some(mut unit) = assimilation_unit(state, lease, term) else {
                // It has ended otherwise, or waits for something again.
                queue.forget(lease);
                continue;
            };
            if !can_do(&unit) {
                passed += 1;
                continue;
            }
            if let Some(claim) = queue.claim(lease, to, now, term) {
                unit.claim = claim;
                return Some(Box::new(unit));
            }
        }
        None
    }

    /// An assimilator is still at what it has claimed.
    pub(crate) fn renew(&mut self, lease: LeaseId, claim: ClaimId) -> Offered {
        let ledger = &self.results.ledger;
        let until = ledger.clock.now() + ledger.config.assimilation_term;
        let lives =
            ledger.state.is_to_assimilate(lease) && self.results.queue.renew(lease, claim, until);
        if lives { Offered::Taken } else { Offered::Stale }
    }

    /// Puts claims back into the queue that are over.
    pub(crate) fn expire_claims(&mut self) {
        let released = self.results.queue.expire(self.results.ledger.clock.now());
        self.wake_assimilators(released);
    }

    /// The connection of a request is gone: what it claimed goes back into the queue.
    pub(crate) fn hang_up(&mut self, to: ReplyTo) {
        let released = self.results.queue.hang_up(to);
        self.wake_assimilators(released);
    }

    fn wake_assimilators(&mut self, released: usize) {
        for _ in 0..released {
            self.results.ledger.effect(Effect::Assimilate);
        }
    }

    /// An assimilator has checked, and perhaps merged, a result, and published its blobs.
    pub(crate) fn offer_assimilated(
        &mut self,
        lease: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        merged: Option<MergeOffer>,
    ) -> Reply<Offered> {
        let ledger = &mut self.results.ledger;
        let state = &*ledger.state;
        let next = next_version(state, lease).filter(|_| state.is_to_assimilate(lease));
        let Some((job, trial, next, trained)) = next else { return Ok(Offered::Stale) };
        let record = merge_record(state, lease, trained, checkpoint, merged);
        let Some(merged) = record.filter(|_| version == next) else {
            let message = format!("lease {lease} can't make version {version} of that checkpoint");
            return invalid(message);
        };
        let blobs = || std::iter::once(checkpoint).chain(merged.map(|merged| merged.state));
        let doomed = |blob: BlobRef| state.blobs.status(&blob.sha256) == Some(BlobStatus::Doomed);
        if blobs().any(doomed) {
            // The deletion ends once nobody holds the blob: then the unit can be done again.
            let released = self.results.queue.put_back(lease);
            self.wake_assimilators(released);
            let message = "the checkpoint's blob is being deleted: publish it again";
            return Err(Refusal::new(ErrorKind::Unavailable, message));
        }
        let of = state.trained_result(lease).and_then(|(of, result)| state.trained_of(of, result));
        let is_part = of.is_some_and(|(_, is_part)| is_part);
        let proved = state.trained_result(lease).map(|(of, result)| (of.clone(), result.clone()));
        self.results.queue.end(lease, ledger.clock.now());
        for blob in blobs() {
            if !ledger.state.blobs.is_published(&blob) {
                ledger.record(Event::BlobPublished { blob })?;
            }
        }
        ledger.record(Event::Assimilated { lease, version, checkpoint, merged })?;
        if let Some((of, result)) = proved {
            self.results.proved(&of, &result);
        }
        let ledger = &mut self.results.ledger;
        if is_part && merged.is_none() {
            // The plan takes what remains of the lease's hops for done.
            ledger.planner.outdate_plan(job);
        }
        ledger.effect(Effect::DropUpload(lease));
        self.results.wake_host_of(lease);
        self.end_unwanted(job, trial)?;
        self.results.leases().confirm(lease)?;
        if merged.is_some() {
            self.results.process_next(job, trial)?;
        }
        self.results.take_back_last(job, trial)?;
        self.results.ledger.waiters.wake(Wake::Trial(job, trial));
        Ok(Offered::Taken)
    }

    /// Ends leases and results of a trial's hops that can't be taken in any more.
    fn end_unwanted(&mut self, job: JobId, trial: TrialId) -> Result<(), CoreFault> {
        let state = &*self.results.ledger.state;
        let Some(known) = state.trial(job, trial) else { return Ok(()) };
        let unwanted =
            |lease: &LeaseId| state.lease(*lease).is_none_or(|lease| !state.is_wanted(lease));
        let live: Vec<LeaseId> = known.live_hops().filter(unwanted).collect();
        let awaiting: Vec<LeaseId> = known.waiting().filter(unwanted).collect();
        self.results.abandon(InFlight { live, awaiting })
    }

    /// An assimilator rejects a result.
    pub(crate) fn offer_rejected(
        &mut self,
        lease: LeaseId,
        reason: &str,
        fault: Fault,
    ) -> Reply<Offered> {
        let ledger = &mut self.results.ledger;
        if !ledger.state.is_to_assimilate(lease) {
            return Ok(Offered::Stale);
        }
        self.results.queue.end(lease, ledger.clock.now());
        let reason = plain_text(reason, MAX_REASON_CHARS);
        let past = ledger.state.past.get(&lease).map(|past| past.lease.clone());
        ledger.record(Event::Rejected { lease, reason, fault })?;
        ledger.effect(Effect::DropUpload(lease));
        self.results.wake_host_of(lease);
        if let Some(past) = past {
            if fault == Fault::Host {
                self.results.result_rejected(past.host);
            }
            self.results.process_next(past.unit.job(), past.unit.trial())?;
        }
        self.results.ledger.waiters.wake(Wake::All);
        Ok(Offered::Taken)
    }
}
