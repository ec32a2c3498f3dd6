//! Work for assimilators, and what they offer back.

use crate::{
    command::{MergeOffer, ReplyTo},
    core::Core,
    effect::{Answer, AssimilationCounts, AssimilationUnit, Effect, Offered},
    event::{Event, Fault, LeaseEnd},
    state::{BlobStatus, Lease, PastState},
};
use sojourn_protocol::{
    digest::BlobRef,
    error::ErrorKind,
    ids::{ClaimId, JobId, LeaseId, TrialId, Version},
    report::{Outcome, Trained},
    time::Millis,
    unit::{Canary, Hop, Merge},
    view::MergeRecord,
};
use sojourn_workgen::Advance;

impl Core {
    /// Puts a result into the line where it is the first of its trial.
    pub(crate) fn queue_assimilation(&mut self, lease: LeaseId) {
        if self.is_to_assimilate(lease) && self.soft.assimilations.queue(lease, self.now) {
            self.effect(Effect::Assimilate);
        }
    }

    /// The first unit that whoever asks can do; `losses`: those too for which losses are looked at.
    pub(crate) fn take_assimilation(&mut self, to: ReplyTo, losses: bool) {
        let term = self.config.assimilation_term;
        let (mut unit, mut behind) = (None, None);
        while let Some((place, lease)) = self.soft.assimilations.first_behind(behind) {
            behind = Some(place);
            let Some(mut found) = self.assimilation_unit(lease) else {
                // It has ended otherwise, or waits for something again.
                self.soft.assimilations.forget(lease);
                continue;
            };
            let looks = found.merge.as_ref().is_some_and(|merge| merge.canary.is_some());
            if looks && !losses {
                continue;
            }
            if let Some(taking) = self.soft.assimilations.take(lease, to, (self.now, term)) {
                found.taking = taking;
                unit = Some(Box::new(found));
                break;
            }
        }
        self.reply(to, Ok(Answer::Assimilation(unit)));
    }

    /// Whoever has a unit is still at it.
    pub(crate) fn renew_assimilation(&mut self, to: ReplyTo, lease: LeaseId, taking: ClaimId) {
        let until = self.now + self.config.assimilation_term;
        let lives =
            self.is_to_assimilate(lease) && self.soft.assimilations.renew(lease, taking, until);
        let offered = if lives { Offered::Taken } else { Offered::Stale };
        self.reply(to, Ok(Answer::Offered(offered)));
    }

    pub(crate) fn assimilations_view(&self) -> AssimilationCounts {
        let assimilations = &self.soft.assimilations;
        let waiting: Vec<LeaseId> =
            assimilations.line().filter(|lease| self.is_to_assimilate(*lease)).collect();
        let units = || waiting.iter().copied().chain(assimilations.taken());
        let oldest = units().filter_map(|lease| assimilations.since(lease)).min();
        let trials = self.state.jobs.values().flat_map(|job| &job.trials);
        let results: usize = trials.map(|trial| trial.awaiting.len()).sum();
        let (ended, per_second) = assimilations.ended(self.soft.started_at, self.now);
        let taken = assimilations.taken().len();
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        AssimilationCounts {
            waiting: count(waiting.len()),
            behind: count(results.saturating_sub(waiting.len() + taken)),
            taken: count(taken),
            lag: oldest.map_or(Millis(0), |since| self.now - since),
            ended,
            per_second,
        }
    }

    fn assimilation_unit(&self, lease: LeaseId) -> Option<AssimilationUnit> {
        if !self.is_to_assimilate(lease) {
            return None;
        }
        let (hop, trained) = self.trained_hop(lease)?;
        let stretch = hop.stretches().find(|stretch| stretch.start.shard == trained.end.shard)?;
        Some(AssimilationUnit {
            lease,
            taking: ClaimId::default(),
            term: self.config.assimilation_term,
            expected_end: stretch.position_at(trained.end.batch)?,
            version: self.state.trial(hop.job, hop.trial)?.version.next(),
            merge: self.merge_of(lease, &trained),
            hop,
            trained,
        })
    }

