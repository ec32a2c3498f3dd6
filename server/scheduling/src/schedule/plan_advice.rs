//! The advice of a job's plan for a device that asks for work.

use super::{
    assignment::Assignment,
    batching::batch_hops,
    device_shards::DeviceShards,
    explain::{GrantReason, PlannedStep},
    hops::HopPick,
    plan::{HopStatus, PlanAdvice, PlannedHop},
    plan_problem::has_planned_work,
    scheduler::Scheduler,
};
use crate::{
    hosts::DeviceRef,
    leases::{ContinuedTrial, ResultBefore},
};
use sojourn_protocol::{
    ids::{HostId, ShardId},
    time::{Millis, UnixMillis},
};
use sojourn_state::{Job, Trial, UnitKey};
use sojourn_workgen::{Chain, DataLocality};

/// So long devices wait for the first plan of a job.
const FIRST_PLAN_TIMEOUT: Millis = Millis::from_secs(1);
/// So long an idle device waits for a plan that knows of it.
const NEXT_PLAN_TIMEOUT: Millis = Millis::from_secs(2);

impl Scheduler<'_> {
    /// The hop that a job's plan has for a device; `None` where the plan says nothing of it.
    pub fn planned_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<HopPick> {
        let plan = self.planner.plan(job.id)?;
        let device = &at.slots.device.name;
        let is_over = |hop: &PlannedHop| self.is_planned_hop_over(job, hop);
        let may_begin = self.occupancy.may_begin_epoch(job);
        let status = |hop: &PlannedHop| self.hop_status(job, hop, at, may_begin);
        let wait = |until: UnixMillis| HopPick::Expect((until - self.now).0.saturating_mul(1000));
        match plan.advise((at.host, device), self.now, is_over, status) {
            PlanAdvice::Take(hop, further) => {
                let trial = job.trial(hop.trial)?;
                let continued = if trial.merging.is_none() && trial.is_runnable() {
                    ContinuedTrial { chain: trial.chain.clone(), after: None }
                } else {
                    self.occupancy.continued_on(trial, at)?
                };
                let chain = &continued.chain;
                let shards = self.local.device_shards(job, at);
                let shard = self.planned_shard(job, chain, &hop, &shards)?;
                let start = chain.next(shard)?;
                let unit = UnitKey::Train {
                    job: job.id,
                    trial: hop.trial,
                    epoch: start.epoch,
                    shard,
                    from: start.batch,
                };
                let now = self.now.0.saturating_mul(1000);
                let why = GrantReason::Planned(PlannedStep {
                    step: hop.step,
                    steps: plan.steps(),
                    late: now.saturating_sub(hop.start),
                    early: hop.start.saturating_sub(now),
                    standing: shards.standing(shard),
                    is_fixed: chain.has_fixed_visits(),
                });
                let extent = self.lease_extent(job, trial, shard, at);
                // Where losses overtake plans, the host's other shards go with the planned ones, as far as that saves transfers.
                let then = match plan.is_disturbed() {
                    false => {
                        let most = extent.hops.min(further + 1);
                        batch_hops(chain, shard, |shard| shards.standing(shard), most)
                    }
                    true => {
                        let standing = |shard| extent.standing(&shards, shard);
                        batch_hops(chain, shard, standing, extent.hops)
                    }
                };
                let after = continued.after.map(|(lease, produced)| ResultBefore {
                    lease,
                    produced,
                    start,
                });
                let planned = Some(hop);
                let base = if after.is_some() { trial.version.next() } else { trial.version };
                let (until, speculative_for) = (None, None);
                let chosen =
                    Assignment { unit, then, until, base, why, planned, speculative_for, after };
                Some(HopPick::Assign(Box::new(chosen)))
            }
            PlanAdvice::GoesOn => Some(HopPick::Nothing),
            PlanAdvice::Wait(until) => Some(wait(until)),
            PlanAdvice::Nothing => {
                let idle_since = self.hosts.session(at.host)?.idle_since;
                let renewed = || plan.renewed_until(idle_since?, self.now, NEXT_PLAN_TIMEOUT);
                plan.awaited_until(self.now, FIRST_PLAN_TIMEOUT).or_else(renewed).map(wait)
            }
        }
    }

    /// Would a hop on this device bind a trial to another numeric class than its plan says?
    pub fn is_left_to_other_class(&self, job: &Job, trial: &Trial, at: DeviceRef<'_>) -> bool {
        let binds = job.spec.placement.reproducible && trial.class.is_none();
        if !binds || !self.hosts.fleet().has_several_kinds() {
            return false;
        }
        self.claimed_by(job, trial).is_some_and(|host| {
            let mut pools = self.hosts.fleet().pools(host).iter();
            let own = self.cost.class_for(job, &at.slots.classes);
            pools.all(|pool| self.cost.class_for(job, &pool.classes) != own)
        })
    }

    /// Does a job's plan have a trial go on in another numeric class than it is in? It may have begun while the plan was made.
    pub fn is_planned_in_other_class(&self, job: &Job) -> bool {
        let mut bound = job.trials.iter().filter(|trial| has_planned_work(trial));
        job.spec.placement.reproducible
            && bound.any(|trial| {
                let required = self.state.expected_class(job, trial);
                let host = self.planned_host(job, trial);
                required.zip(host).is_some_and(|(required, host)| {
                    let mut pools = self.hosts.fleet().pools(host).iter();
                    pools.all(|pool| !pool.classes.offers(required))
                })
            })
    }

    /// Does a job limit its hosts, and has its plan others for all trials that could go on?
    pub fn is_left_out(&self, job: &Job, host: HostId) -> bool {
        if job.spec.placement.max_hosts.is_none()
            || !self.planner.plan(job.id).is_some_and(|plan| plan.leaves_out(host))
        {
            return false;
        }
        let mut open =
            job.trials.iter().filter(|trial| has_planned_work(trial) && trial.is_runnable());
        open.all(|trial| self.claimed_by(job, trial).is_some())
    }

    /// The host that a trial's plan names next, where it can be counted on: it could train the hop, and isn't later than
    /// the time at which the hop was to end.
    fn claimed_by(&self, job: &Job, trial: &Trial) -> Option<HostId> {
        let hop = self.next_planned(job, trial).filter(|hop| !hop.is_overdue(self.now))?;
        self.could_follow(job, trial, hop).then_some(hop.host)
    }

    /// Does a trial's plan name a host that could train its next hop? A plan may be of hosts that have gone since, or no longer
    /// keep the shard.
    pub(super) fn is_planned_elsewhere(&self, job: &Job, trial: &Trial) -> bool {
        self.next_planned(job, trial).is_some_and(|hop| self.could_follow(job, trial, hop))
    }

    /// Microseconds for which a trial, which has waited so long, is left to the host that its plan names next, where that is another one:
    /// it is in contact, isn't late, and should have ended the hop before this device would. Nobody is waited for longer than the hop would
    /// take here.
    pub(super) fn left_to_plan(
        &self,
        job: &Job,
        trial: &Trial,
        at: DeviceRef<'_>,
        waited: Millis,
    ) -> Option<u64> {
        let hop = self.next_planned(job, trial).filter(|hop| hop.host != at.host)?;
        let now = self.now.0.saturating_mul(1000);
        let left = hop.patience_until().checked_sub(now)?;
        let takes = self.hop_time(job, trial, hop.shard, at);
        let left = left.min(takes.saturating_sub(waited.0.saturating_mul(1000)));
        let ends = hop.start.max(now).saturating_add(hop.end.saturating_sub(hop.start));
        let is_left = left > 0
            && ends <= now.saturating_add(takes)
            && self.eligible.is_live(hop.host)
            && self.state.admits_host(job, hop.host)
            && self.could_follow(job, trial, hop);
        is_left.then_some(left)
    }

    /// Could the host of a planned hop train it?
    fn could_follow(&self, job: &Job, trial: &Trial, hop: &PlannedHop) -> bool {
        !self.hosts.is_cooling_down(hop.host, self.now)
            && self.eligible.could_train_shard(job, trial, hop.shard, hop.host)
    }

    /// The shard to begin with: the planned one, or where any may be trained here, one that needn't be fetched. Where
    /// the order of visits is fixed, the next of it.
    fn planned_shard(
        &self,
        job: &Job,
        chain: &Chain,
        hop: &PlannedHop,
        shards: &DeviceShards<'_>,
    ) -> Option<ShardId> {
        if chain.has_fixed_visits() {
            return chain.next_shards().next();
        }
        let is_cached = |shard: &ShardId| shards.standing(*shard) == DataLocality::Local;
        if self.eligible.has_replicas(job) || is_cached(&hop.shard) {
            return Some(hop.shard);
        }
        Some(chain.open().find(is_cached).unwrap_or(hop.shard))
    }

    /// The host that a trial's plan names next.
    pub fn planned_host(&self, job: &Job, trial: &Trial) -> Option<HostId> {
        self.next_planned(job, trial).map(|hop| hop.host)
    }

    /// The next hop in a trial's plan.
    fn next_planned(&self, job: &Job, trial: &Trial) -> Option<&PlannedHop> {
        let plan = self.planner.plan(job.id)?;
        plan.next_hop(trial.id, |hop| self.is_hop_over(trial, hop))
    }

    /// The same of any hop of a job's plan. A hop of a trial that the job doesn't have is over.
    pub fn is_planned_hop_over(&self, job: &Job, hop: &PlannedHop) -> bool {
        job.trial(hop.trial).is_none_or(|trial| self.is_hop_over(trial, hop))
    }

    /// Is a planned hop trained, running, or of a trial that has ended?
    fn is_hop_over(&self, trial: &Trial, hop: &PlannedHop) -> bool {
        let at = trial.chain.epoch();
        let past = !has_planned_work(trial) || at > hop.epoch;
        let done =
            || !trial.chain.is_open(hop.shard) || self.state.is_shard_in_hand(trial, hop.shard);
        past || (at == hop.epoch && done()) || self.is_hop_provisional(trial, hop)
    }

    /// Is it part of a provisional lease?
    fn is_hop_provisional(&self, trial: &Trial, hop: &PlannedHop) -> bool {
        self.occupancy.provisional_of(trial).is_some_and(|provisional| {
            provisional.start.epoch == hop.epoch
                && provisional.lease.visits().any(|of| of == hop.shard)
        })
    }

    /// May a planned hop be a trial's next? Where any shard may be trained here, another one takes its turn.
    fn comes_next(&self, job: &Job, chain: &Chain, hop: &PlannedHop) -> bool {
        let is_next = || match self.eligible.has_replicas(job) {
            true => chain.next(hop.shard).is_some(),
            false => chain.is_open(hop.shard),
        };
        chain.epoch() == hop.epoch && is_next()
    }

    /// How a planned hop that isn't over stands for a device. `may_begin`: a trial may begin another epoch.
    fn hop_status(
        &self,
        job: &Job,
        hop: &PlannedHop,
        at: DeviceRef<'_>,
        may_begin: bool,
    ) -> HopStatus {
        let Some(trial) = job.trial(hop.trial) else { return HopStatus::Later };
        let class = self.state.required_class(job, trial);
        let class = class.unwrap_or_else(|| self.cost.class_for(job, &at.slots.classes));
        let may = self.eligible.may_train(job, trial, at)
            && self.eligible.is_capable(at.slots, trial)
            && (trial.class.is_some() || self.eligible.may_begin_in(job, at.host, class))
            && self.eligible.keeps_replica(job, &at.slots.classes, hop.shard, at.host);
        let may_train = |chain: &Chain| may && (may_begin || !chain.is_between_epochs());
        if trial.is_runnable() {
            let open = may_train(&trial.chain) && self.comes_next(job, &trial.chain, hop);
            return if open { HopStatus::Open } else { HopStatus::Later };
        }
        // Where the transfer of a checkpoint is negligible, nothing is gained by it.
        let continued = Some(trial).filter(|_| self.planner.pins_trials(job.id));
        let continued = continued
            .and_then(|trial| self.occupancy.continued_on(trial, at))
            .filter(|continued| may_train(&continued.chain))
            .filter(|continued| self.comes_next(job, &continued.chain, hop));
        match continued {
            Some(ContinuedTrial { after: Some(_), .. }) if !at.ahead => HopStatus::Open,
            Some(_) if at.ahead => HopStatus::GoesOn,
            Some(_) | None => HopStatus::Later,
        }
    }
}
