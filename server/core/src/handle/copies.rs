//! Second copies: a running hop for which its trial, and with it the job, waits goes to a second host, where that
//! should end it clearly sooner. The first valid result wins, the other host is told to stop.
//!
//! Only idle hosts get copies, and only while what all copies repeat stays below a share of the job's work. Hosts
//! that wait are looked at when something has changed, at most every [`EVERY`], and when a hop is due or its
//! host may have fallen silent.

use super::{
    choose::Chosen,
    fit::Place,
    hop::Hop,
    plan::visits,
    reason::{Beside, Reason, Trouble},
};
use crate::{
    core::Core,
    effect::Answer,
    schedule::{PlaceName, Ranks, takes},
    state::{Job, Lease, Trial},
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    time::{Millis, UnixMillis},
    unit::shard_index,
};
use sojourn_workgen::DataLocality;
use std::cmp::Reverse;

/// Looks are at least so far apart.
const EVERY: Millis = Millis::from_secs(1);
/// Trials of a job that are looked at: those with the most work left.
const TRIALS: usize = 8;
/// Idle hosts that are compared: the fastest.
const HOSTS: usize = 8;
/// A copy is to end sooner by a part of so many of what it takes, and by [`SOONER`].
const PART: u64 = 4;
/// Microseconds.
const SOONER: u64 = 1_000_000;
/// Hops after the one at hand with which a trial is near the end of its chain.
const NEAR_END: u64 = 1;
/// A host that breaks more deadlines, in thousandths, gets no copies.
const UNRELIABLE: u64 = 300;

/// A running hop, and when it should end.
#[derive(Debug, Clone, Copy)]
struct Running {
    lease: LeaseId,
    /// Microseconds until it should end.
    ends: u64,
    /// Microseconds by which it is late, and by which it may take longer before it is.
    late: u64,
    spread: u64,
    /// Since when its host hasn't been heard of, where that is too long; then it is lost at this time.
    silent: Option<(UnixMillis, UnixMillis)>,
    /// When its host will have been silent for too long.
    silent_at: UnixMillis,
}

/// A place that a copy may go to.
struct Candidate {
    host: HostId,
    device: String,
    /// Microseconds until it would have the result.
    takes: u64,
}

impl Core {
    /// Hosts wait, or a hop has been given out: copies may be worth while.
    pub(crate) fn look_for_copies(&mut self) {
        let some = !self.state.leases.is_empty() && self.soft.parked.any_idle();
        if self.config.most_copied > 0 && some {
            let at = self.now.max(self.soft.schedule.copies_looked + EVERY);
            self.look_for_copies_at(at);
        }
    }

    fn look_for_copies_at(&mut self, at: UnixMillis) {
        let due = &mut self.soft.schedule.copies_at;
        *due = Some(due.map_or(at, |before| before.min(at)));
    }

    /// Gives copies to hosts that wait, where it is the time to look.
    pub(crate) fn give_copies(&mut self) {
        if self.soft.schedule.copies_at.is_none_or(|at| at > self.now) {
            return;
        }
        self.soft.schedule.copies_at = None;
        self.soft.schedule.copies_looked = self.now;
        let jobs: Vec<JobId> = self.by_turn().into_iter().map(|job| job.id).collect();
        for job in jobs {
            while self.soft.parked.any_idle() {
                let (found, look_at) = self.find_copy(job);
                match found {
                    Some((place, chosen)) => self.give_copy(place, chosen),
                    None => {
                        if let Some(at) = look_at {
                            self.look_for_copies_at(at.max(self.now + EVERY));
                        }
                        break;
                    }
                }
            }
        }
    }

    fn give_copy(&mut self, Candidate { host, device, .. }: Candidate, chosen: Chosen) {
        let Some(parked) = self.soft.parked.take(host) else { return };
        let mut answer = self.work(host, &parked.request);
        if answer.leases.is_empty() {
            answer.leases.extend(self.give(host, &device, chosen));
        }
        self.reply(parked.to, Ok(Answer::Work(Box::new(answer))));
    }