    /// How a result is to be merged, where its trial's are.
    fn merge_of(&self, lease: LeaseId, trained: &Trained) -> Option<Merge> {
        let lease = self.state.lease(lease)?;
        let job = self.state.jobs.get(&lease.unit.job())?;
        let trial = job.trial(lease.unit.trial())?;
        let merging = trial.merging.as_ref()?;
        let position = trial.end_in_chain(lease, trained.end)?;
        let mut chain = trial.chain.clone();
        let spec = job.spec.placement.merging();
        let canary = spec.canary.zip(job.data.valid.first());
        let advance = chain.advance(chain.next(position.shard)?, position).ok()?;
        Some(Merge {
            spec,
            current: trial.base(),
            state: merging.state,
            staleness: trial.staleness(lease),
            in_flight: merging.in_flight.max(1),
            position,
            flush: trial.flush_with(lease, matches!(advance, Advance::Epoch(_))),
            canary: canary.map(|(most, shard)| Canary { shard: *shard, most }),
        })
    }

    /// What an offer says of a merge, as it is remembered; `None` where it isn't what was to be done.
    fn record_of(
        &self,
        lease: LeaseId,
        trained: BlobRef,
        checkpoint: BlobRef,
        offer: Option<MergeOffer>,
    ) -> Option<Option<MergeRecord>> {
        let (known, report) = self.trained(lease)?;
        let Some(merge) = self.merge_of(lease, report) else {
            return (offer.is_none() && checkpoint == trained).then_some(None);
        };
        let MergeOffer { state, flush, in_flight } = offer?;
        (checkpoint.bytes == trained.bytes).then_some(Some(MergeRecord {
            base: known.base,
            staleness: merge.staleness,
            in_flight,
            flush,
            from: merge.state,
            state,
        }))
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
        merged: Option<MergeOffer>,
    ) {
        let awaited = self.awaited(lease).filter(|_| self.is_to_assimilate(lease));
        let Some((job, trial, next, trained)) = awaited else {
            return self.reply(to, Ok(Answer::Offered(Offered::Stale)));
        };
        let record = self.record_of(lease, trained, checkpoint, merged);
        let Some(merged) = record.filter(|_| version == next) else {
            let message = format!("lease {lease} can't make version {version} of that checkpoint");
            return self.refuse(to, ErrorKind::Invalid, message);
        };
        let blobs = || std::iter::once(checkpoint).chain(merged.map(|merged| merged.state));
        let doomed =
            |blob: BlobRef| self.state.blobs.status(&blob.sha256) == Some(BlobStatus::Doomed);
        if blobs().any(doomed) {
            let message = "the checkpoint's blob is being deleted: publish it again";
            return self.refuse(to, ErrorKind::Unavailable, message);
        }
        self.soft.assimilations.end(lease, self.now);
        for blob in blobs() {
            if !self.state.blobs.is_published(&blob) {
                self.emit(Event::BlobPublished { blob });
            }
        }
        self.emit(Event::Assimilated { lease, version, checkpoint, merged });
        self.effect(Effect::DropUpload(lease));
        self.notify_host_of(lease);
        self.end_unwanted(job, trial);
        self.keep_promise(lease);
        if merged.is_some() {
            // Its shard may be open again, and with a new epoch all of them.
            self.soft.work_changed = true;
            self.take_up(job, trial);
        }
        self.soft.opened.push((job, trial));
        self.reply(to, Ok(Answer::Offered(Offered::Taken)));
    }

    /// Ends what is under way of a trial's hops and can't be taken in any more.
    fn end_unwanted(&mut self, job: JobId, trial: TrialId) {
        let Some(known) = self.state.trial(job, trial) else { return };
        let unwanted = |lease: &LeaseId| {
            self.state.lease(*lease).is_none_or(|lease| !self.state.is_wanted(lease))
        };
        let live: Vec<LeaseId> = known.live_hops().filter(unwanted).collect();
        let waiting: Vec<LeaseId> = known.waiting().filter(unwanted).collect();
        for lease in live {
            self.end_lease(lease, LeaseEnd::Revoked);
        }
        for lease in waiting {
            self.supersede(lease);
        }
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
        self.soft.assimilations.end(lease, self.now);
        let reason: String = reason.chars().take(1000).collect();
        let past = self.state.past.get(&lease).map(|past| past.lease.clone());
        self.emit(Event::Rejected { lease, reason, fault });
        self.effect(Effect::DropUpload(lease));
        self.notify_host_of(lease);
        if let Some(past) = past {
            if fault == Fault::Host {
                self.rest_if_failing(past.host);
            }
            self.take_up(past.unit.job(), past.unit.trial());
        }
        self.soft.work_changed = true;
        self.reply(to, Ok(Answer::Offered(Offered::Taken)));
    }

    fn notify_host_of(&mut self, lease: LeaseId) {
        let host = self.state.past.get(&lease).map(|past| past.lease.host);
        self.soft.notify.extend(host);
    }
}
