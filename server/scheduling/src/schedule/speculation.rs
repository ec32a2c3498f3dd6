//! Speculative leases: a hop for which its trial, and with it the job, waits is given to a second host, where that should
//! bring its result clearly sooner. The first valid result wins, and the other host is told to stop. The time of a hop is that
//! until its result is at the server: one that is uploaded over a slow line holds its trial up like one that is trained slowly.
//!
//! As a rule only idle hosts get speculative leases. A hop by which the job would end later is a straggler: its second lease
//! goes to the next host that asks and could be sooner, though there are other hops for that host (as in LATE, Zaharia et al.,
//! "Improving MapReduce Performance in Heterogeneous Environments", OSDI 2008). The work that is done twice stays below a part
//! of the job's.
//!
//! Hosts that wait are looked at when something has changed, and when a hop is due or its host may have fallen silent.

use super::{
    assignment::Assignment,
    explain::{GrantReason, Speculation, Straggler},
    hops::HopPick,
    scheduler::Scheduler,
    verifiers::Verifiers,
};
use crate::hosts::{DeviceRef, training_time};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    quantity::mul_div,
    time::{Millis, UnixMillis},
    unit::shard_index,
};
use sojourn_state::{Job, Lease, Trial};
use sojourn_workgen::DataLocality;
use std::cmp::Reverse;

/// Trials of a job that are looked at: those with the most work left.
const MAX_TRIALS: usize = 8;
/// Idle hosts that are compared: the fastest.
const MAX_HOSTS: usize = 8;
/// A speculative lease is to end sooner by this part of its own time, and by [`MIN_GAIN`].
const GAIN_PART: u64 = 4;
/// Microseconds by which a speculative lease is to end sooner.
const MIN_GAIN: u64 = 1_000_000;
/// A trial is near the end of its chain when no more hops than this follow.
const NEAR_END_HOPS: u64 = 1;
/// A host that breaks more deadlines, in thousandths, gets no speculative leases.
const MAX_UNRELIABILITY: u64 = 300;

/// A hop whose result isn't at the server, and when it should be.
#[derive(Debug, Clone, Copy)]
struct RunningHop {
    lease: LeaseId,
    /// Microseconds until its result should be at the server.
    ends: u64,
    /// Microseconds by which it is late, and by which it may take longer before it is.
    late: u64,
    spread: u64,
    /// The hop's host hasn't begun, and still fetches the bytes.
    is_fetching: bool,
    /// Since when its host hasn't been heard of, where that is too long; then it is lost at this time.
    silent: Option<(UnixMillis, UnixMillis)>,
    /// When its host will have been silent for too long.
    silent_at: UnixMillis,
}

/// A hop that only one host has.
struct SlowHop<'a> {
    job: &'a Job,
    trial: &'a Trial,
    lease: &'a Lease,
    running: RunningHop,
    /// Microseconds that its trial takes after it.
    after: u64,
    /// Microseconds until the job is expected to be done.
    longest: u64,
}

impl SlowHop<'_> {
    /// Microseconds until its trial ends.
    fn ends(&self) -> u64 {
        self.after.saturating_add(self.running.ends)
    }
}

/// When to look again.
#[derive(Default)]
struct LookAt(Option<UnixMillis>);

impl LookAt {
    /// So many microseconds after a hop is late, or when its host will have been silent for too long.
    fn after(&mut self, now: UnixMillis, running: &RunningHop, micros: u64) {
        let late = running.ends.saturating_add(running.spread).saturating_add(micros);
        let at = (now + Millis(late / 1000)).min(running.silent_at);
        self.0 = Some(self.0.map_or(at, |before| before.min(at)));
    }
}

/// A device that a speculative lease may go to.
pub struct SpeculationTarget {
    /// The host.
    pub host: HostId,
    /// The name of its device.
    pub device: String,
    /// Microseconds until it would have the result.
    takes: u64,
}

/// The decision about a job's slow hops.
pub enum Speculate {
    /// This is granted.
    Grant(SpeculationTarget, Box<Assignment>),
    /// Nothing now. When to look again, if at all.
    Later(Option<UnixMillis>),
}

