//! Which evaluation a place gets. The host that made a checkpoint holds it still, as a rule, and needn't fetch it:
//! its own evaluations it gets first, and others leave them to it where it would be through with what it is at
//! before they had fetched what they lack. They wait no longer than half of that fetch, from when they first did.

use super::{
    choose::{Chosen, LeftUndone},
    fit::Place,
    reason::Reason,
};
use crate::{
    core::Core,
    event::UnitKey,
    state::{FailedBy, Job, Trial},
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, Version},
    manifest::DataSplit,
};
use std::collections::BTreeMap;

/// Evaluations that are looked at for a place: so many of the oldest that it could do.
const LOOKED_AT: usize = 64;
/// What is fetched sooner is fetched. Microseconds.
const LITTLE: u64 = 200_000;

/// An evaluation that could be granted.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    unit: UnitKey,
    trial: &'a Trial,
    version: Version,
    checkpoint: BlobRef,
    split: DataSplit,
    failures: &'a BTreeMap<HostId, FailedBy>,
}

impl Wanted<'_> {
    /// The host that made the checkpoint.
    fn maker(&self) -> Option<HostId> {
        let history = &self.trial.history;
        let at = history.binary_search_by_key(&self.version, |hop| hop.version).ok()?;
        history.get(at).map(|hop| hop.host)
    }

    fn chosen(&self, why: Reason) -> Chosen {
        Chosen {
            unit: self.unit,
            then: Vec::new(),
            until: None,
            base: self.version,
            why,
            planned: None,
            copy_of: None,
            after: None,
        }
    }
}

impl Core {
    /// An evaluation outside the search that the host may do: somebody waits for it.
    pub(super) fn extra_for(
        &self,
        job: &Job,
        place: Place<'_>,
        left: &mut LeftUndone,
    ) -> Option<Chosen> {
        let open = job.extras.iter().filter(|extra| extra.live.is_empty());
        let wanted = open.filter_map(|extra| {
            Some(Wanted {
                unit: UnitKey::Extra { job: job.id, name: extra.name },
                trial: job.trial(extra.name.trial)?,
                version: extra.version,
                checkpoint: extra.checkpoint,
                split: extra.name.split,
                failures: &extra.failures,
            })
        });
        let best = self.best_of(job, wanted, place, Some(left))?;
        Some(best.chosen(Reason::Asked(best.split)))
    }

    /// An evaluation of the search, where more of them wait than twice the slots.
    pub(super) fn backlog_for(&self, job: &Job, place: Place<'_>) -> Option<Chosen> {
        let waiting = job.open.evaluations().len();
        if waiting == 0 || !self.is_backlog(waiting) {
            return None;
        }
        let best = self.best_of(job, self.wanted(job), place, None)?;
        Some(best.chosen(Reason::Backlog(waiting)))
    }

    /// An evaluation of the search, for a place that no hop is for.
    pub(super) fn evaluation_for(
        &self,
        job: &Job,
        place: Place<'_>,
        left: &mut LeftUndone,
    ) -> Option<Chosen> {
        let best = self.best_of(job, self.wanted(job), place, Some(left))?;
        Some(best.chosen(Reason::NoHop))
    }

