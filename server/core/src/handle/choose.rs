//! Which unit a slot gets: jobs by their turn, hops by the policy, evaluations where they fit.

use super::{fit::Place, promise::After, reason::Reason};
use crate::{core::Core, event::UnitKey, handle::hop::Hop, schedule::PlannedHop, state::Job};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    time::Millis,
};

/// A unit that was chosen for a host.
pub(crate) struct Chosen {
    pub(crate) unit: UnitKey,
    /// Shards whose hops follow under the same lease.
    pub(crate) then: Vec<ShardId>,
    pub(crate) base: Version,
    /// The live lease of the same unit that it goes beside.
    pub(crate) copy_of: Option<LeaseId>,
    /// The result, on its way, that it goes on from: it can't be granted yet.
    pub(crate) after: Option<After>,
    pub(crate) why: Reason,
    /// The hop of the plan that it is.
    pub(crate) planned: Option<PlannedHop>,
}

impl Core {
    /// The unit that a slot of a host's device gets, or where it goes on with that when it has ended its own.
    pub(crate) fn choose(&mut self, host: HostId, device: &str, ahead: bool) -> Option<Chosen> {
        if self.soft.is_resting(host, self.now) {
            return None;
        }
        self.look_through_cache(host);
        let contact = self.soft.contacts.get(&host)?;
        let place = Place { host, slots: contact.devices.get(device)?, ahead };
        let mut chance = self.chance.clone();
        let mut wait: Option<u64> = None;
        let mut chosen = None;
        for job in self.by_turn() {
            if self.lost_data(job).is_some() || !self.may_employ(job, host) {
                continue;
            }
            chosen = self.extra_for(job, place);
            if chosen.is_none() && job.is_running() {
                if let Some(micros) = self.is_early(job, place) {
                    wait = Some(wait.map_or(micros, |before| before.min(micros)));
                    continue;
                }
                let evaluation = self.evaluation_for(job, place);
                let backlog = evaluation.filter(|(_, backlog)| self.is_backlog(*backlog));
                chosen = match (backlog, evaluation) {
                    (Some((unit, waiting)), _) => {
                        Some(evaluate(job.id, unit, Reason::Backlog(waiting)))
                    }
                    (None, evaluation) => match self.hop_for(job, place, &mut chance) {
                        Hop::Chosen(chosen) => Some(*chosen),
                        Hop::Wait(micros) => {
                            wait = Some(wait.map_or(micros, |before| before.min(micros)));
                            None
                        }
                        Hop::Nothing => None,
                    }
                    .or_else(|| {
                        let (unit, _) = evaluation?;
                        Some(evaluate(job.id, unit, Reason::NoHop))
                    }),
                };
            }
            if chosen.is_some() {
                break;
            }
        }
        self.chance = chance;
        if let (None, Some(micros)) = (&chosen, wait) {
            let at = self.now + Millis(micros.div_ceil(1000).max(1));
            self.soft.schedule.look_again_at(at);
        }
        chosen
    }

    /// Works out which shards of open jobs a host has, where that isn't known yet.
    fn look_through_cache(&mut self, host: HostId) {
        let Some(contact) = self.soft.contacts.get_mut(&host) else { return };
        let jobs = &self.state.jobs;
        contact.forget_jobs_but(|job| jobs.get(&job).is_some_and(Job::is_open));
        for job in jobs.values().filter(|job| job.is_open()) {
            contact.look_through(job.id, &job.data.train);
        }
    }

    /// The first evaluation outside the search that the host may do: somebody waits for it.
    fn extra_for(&self, job: &Job, place: Place<'_>) -> Option<Chosen> {
        let mut open = job.extras.iter().filter(|extra| extra.live.is_empty());
        let extra = open.find(|extra| {
            self.may_retry(None, &extra.failures, place.host)
                && job
                    .trial(extra.name.trial)
                    .is_some_and(|trial| self.has_room(place.slots, trial))
        })?;
        Some(Chosen {
            unit: UnitKey::Extra { job: job.id, name: extra.name },
            then: Vec::new(),
            base: extra.version,
            planned: None,
            copy_of: None,
            after: None,
            why: Reason::Asked(extra.name.split),
        })
    }

    /// The oldest evaluation that the host may do, and how many there are for all.
    fn evaluation_for(
        &self,
        job: &Job,
        place: Place<'_>,
    ) -> Option<((TrialId, Epoch, Version), usize)> {
        let open = job.open.evaluations();
        let count = open.len();
        let first = open.filter_map(|(epoch, trial)| {
            let known = job.trial(trial)?;
            let evaluation = known.evaluations.get(&epoch)?;
            let may = !self.state.blobs.is_lost(&evaluation.checkpoint.sha256)
                && self.may_retry(None, &evaluation.failures, place.host)
                && self.has_room(place.slots, known);
            may.then_some((trial, epoch, evaluation.version))
        });
        first.take(1).next().map(|first| (first, count))
    }

    /// A blob of the job's data, or one that its trials start from, that the store has lost.
    pub(crate) fn lost_data(&self, job: &Job) -> Option<Digest> {
        if !self.state.blobs.any_lost() {
            return None;
        }
        self.state.blobs.first_lost(job.blobs().map(|blob| blob.sha256))
    }

    /// Are these more evaluations than twice the slots in contact?
    fn is_backlog(&self, evaluations: usize) -> bool {
        let contacts = self.soft.contacts.iter();
        let mut live = contacts
            .filter(|(host, _)| self.soft.is_live(**host, self.now, self.config.lease_term));
        // A few evaluations are settled by the first few hosts.
        let enough = live.try_fold(evaluations, |left, (_, contact)| {
            let twice = usize::try_from(contact.slots).unwrap_or(usize::MAX).saturating_mul(2);
            left.checked_sub(twice).filter(|left| *left > 0)
        });
        enough.is_some()
    }
}

fn evaluate(job: JobId, (trial, epoch, base): (TrialId, Epoch, Version), why: Reason) -> Chosen {
    let unit = UnitKey::Evaluate { job, trial, epoch };
    Chosen { unit, then: Vec::new(), base, planned: None, copy_of: None, after: None, why }
}
