//! Plans: when one is asked for, and what it says of an idle place.

use super::{
    choose::Chosen,
    fit::Place,
    hop::Hop,
    legs::legs,
    problem::left_to_train,
    promise::{After, Continued},
    reason::{Planned, Reason},
    shelf::Shelf,
};
use crate::{
    core::Core,
    effect::Effect,
    event::UnitKey,
    schedule::{Advice, Asked, HopStatus, PlannedHop, Planning},
    state::{Job, Lease, Trial},
};
use sojourn_protocol::{
    ids::{HostId, JobId, ShardId},
    seeds,
    time::{Millis, UnixMillis},
};
use sojourn_workgen::{Chain, DataLocality, plan::Schedule};
use std::sync::Arc;

/// A job's plans are at least so far apart.
const EVERY: Millis = Millis::from_secs(1);
/// So long places wait for a job's first plan.
const PATIENCE: Millis = Millis::from_secs(1);
/// So long an idle place waits for a plan that knows of it.
const RENEWAL: Millis = Millis::from_secs(2);
/// Forward simulations of one plan, times hops.
const EFFORT: u64 = 1 << 19;
/// The fewest and the most forward simulations.
const ITERATIONS: std::ops::RangeInclusive<u64> = 16..=4_000;

impl Core {
    /// Asks for plans that are due.
    pub(crate) fn renew_plans(&mut self) {
        if !self.config.policy.plans() {
            return;
        }
        let jobs = &self.state.jobs;
        let schedule = &mut self.soft.schedule;
        schedule.share(|job| jobs.get(&job).is_some_and(Job::is_open));
        let fleet = schedule.version();
        let ranks = &schedule.ranks;
        schedule.plans.retain(|job, _| ranks.contains_key(job));
        let mut due = Vec::new();
        for job in ranks.keys() {
            let planning = schedule.plans.entry(*job).or_default();
            planning.for_fleet(fleet);
            if planning.is_due(self.now, EVERY) {
                due.push(*job);
            }
        }
        for job in due {
            self.ask_for_plan(job);
        }
    }

    /// When the next plan is due, that somebody could follow.
    pub(crate) fn next_plan(&self) -> Option<UnixMillis> {
        let plans = self.soft.schedule.plans.iter();
        let due = plans.filter_map(|(job, planning)| Some((job, planning.due_at(EVERY)?)));
        due.filter(|(job, _)| self.can_be_planned(**job)).map(|(_, at)| at).min()
    }

    fn can_be_planned(&self, job: JobId) -> bool {
        let open = self.state.jobs.get(&job).is_some_and(Job::is_open);
        open && self.soft.schedule.fleet.capacity() > 0
    }

    fn ask_for_plan(&mut self, id: JobId) {
        if !self.can_be_planned(id) {
            return;
        }
        let made = self.state.jobs.get(&id).and_then(|job| self.problem_of(job));
        let seed = u64::from(seeds::below(&mut self.chance, u32::MAX));
        let fleet = self.soft.schedule.version();
        let Some(planning) = self.soft.schedule.plans.get_mut(&id) else { return };
        let Some((problem, asked)) = made else {
            // There will be none for this fleet.
            let nothing = Asked {
                at: self.now,
                fleet,
                roams: false,
                trials: Vec::new(),
                places: Vec::new(),
                crowds: Vec::new(),
            };
            let version = planning.ask(nothing);
            planning.ready(version, &Schedule::default());
            return;
        };
        let iterations = EFFORT / problem.hops().max(1);
        let iterations = iterations.clamp(*ITERATIONS.start(), *ITERATIONS.end());
        let version = planning.ask(asked);
        let problem = Box::new(problem);
        self.effect(Effect::Plan { job: id, version, problem, seed, iterations });
    }

    pub(crate) fn plan_ready(&mut self, job: JobId, version: u64, schedule: Option<&Schedule>) {
        let plans = &mut self.soft.schedule.plans;
        let Some(planning) = plans.get_mut(&job) else { return };
        let is_first = !planning.is_followed();
        if planning.ready(version, schedule.unwrap_or(&Schedule::default())) {
            self.soft.work_changed = true;
            // Others were planned as if this job had nothing to do.
            let others = plans.iter_mut().filter(|(other, _)| is_first && **other != job);
            others.for_each(|(_, planning)| planning.outdated());
        }
    }

