//! Which unit a slot gets: jobs by their turn, hops by the policy, evaluations where they fit.

use super::{fit::Place, promise::After, reason::Reason};
use crate::{
    core::Core,
    event::UnitKey,
    handle::hop::Hop,
    schedule::{PlannedHop, Planning},
    state::Job,
};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, LeaseId, ShardId, Version},
    time::Millis,
};

/// A unit that was chosen for a host.
pub(crate) struct Chosen {
    pub(crate) unit: UnitKey,
    /// Shards whose hops follow under the same lease.
    pub(crate) then: Vec<ShardId>,
    /// The batch of the last shard before which it ends, where that isn't the shard's end.
    pub(crate) until: Option<u32>,
    pub(crate) base: Version,
    /// The live lease of the same unit that it goes beside.
    pub(crate) copy_of: Option<LeaseId>,
    /// The result, on its way, that it goes on from: it can't be granted yet.
    pub(crate) after: Option<After>,
    pub(crate) why: Reason,
    /// The hop of the plan that it is.
    pub(crate) planned: Option<PlannedHop>,
}

/// What a place had better leave to others for a while.
#[derive(Debug, Default)]
pub(super) struct LeftUndone {
    /// Microseconds after which to look again.
    wait: Option<u64>,
    /// Evaluations that are left to who made their checkpoints.
    to_makers: Vec<UnitKey>,
}

impl LeftUndone {
    fn wait(&mut self, micros: u64) {
        self.wait = Some(self.wait.map_or(micros, |before| before.min(micros)));
    }

    /// An evaluation is left to who made its checkpoint, for so many microseconds.
    pub(super) fn leave_to_maker(&mut self, unit: UnitKey, micros: u64) {
        self.wait(micros);
        self.to_makers.push(unit);
    }
}

impl Core {
    /// The unit that a slot of a host's device gets, or where it goes on with that when it has ended its own.
    pub(crate) fn choose(&mut self, host: HostId, device: &str, ahead: bool) -> Option<Chosen> {
        if self.soft.is_resting(host, self.now) {
            return None;
        }
        let mut plans = self.soft.schedule.plans.values();
        if self.supply() == 0 && !plans.any(Planning::is_followed) {
            // Nothing is open, and no plan has a host go on with what is to be.
            return None;
        }
        self.look_through_cache(host);
        let contact = self.soft.contacts.get(&host)?;
        let place = Place { host, slots: contact.devices.get(device)?, ahead };
        let mut chance = self.chance.clone();
        let mut left = LeftUndone::default();
        let mut chosen = None;
        for job in self.by_turn() {
            if self.lost_data(job).is_some() || !self.may_employ(job, host) {
                continue;
            }
            chosen = self.extra_for(job, place, &mut left);
            if chosen.is_none() && job.is_running() {
                if let Some(micros) = self.is_early(job, place) {
                    left.wait(micros);
                    continue;
                }
                chosen = self
                    .check_for(job, place)
                    .or_else(|| self.backlog_for(job, place))
                    .or_else(|| match self.hop_for(job, place, &mut chance) {
                        Hop::Chosen(chosen) => Some(*chosen),
                        Hop::Wait(micros) => {
                            left.wait(micros);
                            None
                        }
                        Hop::Nothing => None,
                    })
                    .or_else(|| self.evaluation_for(job, place, &mut left));
            }
            if chosen.is_some() {
                break;
            }
        }
        self.chance = chance;
        if let (None, Some(micros)) = (&chosen, left.wait) {
            let at = self.now + Millis(micros.div_ceil(1000).max(1));
            self.soft.schedule.look_again.at(at, host);
        }
        for unit in left.to_makers {
            self.is_left_to_maker(unit);
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

    /// A blob of the job's data, or one that its trials start from, that the store has lost.
    pub(crate) fn lost_data(&self, job: &Job) -> Option<Digest> {
        if !self.state.blobs.any_lost() {
            return None;
        }
        self.state.blobs.first_lost(job.blobs().map(|blob| blob.sha256))
    }
}