    /// The first copy of a job's hops that is worth while; where there is none, when to look again.
    fn find_copy(&self, job: JobId) -> (Option<(Candidate, Chosen)>, Option<UnixMillis>) {
        let none = (None, None);
        let Some(job) = self.state.jobs.get(&job).filter(|job| job.is_open()) else { return none };
        let Some(ranks) = self.soft.schedule.ranks.get(&job.id) else { return none };
        if self.lost_data(job).is_some() {
            return none;
        }
        let mut look_at: Option<UnixMillis> = None;
        let longest = self.expected_end(ranks);
        let all = job.work();
        for (trial, work) in ranks.running().take(TRIALS) {
            let Some(trial) = job.trial(trial) else { continue };
            for running in self.run_alone(trial) {
                let Some(lease) = self.state.leases.get(&running.lease) else { continue };
                if !self.may_repeat(job, all, lease) {
                    continue;
                }
                let mut not_before = |micros: u64| {
                    let late = running.ends.saturating_add(running.spread).saturating_add(micros);
                    let at = self.now + Millis(late / 1000);
                    let at = at.min(running.silent_at);
                    look_at = Some(look_at.map_or(at, |before| before.min(at)));
                };
                if !is_near_end(job, trial, lease) {
                    let ends = self.rest(trial, lease, work).saturating_add(running.ends);
                    if ends < longest - longest / 10 {
                        not_before(longest - ends);
                        continue;
                    }
                }
                let Some(place) = self.best_place(job, trial, lease) else { continue };
                let Some(trouble) = self.worth_while(running, place.takes) else {
                    not_before(worth(place.takes));
                    continue;
                };
                return (Some((place, beside(lease, running, trouble))), None);
            }
        }
        (None, look_at)
    }

    /// Microseconds until a job could be done.
    fn expected_end(&self, ranks: &Ranks) -> u64 {
        let fleet = &self.soft.schedule.fleet;
        takes(ranks.longest(), fleet.fastest(None)).max(takes(ranks.total(), fleet.capacity()))
    }

    /// The hops for which a trial waits and that one host is at, or is about to be: those that end last come first.
    fn run_alone(&self, trial: &Trial) -> Vec<Running> {
        let mut alone: Vec<Running> =
            trial.alone().filter_map(|lease| self.running(lease)).collect();
        alone.sort_by_key(|running| (Reverse(running.ends), running.lease));
        alone
    }

    /// How a live lease's hop goes on; `None` where its result is on its way.
    fn running(&self, id: LeaseId) -> Option<Running> {
        let (lease, term) = (self.state.leases.get(&id)?, self.soft.terms.get(&id)?);
        if term.finished {
            return None;
        }
        let micros = |from: UnixMillis, to: UnixMillis| (to - from).0.saturating_mul(1000);
        let estimate = self.estimate_micros(id);
        let spread = estimate.saturating_mul(self.spread(lease)) / 1000;
        let (passed, due, spread) = if !term.started {
            // It waits for what runs before it, and for its bytes.
            let due = estimate.saturating_add(self.before(lease.id));
            (micros(lease.granted_at, self.now), due, spread)
        } else if let Some((so_far, gained)) = term.pace() {
            let takes =
                |batches: u32| so_far.saturating_mul(u64::from(batches)) / u64::from(gained);
            let (due, before) = (takes(term.of), takes(term.first));
            (micros(term.since, self.now).saturating_add(before), due, spread.min(due / PART))
        } else {
            (micros(term.since, self.now), estimate, spread)
        };
        // What is late beyond its spread may take as long again as it is late by now.
        let late = passed.saturating_sub(due.saturating_add(spread));
        let mut left = due.saturating_sub(passed).max(late);
        let seen = self.soft.contacts.get(&lease.host).map_or(UnixMillis(0), |of| of.seen_at);
        let seen = if self.soft.parked.waits(lease.host) { self.now } else { seen };
        let (beats, whole) = (self.config.heartbeat_every.0, self.config.lease_term.0);
        let silent_at = seen + Millis((beats.saturating_mul(5) / 2).min(whole - whole / 4));
        let silent = (silent_at <= self.now).then_some((seen, term.renew_by));
        if silent.is_some() {
            // It begins anew when the lease has run out.
            left = left.max(micros(self.now, term.renew_by).saturating_add(estimate));
        }
        Some(Running {
            lease: id,
            ends: left.saturating_mul(1000) / self.reliability(lease.host).max(1),
            late,
            spread,
            silent,
            silent_at,
        })
    }

    /// Microseconds that a trial will take after a lease's hops, on the fastest places.
    fn rest(&self, trial: &Trial, lease: &Lease, work: u64) -> u64 {
        let batches = visits(lease).map(|shard| u64::from(trial.chain.left_of(shard))).sum::<u64>();
        let left = trial.chain.left();
        let after = u128::from(left.saturating_sub(batches));
        let rest = u128::from(work) * after / u128::from(left.max(1));
        let rest = u64::try_from(rest).unwrap_or(u64::MAX);
        takes(rest, self.soft.schedule.fleet.fastest(None))
    }