impl Scheduler<'_> {
    /// The first speculative lease of a job's hops that is worth while for an idle host; where there is none, when to look
    /// again.
    pub fn find_speculation(&self, job: JobId) -> Speculate {
        let mut look_at = LookAt::default();
        for SlowHop { job, trial, lease, running, after, longest } in self.slow_hops(job) {
            if !is_near_end(trial, lease) {
                let ends = after.saturating_add(running.ends);
                if ends < longest - longest / 10 {
                    look_at.after(self.now, &running, longest - ends);
                    continue;
                }
            }
            let Some(target) = self.best_target(job, trial, lease) else { continue };
            let Some(straggler) = self.worth_while(running, target.takes) else {
                look_at.after(self.now, &running, worth(target.takes));
                continue;
            };
            let assignment = Box::new(for_lease(lease, running, straggler));
            return Speculate::Grant(target, assignment);
        }
        Speculate::Later(look_at.0)
    }

    /// The straggler of a job: of the hops by which it would end later than its other trials, the one whose trial would end last.
    /// And when to look again, if at all.
    pub fn straggler(&self, job: JobId) -> (Option<LeaseId>, Option<UnixMillis>) {
        let mut look_at = LookAt::default();
        let mut last: Option<(u64, LeaseId)> = None;
        for slow in self.slow_hops(job) {
            let (ends, others) = (slow.ends(), self.others_end(&slow));
            if ends <= others.saturating_add(MIN_GAIN) {
                look_at.after(self.now, &slow.running, others - ends.min(others));
            } else if last.is_none_or(|(latest, _)| ends > latest) {
                last = Some((ends, slow.lease.id));
            }
        }
        (last.map(|(_, lease)| lease), look_at.0)
    }

    /// The second lease of a job's straggler that is worth while on a device which asks for work.
    pub(super) fn second_lease_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<Assignment> {
        let straggler = self.planner.straggler(job.id)?;
        let slow = self.slow_hops(job.id).into_iter().find(|slow| slow.lease.id == straggler)?;
        let holds_up = slow.ends() > self.others_end(&slow);
        let SlowHop { trial, lease, running, .. } = slow;
        if !holds_up || !self.may_take_over(job, lease, at.host) {
            return None;
        }
        let device = (at.host, at.slots.device.name.as_str());
        let priority = job.spec.placement.priority;
        let free = match at.ahead {
            true => self.occupancy.slots_free_at(device, at.slots.count, priority),
            false => Vec::new(),
        };
        let takes = self.takes_on(job, trial, lease, at)?;
        let takes = takes.saturating_add(free.into_iter().min().unwrap_or(0));
        let straggler = self.worth_while(running, takes)?;
        Some(for_lease(lease, running, straggler))
    }

    /// Microseconds until the job's other trials are expected to end: all that remains on all devices, or by the job's plan.
    fn others_end(&self, slow: &SlowHop<'_>) -> u64 {
        let planned = self.planner.plan(slow.job.id).map_or(0, |of| of.ends_beside(slow.trial.id));
        slow.longest.max(planned.saturating_sub(self.now.0.saturating_mul(1000)))
    }

    /// The hops of a job that only one host has, for which their trials wait, of the trials with the most work left; none that
    /// may not be repeated.
    fn slow_hops(&self, job: JobId) -> Vec<SlowHop<'_>> {
        let job = self.state.jobs.get(&job).filter(|job| job.is_open());
        let job = job.filter(|job| self.state.lost_data(job).is_none());
        let remaining = job.and_then(|job| self.index.remaining(job.id));
        let (Some(job), Some(remaining)) = (job, remaining) else { return Vec::new() };
        let longest = self.hosts.fleet().time_for(remaining.total(), remaining.longest());
        let all = job.work();
        let mut slow = Vec::new();
        for (trial, work) in remaining.running().take(MAX_TRIALS) {
            let Some(trial) = job.trial(trial) else { continue };
            for running in self.sole_attempts(trial) {
                let Some(lease) = self.state.leases.get(&running.lease) else { continue };
                if self.may_repeat(job, all, lease, running) {
                    let after = self.time_after(trial, lease, work);
                    slow.push(SlowHop { job, trial, lease, running, after, longest });
                }
            }
        }
        slow
    }

    /// The hops for which a trial waits and which only one host trains: those that end last come first.
    fn sole_attempts(&self, trial: &Trial) -> Vec<RunningHop> {
        let mut alone: Vec<RunningHop> =
            trial.alone().filter_map(|lease| self.running_hop(trial, lease)).collect();
        alone.sort_by_key(|running| (Reverse(running.ends), running.lease));
        alone
    }

    /// How far a live lease's hop is.
    fn running_hop(&self, trial: &Trial, id: LeaseId) -> Option<RunningHop> {
        let (lease, deadline) = (self.state.leases.get(&id)?, self.leases.deadline(id)?);
        let micros = |from: UnixMillis, to: UnixMillis| (to - from).0.saturating_mul(1000);
        let transfer = self.cost.transfer_time(trial, lease.host);
        let send = if transfer.is_negligible() { 0 } else { transfer.send };
        let estimate = self.cost.lease_time(id);
        let spread = estimate.saturating_mul(self.cost.spread(lease)) / 1000;
        let is_fetching =
            !deadline.started && !deadline.is_finished() && self.occupancy.fetched_in(id) > 0;
        let (passed, due, spread) = if let Some(since) = deadline.finished_at {
            (micros(since, self.now), send, send / GAIN_PART)
        } else if is_fetching {
            // It waits for its bytes.
            (0, estimate.saturating_add(self.occupancy.begins_in(id)), spread)
        } else if !deadline.started {
            // It waits for the units before it.
            let due = estimate.saturating_add(self.occupancy.queue_time(lease.id));
            (micros(lease.granted_at, self.now), due, spread)
        } else if let Some((so_far, gained)) = deadline.pace() {
            let takes_for =
                |batches: u32| so_far.saturating_mul(u64::from(batches)) / u64::from(gained);
            let (due, before) = (takes_for(deadline.of), takes_for(deadline.first));
            (
                micros(deadline.since, self.now).saturating_add(before),
                due,
                spread.min(due / GAIN_PART),
            )
        } else {
            (micros(deadline.since, self.now), estimate, spread)
        };
        // A hop that is later than its estimate's spread is assumed to need the same delay once more.
        let late = passed.saturating_sub(due.saturating_add(spread));
        let mut remaining = due.saturating_sub(passed).max(late);
        remaining = match deadline.is_finished() {
            true if send > 0 => self.occupancy.sent_in(id),
            true => remaining,
            false => {
                let line = if send > 0 { self.occupancy.line_free_in(lease.host) } else { 0 };
                remaining.max(line).saturating_add(send)
            }
        };
        let seen = self.hosts.session(lease.host).map_or(UnixMillis(0), |of| of.seen_at);
        let seen = if self.waiters.waits(lease.host) { self.now } else { seen };
        let (beats, whole) = (self.config.heartbeat_every.0, self.config.lease_term.0);
        let silent_at = seen + Millis((beats.saturating_mul(5) / 2).min(whole - whole / 4));
        let silent = (silent_at <= self.now).then_some((seen, deadline.renew_by));
        if silent.is_some() {
            // It starts again when the lease has run out.
            let again = estimate.saturating_add(send);
            remaining = remaining.max(micros(self.now, deadline.renew_by).saturating_add(again));
        }
        Some(RunningHop {
            lease: id,
            ends: remaining.saturating_mul(1000) / self.cost.reliability(lease.host).max(1),
            late,
            spread,
            is_fetching,
            silent,
            silent_at,
        })
    }

    /// Microseconds that a trial will take after a lease's hops, on the fastest device.
    fn time_after(&self, trial: &Trial, lease: &Lease, work: u64) -> u64 {
        let batches =
            lease.visits().map(|shard| u64::from(trial.chain.remaining_in(shard))).sum::<u64>();
        let remaining = trial.chain.remaining();
        let rest = mul_div(work, remaining.saturating_sub(batches), remaining.max(1));
        training_time(rest, self.hosts.fleet().fastest(None))
    }

    /// May this hop be done twice, within the share of the job's work that may be? Of one that hasn't begun nothing is.
    fn may_repeat(&self, job: &Job, all: u64, lease: &Lease, running: RunningHop) -> bool {
        if running.is_fetching && self.config.most_copied > 0 {
            return true;
        }
        let all = u128::from(all) * u128::from(self.config.most_copied);
        let copied = job.counters.speculative_work.saturating_add(job.work_of(lease));
        u128::from(copied) * 100 <= all
    }

    /// Why a speculative lease that takes so long is worth while; `None` where it is not.
    fn worth_while(&self, running: RunningHop, takes: u64) -> Option<Straggler> {
        if let Some((seen, lost_at)) = running.silent {
            let until = (lost_at - self.now).0.saturating_mul(1000);
            let silent = (self.now - seen).0.saturating_mul(1000);
            return (until > MIN_GAIN).then_some(Straggler::Silent(silent));
        }
        let straggler =
            if running.late > 0 { Straggler::Late(running.late) } else { Straggler::Slow };
        (worth(takes) < running.ends).then_some(straggler)
    }

    /// The idle device that should have the result first.
    fn best_target(&self, job: &Job, trial: &Trial, lease: &Lease) -> Option<SpeculationTarget> {
        let idle = self.waiters.polls().fastest();
        let idle = idle.filter(|host| self.may_take_over(job, lease, *host));
        let idle = idle.take(MAX_HOSTS).flat_map(|host| {
            let demand = self.waiters.polls().demand(host).iter().filter(|demand| demand.idle > 0);
            demand.map(move |demand| (host, demand.device.as_str()))
        });
        let targets = idle.filter_map(|(host, device)| {
            let slots = self.hosts.session(host)?.devices.get(device)?;
            let at = DeviceRef { host, slots, ahead: false };
            let planned = self.planned_for(job, at);
            if matches!(planned, Some(HopPick::Assign(_) | HopPick::Expect(_))) {
                return None;
            }
            let takes = self.takes_on(job, trial, lease, at)?;
            Some(SpeculationTarget { host, device: device.to_owned(), takes })
        });
        targets.min_by_key(|target| target.takes)
    }

    /// May a host be given the hop of another one's lease, for a second time?
    fn may_take_over(&self, job: &Job, lease: &Lease, host: HostId) -> bool {
        let verification = job.verification_of(&lease.unit);
        host != lease.host
            && verification.is_none_or(|verification| {
                Verifiers::of(&self.eligible).may_verify(verification, host)
            })
            && self.cost.reliability(host) >= 1000 - MAX_UNRELIABILITY
            && !self.hosts.is_cooling_down(host, self.now)
            && self.state.admits_host(job, host)
    }

    /// As [`Self::speculation_time`], where the device may train the hop in the lease's numeric class.
    fn takes_on(&self, job: &Job, trial: &Trial, lease: &Lease, at: DeviceRef<'_>) -> Option<u64> {
        let kept = job.spec.placement.reproducible.then_some(lease.class);
        let fits = kept
            .is_none_or(|class| class.is_some_and(|class| at.slots.classes.offers(class)))
            && self.eligible.may_train(job, trial, at)
            && self.eligible.is_capable(at.slots, trial);
        fits.then(|| self.speculation_time(job, trial, lease, at)).flatten()
    }

    /// Microseconds until the result of a speculative lease would be at the server; `None` where the device may not have
    /// all its shards.
    fn speculation_time(
        &self,
        job: &Job,
        trial: &Trial,
        lease: &Lease,
        at: DeviceRef<'_>,
    ) -> Option<u64> {
        let kept = lease.class.filter(|_| job.spec.placement.reproducible);
        let name = at.key(kept.unwrap_or_else(|| self.cost.class_for(job, &at.slots.classes)));
        let mut bytes = 0;
        let shards = self.local.device_shards(job, at);
        for shard in lease.visits() {
            match shards.standing(shard) {
                DataLocality::Local => {}
                DataLocality::Remote => {
                    let shard = job.data.train.get(shard_index(shard));
                    bytes += shard.map_or(0, |shard| shard.blob.bytes);
                }
                DataLocality::Excluded => return None,
            }
        }
        let trained = self.cost.unit_time(name, lease.unit, &lease.then);
        let transfer = self.cost.transfer_time(trial, at.host);
        let trained = trained.saturating_mul(1000) / self.cost.reliability(at.host).max(1);
        let moved = transfer.fetch.saturating_add(transfer.send);
        Some(trained.saturating_add(moved).saturating_add(self.cost.fetch_time(at.host, bytes)))
    }
}

