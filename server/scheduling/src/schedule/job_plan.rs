//! A job's plan: requested, followed, and given up when the fleet or the work is no longer what it was made for.
//!
//! ```text
//!   nothing --request--> requested --PlanReady--> followed --(hosts come or go, leases are lost, it lags)--> request again
//! ```
//!
//! A plan is advice (`plan.rs`). Where it says nothing the policy decides. Where plan after plan is soon overtaken by losses,
//! none is followed for a while. Plans that say where each trial stays are followed nevertheless: of these a loss moves little.

use super::{
    plan::{FollowedPlan, HopStatus, PlanAdvice, PlannedHop},
    plan_request::PlanRequest,
};
use sojourn_protocol::{
    ids::{HostId, ShardId, TrialId},
    quantity::mul_div,
    time::{Millis, UnixMillis},
};
use sojourn_workgen::plan::Schedule;

/// Plans that pin trials to devices are requested at intervals of this part of their length.
const PLAN_PART: u64 = 256;
/// Thousandths of its length for which a plan is assumed to be followed before a loss overtakes it.
const FIRST_LIFETIME: u64 = 100;
/// Thousandths of their length: where plans are overtaken sooner than this, none is followed for a while.
const MIN_LIFETIME: u64 = 50;
/// Likewise: where plans are overtaken sooner, it counts less who was to train what.
const DISTURBED_LIFETIME: u64 = 80;
/// For so long, as a part of the length of the last plan.
const VOLATILE_PART: u64 = 2;

/// A hop that is granted otherwise than planned asks for another plan as so many do that are granted as planned.
const DEPARTURE: u64 = 4;

/// The plan of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobPlan {
    /// The number of the last request.
    version: u64,
    /// The request, until its plan is ready.
    requested: Option<PlanRequest>,
    /// The plan that is followed.
    followed: Option<FollowedPlan>,
    /// When a plan was requested last.
    requested_at: Option<UnixMillis>,
    fleet: u64,
    /// Why the last plan was requested.
    requested_for: Replan,
    /// Why another one is wanted since.
    wanted: Replan,
    /// Planned hops that were granted since the last request; others count more.
    granted: u64,
    /// Microseconds by which the last one of them was late.
    late: u64,
    /// The times that the plan rests on were far from what was measured since.
    misjudged: bool,
    /// The most hops that a plan of the job had.
    most_hops: u64,
    /// How long plans were followed before a loss overtook them.
    lifetime: Lifetime,
    /// Until then no plan is made: losses overtake each.
    volatile_until: Option<UnixMillis>,
}

/// How long plans were followed before a loss overtook them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lifetime {
    /// The mean, in thousandths of their lengths; each new one counts a quarter.
    mean: u64,
    /// Does it have the followed plan?
    is_counted: bool,
}

impl Default for Lifetime {
    fn default() -> Self {
        Self { mean: FIRST_LIFETIME, is_counted: false }
    }
}

/// Whether another plan is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Replan {
    /// No other plan.
    #[default]
    No,
    /// A plan that may be better, now that more is known.
    Better,
    /// Any plan: something has happened that the followed one doesn't account for.
    Any,
}

impl JobPlan {
    /// Requests a plan. Its number.
    pub fn request(&mut self, requested: PlanRequest) -> u64 {
        self.version += 1;
        self.requested_at = Some(requested.at);
        self.fleet = requested.fleet;
        self.requested = Some(requested);
        // It doesn't account for what happens from now on.
        self.requested_for = std::mem::take(&mut self.wanted);
        self.misjudged = false;
        self.granted = 0;
        self.version
    }

