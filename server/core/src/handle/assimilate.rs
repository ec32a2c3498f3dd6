//! Work for assimilators, and what they offer back.

use crate::{
    command::{MergeOffer, ReplyTo},
    core::Core,
    effect::{Answer, AssimilationUnit, Effect, Offered},
    event::{Event, Fault, LeaseEnd},
    state::{BlobStatus, Lease, PastState},
};
use sojourn_protocol::{
    digest::BlobRef,
    error::ErrorKind,
    ids::{JobId, LeaseId, TrialId, Version},
    report::{Outcome, Trained},
    unit::Hop,
};

impl Core {
    /// Puts a result into the line where it is the first of its trial.
    pub(crate) fn queue_assimilation(&mut self, lease: LeaseId) {
        if self.is_to_assimilate(lease) && !self.soft.assimilating.contains_key(&lease) {
            self.soft.to_assimilate.push_back(lease);
            self.effect(Effect::Assimilate);
        }
    }

    pub(crate) fn take_assimilation(&mut self, to: ReplyTo) {
        let unit = loop {
            let Some(lease) = self.soft.to_assimilate.pop_front() else { break None };
            let taken = self.soft.assimilating.contains_key(&lease);
            if !taken && let Some(unit) = self.assimilation_unit(lease) {
                self.soft.assimilating.insert(lease, self.now + self.config.assimilation_term);
                break Some(Box::new(unit));
            }
        };
        self.reply(to, Ok(Answer::Assimilation(unit)));
    }

    fn assimilation_unit(&self, lease: LeaseId) -> Option<AssimilationUnit> {
        if !self.is_to_assimilate(lease) {
            return None;
        }
        let (hop, trained) = self.trained_hop(lease)?;
        let stretch = hop.stretches().find(|stretch| stretch.start.shard == trained.end.shard)?;
        Some(AssimilationUnit {
            lease,
            expected_end: stretch.position_at(trained.end.batch)?,
            version: hop.base.version().next(),
            hop,
            trained,
            merge: None,
        })
    }

    fn trained_hop(&self, lease: LeaseId) -> Option<(Hop, Trained)> {
        let (past, trained) = self.trained(lease)?;
        Some((self.wire_hop(past)?, trained.clone()))
    }

    /// The trial of a result that waits, the version that it would make, and its checkpoint.
    fn awaited(&self, lease: LeaseId) -> Option<(JobId, TrialId, Version, BlobRef)> {
        let (past, trained) = self.trained(lease)?;
        let (job, trial) = (past.unit.job(), past.unit.trial());
        let known = self.state.trial(job, trial)?;
        Some((job, trial, known.version.next(), trained.checkpoint))
    }

    fn trained(&self, lease: LeaseId) -> Option<(&Lease, &Trained)> {
        let past = self.state.past.get(&lease)?;
        let PastState::Acknowledged(outcome) = &past.state else { return None };
        let Outcome::Trained(trained) = outcome.as_ref() else { return None };
        Some((&past.lease, trained))
    }

    pub(crate) fn offer_assimilated(
        &mut self,
        to: ReplyTo,
        lease: LeaseId,
        version: Version,
        checkpoint: BlobRef,
        _merged: Option<MergeOffer>,
    ) {
        let awaited = self.awaited(lease).filter(|_| self.is_to_assimilate(lease));
        let Some((job, trial, next, trained)) = awaited else {
            return self.reply(to, Ok(Answer::Offered(Offered::Stale)));
        };
        if version != next || checkpoint != trained {
            let message = format!("lease {lease} can't make version {version} of that checkpoint");
            return self.refuse(to, ErrorKind::Invalid, message);
        }
        if self.state.blobs.status(&checkpoint.sha256) == Some(BlobStatus::Doomed) {
            let message = "the checkpoint's blob is being deleted: publish it again";
            return self.refuse(to, ErrorKind::Unavailable, message);
        }
        self.soft.assimilating.remove(&lease);
        if !self.state.blobs.is_published(&checkpoint) {
            self.emit(Event::BlobPublished { blob: checkpoint });
        }
        self.emit(Event::Assimilated { lease, version, checkpoint, merged: None });
        self.effect(Effect::DropUpload(lease));
        self.notify_host_of(lease);
        if let Some(trial) = self.state.trial(job, trial) {
            let late: Vec<LeaseId> = trial.awaiting.iter().copied().collect();
            let live: Vec<LeaseId> = trial.live.iter().copied().collect();
            for lease in live {
                self.end_lease(lease, LeaseEnd::Revoked);
            }
            for lease in late {
                self.supersede(lease);
            }
        }
        self.keep_promise(lease);
        self.soft.opened.push((job, trial));
        self.reply(to, Ok(Answer::Offered(Offered::Taken)));
    }

    pub(crate) fn offer_rejected(
        &mut self,
        to: ReplyTo,
        lease: LeaseId,
        reason: &str,
        fault: Fault,
    ) {
        if !self.is_to_assimilate(lease) {
            return self.reply(to, Ok(Answer::Offered(Offered::Stale)));
        }
        self.soft.assimilating.remove(&lease);
        let reason: String = reason.chars().take(1000).collect();
        let past = self.state.past.get(&lease).map(|past| past.lease.clone());
        self.emit(Event::Rejected { lease, reason, fault });
        self.effect(Effect::DropUpload(lease));
        self.notify_host_of(lease);
        if let Some(past) = past {
            if fault == Fault::Host {
                self.rest_if_failing(past.host);
            }
            let trial = self.state.trial(past.unit.job(), past.unit.trial());
            if let Some(next) = trial.and_then(|trial| trial.awaiting.front().copied()) {
                self.queue_assimilation(next);
            }
        }
        self.soft.work_changed = true;
        self.reply(to, Ok(Answer::Offered(Offered::Taken)));
    }

    fn notify_host_of(&mut self, lease: LeaseId) {
        let host = self.state.past.get(&lease).map(|past| past.lease.host);
        self.soft.notify.extend(host);
    }
}