/// A second attempt at a lease's hop, from the same version.
fn for_lease(lease: &Lease, running: RunningHop, straggler: Straggler) -> Assignment {
    let RunningHop { ends, is_fetching, .. } = running;
    let speculation =
        Speculation { lease: lease.id, host: lease.host, ends, straggler, is_fetching };
    Assignment {
        unit: lease.unit,
        then: lease.then.clone(),
        until: lease.until,
        base: lease.base,
        why: GrantReason::Speculation(speculation),
        planned: None,
        speculative_for: Some(lease.id),
        after: None,
    }
}

/// Do no more than [`NEAR_END_HOPS`] hops follow a lease's? Where results are merged, the trial's other shards wait for the
/// last one of its epoch.
fn is_near_end(trial: &Trial, lease: &Lease) -> bool {
    if trial.merging.is_some() {
        return true;
    }
    let all = u64::from(trial.chain.epochs()) * trial.chain.hops_per_epoch();
    all.saturating_sub(trial.chain.hops()).saturating_sub(lease.hops()) <= NEAR_END_HOPS
}

/// Microseconds that the first attempt must still take, for a speculative lease that takes so long.
const fn worth(takes: u64) -> u64 {
    takes.saturating_add(takes / GAIN_PART).saturating_add(MIN_GAIN)
}