    /// A plan is ready at `now`. False where it isn't the one that was requested last, or is no better than the followed
    /// one, which may have fallen behind.
    pub fn ready(
        &mut self,
        version: u64,
        schedule: &Schedule,
        now: UnixMillis,
        is_over: impl Fn(&PlannedHop) -> bool,
    ) -> bool {
        if version != self.version {
            return false;
        }
        let Some(requested) = self.requested.take() else { return false };
        let followed = FollowedPlan::new(&requested, schedule);
        if let Some(before) = &self.followed
            && self.requested_for != Replan::Any
            && before.ends.saturating_add(self.late.max(before.overdue(
                now,
                &requested.free,
                is_over,
            ))) <= followed.ends
        {
            return false;
        }
        self.late = 0;
        self.lifetime.is_counted = false;
        self.most_hops = self.most_hops.max(followed.hops);
        self.followed = Some(followed);
        true
    }

    /// The plan doesn't fit any more. It is followed until another one is ready.
    pub fn outdate(&mut self) {
        self.wanted = Replan::Any;
    }

    /// The times that the plan rests on were far from what was measured: its length says nothing of when to plan anew.
    pub fn misjudged(&mut self) {
        self.wanted = Replan::Any;
        self.misjudged = true;
    }

    /// A lease of the job was lost at `now`: the plan doesn't fit any more.
    pub fn overtaken(&mut self, now: UnixMillis) {
        self.outdate();
        let followed = self.followed.as_ref().filter(|followed| !followed.migrates);
        let Some(followed) = followed.filter(|_| !self.lifetime.is_counted) else { return };
        let length = (followed.ends / 1000).saturating_sub(followed.at.0);
        let lived = mul_div((now - followed.at).0, 1000, length.max(1)).min(1000);
        let mean = (3 * self.lifetime.mean + lived) / 4;
        self.lifetime = Lifetime { mean, is_counted: true };
        if mean < MIN_LIFETIME {
            self.lifetime.mean = MIN_LIFETIME * 5 / 4;
            self.followed = None;
            self.volatile_until = Some(now + Millis(length / VOLATILE_PART));
        }
    }

    /// The number of the fleet and of the jobs that share it. Where it has changed, the plan doesn't fit.
    pub fn for_fleet(&mut self, fleet: u64) {
        if self.fleet != fleet && self.requested_at.is_some() {
            self.wanted = Replan::Any;
        }
    }

    /// A planned hop is granted. Now and then another plan is requested, from what was measured meanwhile.
    pub fn granted(&mut self, hop: &PlannedHop, now: UnixMillis) {
        self.late = now.0.saturating_mul(1000).saturating_sub(hop.start);
        self.count_granted(1);
    }

    /// A hop was granted that the plan has otherwise: it doesn't fit any more. But where some slots are idle, these leave hops to those who
    /// end them sooner by the plan. One that they take hardly disturbs the others, so that another plan is wanted after several.
    pub fn departed(&mut self) {
        match &self.followed {
            Some(followed) if followed.is_of_the_end() => self.count_granted(DEPARTURE),
            _ => self.outdate(),
        }
    }

    /// So many planned hops were granted, or as much has changed. Where some slots are idle, another plan is requested after equal parts of
    /// the job, so that its end isn't planned the more often the shorter it is.
    fn count_granted(&mut self, hops: u64) {
        const PLANS_PER_JOB: u64 = 8;
        const MIN_HOPS: u64 = 32;
        self.granted += hops;
        let of = match &self.followed {
            Some(followed) if followed.is_of_the_end() => self.most_hops,
            Some(followed) => followed.hops,
            None => 0,
        };
        if self.granted >= (of / PLANS_PER_JOB).max(MIN_HOPS) {
            self.wanted = self.wanted.max(Replan::Better);
        }
        self.resume();
    }

    /// A lease was granted, or a device is idle. Where trials are pinned to devices that is rare, and a better plan may
    /// be possible each time.
    pub fn resume(&mut self) {
        if self.pins_trials() {
            self.wanted = self.wanted.max(Replan::Better);
        }
    }