    /// What a job's plan has for a place; `None` where it says nothing.
    pub(crate) fn planned_for(&self, job: &Job, place: Place<'_>) -> Option<Hop> {
        let planning = self.soft.schedule.plans.get(&job.id)?;
        let device = &place.slots.device.name;
        let standing = |hop: &PlannedHop| self.planned_standing(job, hop, place);
        let wait = |until: UnixMillis| Hop::Wait((until - self.now).0.saturating_mul(1000));
        match planning.advise((place.host, device), self.now, standing) {
            Advice::Take(hop, further) => {
                let trial = job.trial(hop.trial)?;
                let goes_on = if trial.merging.is_none() && trial.is_runnable() {
                    Continued { chain: trial.chain.clone(), after: None }
                } else {
                    self.goes_on_at(trial, place)?
                };
                let chain = &goes_on.chain;
                let shelf = self.shelf(job, place);
                let shard = self.planned_shard(job, chain, &hop, &shelf);
                let start = chain.next(shard)?;
                let unit = UnitKey::Train {
                    job: job.id,
                    trial: hop.trial,
                    epoch: start.epoch,
                    shard,
                    from: start.batch,
                };
                let now = self.now.0.saturating_mul(1000);
                let why = Reason::Planned(Planned {
                    step: hop.step,
                    steps: planning.steps(),
                    late: now.saturating_sub(hop.start),
                    early: hop.start.saturating_sub(now),
                    standing: shelf.standing(shard),
                });
                let most = self.hops_worth(job, trial, shard, place).min(further + 1);
                let then = legs(chain, shard, |shard| shelf.standing(shard), most);
                let after = goes_on.after.map(|(lease, made)| After { lease, made, start });
                let planned = Some(hop);
                let base = if after.is_some() { trial.version.next() } else { trial.version };
                let (until, copy_of) = (None, None);
                let chosen = Chosen { unit, then, until, base, why, planned, copy_of, after };
                Some(Hop::Chosen(Box::new(chosen)))
            }
            Advice::GoesOn => Some(Hop::Nothing),
            Advice::Wait(until) => Some(wait(until)),
            Advice::Nothing => {
                let idle_since = self.soft.contacts.get(&place.host)?.idle_since;
                let renewed = || planning.renewed_until(idle_since?, self.now, RENEWAL);
                planning.awaited_until(self.now, PATIENCE).or_else(renewed).map(wait)
            }
        }
    }

    /// The shard to begin with: the planned one, or where any may be trained here, one that needn't be fetched.
    fn planned_shard(
        &self,
        job: &Job,
        chain: &Chain,
        hop: &PlannedHop,
        shelf: &Shelf<'_>,
    ) -> ShardId {
        let is_cached = |shard: &ShardId| shelf.standing(*shard) == DataLocality::Local;
        if self.has_homes(job) || is_cached(&hop.shard) {
            return hop.shard;
        }
        chain.open().find(is_cached).unwrap_or(hop.shard)
    }

    /// A lease was granted, by the plan or without it.
    pub(crate) fn granted_by_plan(&mut self, lease: &Lease, planned: Option<PlannedHop>) {
        let UnitKey::Train { job, trial, .. } = lease.unit else { return };
        let Some(mut planning) = self.soft.schedule.plans.remove(&job) else { return };
        // A shard that has homes is trained there alone: places can't exchange it.
        let is_free = !self.soft.schedule.homes.contains_key(&job);
        match planned {
            Some(hop) => {
                if is_free {
                    planning.exchange(&lease.device, &hop, visits(lease));
                }
                planning.granted(&hop, self.now);
            }
            None if planning.is_followed() => planning.outdated(),
            None => {}
        }
        if let Some(known) = self.state.jobs.get(&job)
            && let Some(contact) = self.soft.contacts.get(&lease.host)
            && let Some(slots) = contact.devices.get(&lease.device)
        {
            let place = Place { host: lease.host, slots, ahead: false };
            let standing = |hop: &PlannedHop| self.planned_standing(known, hop, place);
            planning.clear((lease.host, &lease.device), trial, standing);
        }
        self.soft.schedule.plans.insert(job, planning);
    }