    /// The search's open evaluations, the oldest first.
    fn wanted<'a>(&'a self, job: &'a Job) -> impl Iterator<Item = Wanted<'a>> + 'a {
        job.open.evaluations().filter_map(|(epoch, id)| {
            let trial = job.trial(id)?;
            let evaluation = trial.evaluations.get(&epoch)?;
            let lost = self.state.blobs.is_lost(&evaluation.checkpoint.sha256);
            (!lost).then_some(Wanted {
                unit: UnitKey::Evaluate { job: job.id, trial: id, epoch },
                trial,
                version: evaluation.version,
                checkpoint: evaluation.checkpoint,
                split: DataSplit::Valid,
                failures: &evaluation.failures,
            })
        })
    }

    /// The first whose checkpoint the place's host made; else the first of all. Where some may be left to others,
    /// those are passed over.
    fn best_of<'a>(
        &self,
        job: &Job,
        wanted: impl Iterator<Item = Wanted<'a>>,
        place: Place<'_>,
        mut left: Option<&mut LeftUndone>,
    ) -> Option<Wanted<'a>> {
        let may = |wanted: &Wanted<'_>| {
            self.may_retry(None, wanted.failures, place.host)
                && self.has_room(place.slots, wanted.trial)
        };
        let mut first = None;
        for wanted in wanted.filter(may).take(LOOKED_AT) {
            if wanted.maker() == Some(place.host) {
                return Some(wanted);
            }
            if first.is_some() {
                continue;
            }
            match (&mut left, self.left_to_maker(job, wanted, place)) {
                (Some(left), Some(micros)) => left.leave_to_maker(wanted.unit, micros),
                _ => first = Some(wanted),
            }
        }
        first
    }

    /// Would who made the checkpoint have begun before the place had fetched what it lacks? Then for so many
    /// microseconds it is left to that host.
    fn left_to_maker(&self, job: &Job, wanted: Wanted<'_>, place: Place<'_>) -> Option<u64> {
        let maker = wanted.maker()?;
        let here = self.fetching(place.host, self.lacks(job, wanted, place.host));
        if here <= LITTLE || self.soft.is_resting(maker, self.now) || !self.may_employ(job, maker) {
            return None;
        }
        let contact = self.soft.contacts.get(&maker)?;
        let has_room = |device: &str| {
            let slots = contact.devices.get(device);
            slots.is_some_and(|slots| self.has_room(slots, wanted.trial))
        };
        let places = self.soft.schedule.fleet.places(maker).iter();
        let free = places
            .filter(|of| has_room(&of.device))
            .flat_map(|of| self.slots_free_at(maker, &of.device, of.slots));
        let free_in = free.min().filter(|_| self.may_retry(None, wanted.failures, maker))?;
        let there = self.fetching(maker, self.lacks(job, wanted, maker)).saturating_add(free_in);
        let since = self.soft.left_to_makers.get(&wanted.unit).copied().unwrap_or(self.now);
        let waited = (self.now - since).0.saturating_mul(1000);
        let patience = (here / 2).checked_sub(waited).filter(|patience| *patience > 0)?;
        // One that is free takes it unasked, or has a reason not to.
        let look_in = if free_in > 0 { free_in.min(patience) } else { patience };
        (there < here).then_some(look_in)
    }

    /// Bytes that a host would have to fetch for an evaluation.
    fn lacks(&self, job: &Job, wanted: Wanted<'_>, host: HostId) -> u64 {
        let contact = self.soft.contacts.get(&host);
        let has = |digest: &Digest| contact.is_some_and(|contact| contact.cached.contains(digest));
        let shards = job.data.split(wanted.split).iter().map(|shard| shard.blob);
        let lacking = shards.filter(|blob| !has(&blob.sha256)).map(|blob| blob.bytes);
        let checkpoint = if wanted.maker() == Some(host) { 0 } else { wanted.checkpoint.bytes };
        lacking.fold(checkpoint, u64::saturating_add)
    }

    /// From now on it counts for how long others have left an evaluation to who made its checkpoint.
    pub(super) fn is_left_to_maker(&mut self, unit: UnitKey) {
        if !self.soft.left_to_makers.contains_key(&unit) {
            let state = &self.state;
            let is_open = |unit: &UnitKey| {
                let job = state.jobs.get(&unit.job());
                job.and_then(|job| job.live_of(unit)).is_some_and(|live| live.is_empty())
            };
            self.soft.left_to_makers.retain(|unit, _| is_open(unit));
            self.soft.left_to_makers.insert(unit, self.now);
        }
    }

    /// Are these more evaluations than twice the slots of the fleet?
    fn is_backlog(&self, evaluations: usize) -> bool {
        let twice = self.soft.schedule.fleet.slots().saturating_mul(2);
        u64::try_from(evaluations).is_ok_and(|evaluations| evaluations > twice)
    }
}