    /// Is there so much left of the share of all of a job's work that may be done twice?
    fn may_repeat(&self, job: &Job, all: u64, lease: &Lease) -> bool {
        let all = u128::from(all) * u128::from(self.config.most_copied);
        let copied = job.counters.copied.saturating_add(job.work_of(lease));
        u128::from(copied) * 100 <= all
    }

    /// What makes a copy that takes so long worth while, if anything.
    fn worth_while(&self, running: Running, takes: u64) -> Option<Trouble> {
        if let Some((seen, lost_at)) = running.silent {
            let until = (lost_at - self.now).0.saturating_mul(1000);
            let silent = (self.now - seen).0.saturating_mul(1000);
            return (until > SOONER).then_some(Trouble::Silent(silent));
        }
        let trouble = if running.late > 0 { Trouble::Late(running.late) } else { Trouble::Slow };
        (worth(takes) < running.ends).then_some(trouble)
    }

    /// The idle place that should have the result first.
    fn best_place(&self, job: &Job, trial: &Trial, lease: &Lease) -> Option<Candidate> {
        let check = trial.check_of(lease);
        let idle = self.soft.parked.fastest().filter(|host| {
            *host != lease.host
                && check.is_none_or(|check| self.may_witness(check, *host))
                && self.reliability(*host) >= 1000 - UNRELIABLE
                && !self.soft.is_resting(*host, self.now)
                && self.may_employ(job, *host)
        });
        let idle = idle.take(HOSTS).flat_map(|host| {
            let demand = self.soft.parked.demand(host).iter().filter(|demand| demand.idle > 0);
            demand.map(move |demand| (host, demand.device.as_str()))
        });
        let places = idle.filter_map(|(host, device)| {
            let slots = self.soft.contacts.get(&host)?.devices.get(device)?;
            let place = Place { host, slots, ahead: false };
            let kept = job.spec.placement.reproducible.then_some(lease.class);
            let fits = kept.is_none_or(|class| class == Some(place.class()))
                && self.may_train(job, trial, place)
                && self.has_room(slots, trial)
                && !matches!(self.planned_for(job, place), Some(Hop::Chosen(_) | Hop::Wait(_)));
            let takes = fits.then(|| self.copy_takes(job, trial, lease, place)).flatten()?;
            Some(Candidate { host, device: device.to_owned(), takes })
        });
        places.min_by_key(|place| place.takes)
    }

    /// Microseconds until a place would have a copy's result at the server; `None` where it isn't home to all
    /// its shards.
    fn copy_takes(&self, job: &Job, trial: &Trial, lease: &Lease, place: Place<'_>) -> Option<u64> {
        let device = &place.slots.device;
        let name = PlaceName { host: place.host, device: &device.name, flops: device.flops };
        let mut bytes = 0;
        let shelf = self.shelf(job, place);
        for shard in visits(lease) {
            match shelf.standing(shard) {
                DataLocality::Local => {}
                DataLocality::Remote => {
                    let shard = job.data.train.get(shard_index(shard));
                    bytes += shard.map_or(0, |shard| shard.blob.bytes);
                }
                DataLocality::Excluded => return None,
            }
        }
        let trained = self.unit_micros(name, lease.unit, &lease.then);
        let moves = self.moves_of(trial, place.host);
        let trained = trained.saturating_mul(1000) / self.reliability(place.host).max(1);
        let moved = moves.fetch.saturating_add(moves.send);
        Some(trained.saturating_add(moved).saturating_add(self.fetching(place.host, bytes)))
    }
}

/// A second attempt at a lease's hop, from the same version.
fn beside(lease: &Lease, running: Running, trouble: Trouble) -> Chosen {
    let beside = Beside { lease: lease.id, host: lease.host, ends: running.ends, trouble };
    Chosen {
        unit: lease.unit,
        then: lease.then.clone(),
        until: lease.until,
        base: lease.base,
        why: Reason::Copy(beside),
        planned: None,
        copy_of: Some(lease.id),
        after: None,
    }
}

/// Are no more than [`NEAR_END`] hops to come after a lease's? Where results are merged, the trial's other shards wait
/// for its epoch's last.
fn is_near_end(job: &Job, trial: &Trial, lease: &Lease) -> bool {
    if trial.merging.is_some() {
        return true;
    }
    let all = u64::from(trial.epochs()) * u64::try_from(job.data.train.len()).unwrap_or(0);
    let at_hand = u64::try_from(lease.then.len() + 1).unwrap_or(u64::MAX);
    all.saturating_sub(trial.chain.hops()).saturating_sub(at_hand) <= NEAR_END
}

/// Microseconds that the first attempt must still take for a copy that takes so long.
const fn worth(takes: u64) -> u64 {
    takes.saturating_add(takes / PART).saturating_add(SOONER)
}