    /// A lease has ended without a result: the plan counted on it.
    pub(crate) fn plan_outdated(&mut self, job: JobId) {
        if let Some(planning) = self.soft.schedule.plans.get_mut(&job) {
            planning.outdated();
        }
    }

    /// What all plans rest on has changed.
    pub(crate) fn plans_outdated(&mut self) {
        self.soft.schedule.plans.values_mut().for_each(Planning::outdated);
    }

    /// A place is idle that wasn't.
    pub(crate) fn plans_go_on(&mut self) {
        self.soft.schedule.plans.values_mut().for_each(Planning::goes_on);
    }

    /// Does a plan say who trains which of a job's trials?
    pub(crate) fn is_planned(&self, job: JobId) -> bool {
        self.soft.schedule.plans.get(&job).is_some_and(Planning::keeps_places)
    }

    /// The host that a trial's plan names next.
    pub(crate) fn planned_host(&self, job: &Job, trial: &Trial) -> Option<HostId> {
        let planning = self.soft.schedule.plans.get(&job.id)?;
        let standing = |hop: &PlannedHop| {
            if self.is_over(trial, hop) { HopStatus::Over } else { HopStatus::Later }
        };
        planning.next_host(trial.id, standing)
    }

    /// Is a planned hop trained, under way, or of a trial that goes on no more?
    fn is_over(&self, trial: &Trial, hop: &PlannedHop) -> bool {
        let at = trial.chain.epoch();
        let past = !left_to_train(trial) || at > hop.epoch;
        let done = || trial.chain.next(hop.shard).is_none() || self.is_in_hand(trial, hop.shard);
        past || (at == hop.epoch && done()) || self.is_told(trial, hop)
    }

    /// Has a host been promised it?
    fn is_told(&self, trial: &Trial, hop: &PlannedHop) -> bool {
        self.promised(trial).is_some_and(|promise| {
            promise.start.epoch == hop.epoch && visits(&promise.lease).any(|of| of == hop.shard)
        })
    }

    fn planned_standing(&self, job: &Job, hop: &PlannedHop, place: Place<'_>) -> HopStatus {
        let Some(trial) = job.trial(hop.trial) else { return HopStatus::Over };
        if self.is_over(trial, hop) {
            return HopStatus::Over;
        }
        let may = self.may_train(job, trial, place)
            && self.has_room(place.slots, trial)
            && self.is_home(job, place.class(), hop.shard, place.host);
        if trial.is_runnable() {
            let open = may && trial.chain.epoch() == hop.epoch;
            return if open { HopStatus::Open } else { HopStatus::Later };
        }
        // Where a checkpoint's way takes no time, nothing is gained by it.
        let goes_on = Some(trial).filter(|_| self.is_planned(job.id));
        let goes_on = goes_on.and_then(|trial| self.goes_on_at(trial, place)).filter(|goes_on| {
            let chain = &goes_on.chain;
            may && chain.epoch() == hop.epoch && chain.next(hop.shard).is_some()
        });
        match goes_on {
            Some(Continued { after: Some(_), .. }) if !place.ahead => HopStatus::Open,
            Some(_) if place.ahead => HopStatus::GoesOn,
            Some(_) | None => HopStatus::Later,
        }
    }

    /// Does somebody train the trial on that shard, or wait for the result to be taken in?
    fn is_in_hand(&self, trial: &Trial, shard: ShardId) -> bool {
        self.in_hand(trial).any(|lease| visits(lease).any(|other| other == shard))
    }

    /// Leases of a trial's next hop, live ones and those whose results wait.
    pub(crate) fn in_hand<'a>(&'a self, trial: &'a Trial) -> impl Iterator<Item = &'a Arc<Lease>> {
        trial.in_hand().filter_map(|lease| self.state.lease(lease))
    }
}

/// The shards that a lease visits.
pub(crate) fn visits(lease: &Lease) -> impl Iterator<Item = ShardId> + '_ {
    let first = match lease.unit {
        UnitKey::Train { shard, .. } => Some(shard),
        UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
    };
    first.into_iter().chain(lease.then.iter().copied())
}