    /// Does the followed plan pin trials to devices?
    pub fn pins_trials(&self) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.migrates)
    }

    /// Is another plan due, at the earliest `every` after the last request?
    pub fn is_due(&self, now: UnixMillis, every: Millis) -> bool {
        self.requested_at.is_none() || self.due_at(every).is_some_and(|at| at <= now)
    }

    /// When another plan is due, if it is wanted.
    pub fn due_at(&self, every: Millis) -> Option<UnixMillis> {
        if self.wanted == Replan::No || self.requested.is_some() {
            return None;
        }
        // A plan that pins trials is for long: it needn't be made again every second.
        let followed = self.followed.as_ref().filter(|_| !self.misjudged);
        let pause = followed
            .filter(|followed| followed.migrates)
            .map_or(0, |followed| (followed.ends / 1000).saturating_sub(followed.at.0) / PLAN_PART);
        let at = self.requested_at.map(|at| at + every.max(Millis(pause)));
        at.map(|at| self.volatile_until.map_or(at, |until| until.max(at)))
    }

    /// Microseconds of the remaining hops of each device, without contention.
    pub fn loads(&self) -> impl Iterator<Item = ((HostId, &str), u64)> {
        self.followed.iter().flat_map(FollowedPlan::loads)
    }

    /// When all trials but this one end by the plan, in microseconds of the server's clock; 0 without one.
    pub fn ends_beside(&self, trial: TrialId) -> u64 {
        self.followed.as_ref().map_or(0, |followed| followed.ends_beside(trial))
    }

    /// Hops of the plan that is followed.
    pub fn steps(&self) -> u64 {
        self.followed.as_ref().map_or(0, |followed| followed.hops)
    }

    /// Is there a plan that is followed, and does it name other hosts only?
    pub fn leaves_out(&self, host: HostId) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.leaves_out(host))
    }

    /// Do losses overtake plans, long before these end?
    pub fn is_disturbed(&self) -> bool {
        self.lifetime.mean < DISTURBED_LIFETIME
    }

    /// Is there a plan that is followed?
    pub fn is_followed(&self) -> bool {
        self.followed.is_some()
    }

    /// Until when devices wait for the first plan: for `patience` after its request.
    pub fn awaited_until(&self, now: UnixMillis, patience: Millis) -> Option<UnixMillis> {
        let requested = self.requested.as_ref().filter(|_| self.followed.is_none())?;
        let until = requested.at + patience;
        (now < until).then_some(until)
    }

    /// Until when an idle device waits for a plan that accounts for it, as the followed one doesn't.
    pub fn renewed_until(
        &self,
        idle_since: UnixMillis,
        now: UnixMillis,
        patience: Millis,
    ) -> Option<UnixMillis> {
        let followed = self.followed.as_ref().filter(|followed| followed.migrates)?;
        let coming = self.requested.is_some() || self.wanted > Replan::No;
        let until = idle_since + patience;
        (coming && followed.at <= idle_since && now < until).then_some(until)
    }

    /// The advice for an idle device at `now`. The status of a hop is asked for only where it matters.
    pub fn advise(
        &self,
        device: (HostId, &str),
        now: UnixMillis,
        is_over: impl Fn(&PlannedHop) -> bool,
        status: impl Fn(&PlannedHop) -> HopStatus,
    ) -> PlanAdvice {
        let Some(followed) = &self.followed else { return PlanAdvice::Nothing };
        followed.advise(device, now, is_over, status)
    }

    /// A trial's next planned hop.
    pub fn next_hop(
        &self,
        trial: TrialId,
        is_over: impl Fn(&PlannedHop) -> bool,
    ) -> Option<&PlannedHop> {
        self.followed.as_ref()?.next(trial, is_over)
    }

    /// Has a trial visit these shards on a device, instead of those of a planned hop and the hops after it there.
    pub fn exchange(
        &mut self,
        device: &str,
        hop: &PlannedHop,
        shards: impl Iterator<Item = ShardId>,
    ) {
        if let Some(followed) = &mut self.followed {
            followed.exchange(device, hop, shards);
        }
    }

    /// Removes hops that are over from the lists of a device and a trial.
    pub fn clear(
        &mut self,
        device: (HostId, &str),
        trial: TrialId,
        is_over: impl Fn(&PlannedHop) -> bool,
    ) {
        if let Some(followed) = &mut self.followed {
            followed.clear(device, trial, is_over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::plan_request::NO_CONTENTION;
    use sojourn_protocol::ids::Epoch;
    use sojourn_workgen::plan::Step;
    use std::collections::BTreeMap;

    const NOW: UnixMillis = UnixMillis(5);

    fn requested() -> PlanRequest {
        PlanRequest::empty(NOW, 1)
    }

    #[test]
    fn what_happens_while_a_plan_is_made_asks_for_another() {
        let mut planning = JobPlan::default();
        planning.outdate();
        let version = planning.request(requested());
        assert!(planning.ready(version, &Schedule::default(), NOW, |_| true));
        assert_eq!(planning.due_at(Millis(1)), None, "it knew all of it");
        let version = planning.request(requested());
        planning.outdate();
        let is_taken = planning.ready(version, &Schedule::default(), NOW, |_| true);
        assert!(!is_taken, "it is no better");
        assert_eq!(planning.due_at(Millis(1)), Some(NOW + Millis(1)));
    }

    #[test]
    fn a_plan_whose_host_is_still_busy_gives_way_to_one_that_ends_sooner() {
        const BUSY: HostId = HostId(1);
        let request = |free| PlanRequest {
            migrates: true,
            trials: vec![(TrialId(0), Epoch(0))],
            devices: [BUSY, HostId(2)].map(|host| (host, "cpu".to_owned())).to_vec(),
            free: BTreeMap::from([(BUSY, free), (HostId(2), 0)]),
            contention: vec![NO_CONTENTION; 2],
            ..PlanRequest::empty(UnixMillis(0), 1)
        };
        let plan = |machine, start| {
            let end = start + 1_000;
            Schedule::new(vec![Step { trial: 0, epoch: 0, shard: 0, machine, start, end }])
        };
        let is_taken = |free| {
            let mut planning = JobPlan::default();
            let version = planning.request(request(0));
            assert!(planning.ready(version, &plan(0, 2_000), UnixMillis(0), |_| false));
            planning.resume();
            // It is before the time at which the followed plan has the hop begin.
            let version = planning.request(request(free));
            planning.ready(version, &plan(1, 4_000), UnixMillis(1), |_| false)
        };
        assert!(!is_taken(2_000), "its host is free in time");
        assert!(!is_taken(4_000), "it ends at the same time");
        assert!(is_taken(5_000), "its host is free after the other one");
    }

    #[test]
    fn after_plans_that_losses_overtake_at_once_none_is_followed_for_a_while() {
        let hour = Schedule { makespan: 3_600_000_000, ..Schedule::default() };
        let overtaken_after = |millis| {
            let mut planning = JobPlan::default();
            let mut now = NOW;
            for _ in 0..20 {
                let version = planning.request(PlanRequest::empty(now, 1));
                assert!(planning.ready(version, &hour, now, |_| true));
                now = now + Millis(millis);
                planning.overtaken(now);
                if !planning.is_followed() {
                    break;
                }
            }
            (planning.is_followed(), planning.due_at(Millis(1)), now)
        };
        let (is_followed, due, now) = overtaken_after(1_000);
        assert!(!is_followed);
        assert_eq!(due, Some(now + Millis(1_800_000)), "half of the plan's length");
        let (is_followed, due, now) = overtaken_after(1_800_000);
        assert!(is_followed);
        assert!(due <= Some(now), "the fleet is another, and a new plan may last");
    }

    #[test]
    fn a_plan_from_wrong_times_is_made_anew_at_once() {
        let mut planning = JobPlan::default();
        let day = Schedule { makespan: 86_400_000_000, ..Schedule::default() };
        let version = planning.request(PlanRequest { migrates: true, ..requested() });
        assert!(planning.ready(version, &day, NOW, |_| true));
        planning.outdate();
        assert!(planning.due_at(Millis(1)) > Some(NOW + Millis(60_000)), "it is for long");
        planning.misjudged();
        assert_eq!(planning.due_at(Millis(1)), Some(NOW + Millis(1)));
    }
}
