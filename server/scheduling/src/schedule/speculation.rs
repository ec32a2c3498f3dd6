//! Speculative leases: a running hop for which its trial, and with it the job, waits is given to a second host, where
//! that should end it clearly sooner. The first valid result wins, and the other host is told to stop.
//!
//! Only idle hosts get speculative leases, and only while the work that is done twice stays below a share of the job's.
//! Waiting hosts are looked at when something has changed, and when a hop is due or its host may have fallen silent.

use super::{
    assignment::Assignment,
    explain::{GrantReason, Speculation, Straggler},
    hops::HopPick,
    scheduler::Scheduler,
    verifiers::Verifiers,
};
use crate::{
    hosts::{DeviceRef, training_time},
    index::RemainingWorkIndex,
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    quantity::{mul_div, to_u64},
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

/// A running hop, and when it should end.
#[derive(Debug, Clone, Copy)]
struct RunningHop {
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
    /// The first speculative lease of a job's hops that is worth while; where there is none, when to look again.
    pub fn find_speculation(&self, job: JobId) -> Speculate {
        let none = Speculate::Later(None);
        let Some(job) = self.state.jobs.get(&job).filter(|job| job.is_open()) else { return none };
        let Some(remaining) = self.index.remaining(job.id) else { return none };
        if self.state.lost_data(job).is_some() {
            return none;
        }
        let mut look_at: Option<UnixMillis> = None;
        let longest = self.expected_end(remaining);
        let all = job.work();
        for (trial, work) in remaining.running().take(MAX_TRIALS) {
            let Some(trial) = job.trial(trial) else { continue };
            for running in self.sole_attempts(trial) {
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
                    let ends = self.time_after(trial, lease, work).saturating_add(running.ends);
                    if ends < longest - longest / 10 {
                        not_before(longest - ends);
                        continue;
                    }
                }
                let Some(target) = self.best_target(job, trial, lease) else { continue };
                let Some(straggler) = self.worth_while(running, target.takes) else {
                    not_before(worth(target.takes));
                    continue;
                };
                let assignment = Box::new(for_lease(lease, running, straggler));
                return Speculate::Grant(target, assignment);
            }
        }
        Speculate::Later(look_at)
    }

    /// Microseconds until a job is expected to be done.
    fn expected_end(&self, remaining: &RemainingWorkIndex) -> u64 {
        let fleet = &self.hosts.fleet();
        training_time(remaining.longest(), fleet.fastest(None))
            .max(training_time(remaining.total(), fleet.capacity()))
    }

    /// The hops for which a trial waits and which only one host trains: those that end last come first.
    fn sole_attempts(&self, trial: &Trial) -> Vec<RunningHop> {
        let mut alone: Vec<RunningHop> =
            trial.alone().filter_map(|lease| self.running_hop(lease)).collect();
        alone.sort_by_key(|running| (Reverse(running.ends), running.lease));
        alone
    }

    /// How far a live lease's hop is; `None` where its result is being uploaded.
    fn running_hop(&self, id: LeaseId) -> Option<RunningHop> {
        let (lease, deadline) = (self.state.leases.get(&id)?, self.leases.deadline(id)?);
        if deadline.finished {
            return None;
        }
        let micros = |from: UnixMillis, to: UnixMillis| (to - from).0.saturating_mul(1000);
        let estimate = self.cost.lease_time(id);
        let spread = estimate.saturating_mul(self.cost.spread(lease)) / 1000;
        let (passed, due, spread) = if !deadline.started {
            // It waits for the units before it, and for its bytes.
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
        let seen = self.hosts.session(lease.host).map_or(UnixMillis(0), |of| of.seen_at);
        let seen = if self.waiters.waits(lease.host) { self.now } else { seen };
        let (beats, whole) = (self.config.heartbeat_every.0, self.config.lease_term.0);
        let silent_at = seen + Millis((beats.saturating_mul(5) / 2).min(whole - whole / 4));
        let silent = (silent_at <= self.now).then_some((seen, deadline.renew_by));
        if silent.is_some() {
            // It starts again when the lease has run out.
            remaining = remaining.max(micros(self.now, deadline.renew_by).saturating_add(estimate));
        }
        Some(RunningHop {
            lease: id,
            ends: remaining.saturating_mul(1000) / self.cost.reliability(lease.host).max(1),
            late,
            spread,
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

    /// May this lease's work be done twice, within the share of the job's work that may be?
    fn may_repeat(&self, job: &Job, all: u64, lease: &Lease) -> bool {
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
        let verification = job.verification_of(&lease.unit);
        let idle = self.waiters.polls().fastest().filter(|host| {
            *host != lease.host
                && verification.is_none_or(|verification| {
                    Verifiers::of(&self.eligible).may_verify(verification, *host)
                })
                && self.cost.reliability(*host) >= 1000 - MAX_UNRELIABILITY
                && !self.hosts.is_cooling_down(*host, self.now)
                && self.state.admits_host(job, *host)
        });
        let idle = idle.take(MAX_HOSTS).flat_map(|host| {
            let demand = self.waiters.polls().demand(host).iter().filter(|demand| demand.idle > 0);
            demand.map(move |demand| (host, demand.device.as_str()))
        });
        let targets = idle.filter_map(|(host, device)| {
            let slots = self.hosts.session(host)?.devices.get(device)?;
            let at = DeviceRef { host, slots, ahead: false };
            let kept = job.spec.placement.reproducible.then_some(lease.class);
            let fits = kept
                .is_none_or(|class| class.is_some_and(|class| slots.classes.offers(class)))
                && self.eligible.may_train(job, trial, at)
                && self.eligible.is_capable(slots, trial)
                && !matches!(
                    self.planned_for(job, at),
                    Some(HopPick::Assign(_) | HopPick::Expect(_))
                );
            let takes = fits.then(|| self.speculation_time(job, trial, lease, at)).flatten()?;
            Some(SpeculationTarget { host, device: device.to_owned(), takes })
        });
        targets.min_by_key(|target| target.takes)
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
    let speculation =
        Speculation { lease: lease.id, host: lease.host, ends: running.ends, straggler };
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
fn is_near_end(job: &Job, trial: &Trial, lease: &Lease) -> bool {
    if trial.merging.is_some() {
        return true;
    }
    let all = u64::from(trial.chain.epochs()) * to_u64(job.data.train.len());
    all.saturating_sub(trial.chain.hops()).saturating_sub(lease.hops()) <= NEAR_END_HOPS
}

/// Microseconds that the first attempt must still take, for a speculative lease that takes so long.
const fn worth(takes: u64) -> u64 {
    takes.saturating_add(takes / GAIN_PART).saturating_add(MIN_GAIN)
}
