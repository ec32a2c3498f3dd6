//! A job's plan: requested, followed, and given up when the fleet or the work is no longer what it was made for.
//!
//! ```text
//!   nothing --request--> requested --PlanReady--> followed --(hosts come or go, leases are lost, it lags)--> request again
//! ```
//!
//! A plan is advice (`plan.rs`). Where it says nothing the policy decides.

use super::{
    plan::{FollowedPlan, HopStatus, PlanAdvice, PlannedHop},
    plan_request::PlanRequest,
};
use sojourn_protocol::{
    ids::{HostId, ShardId, TrialId},
    time::{Millis, UnixMillis},
};
use sojourn_workgen::plan::Schedule;

/// Plans that keep trials to their places are apart by such a part of what they are for.
const PLAN_PART: u64 = 256;

/// What is planned for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JobPlan {
    /// The number of the last plan that was asked for.
    version: u64,
    /// It, until it comes.
    requested: Option<PlanRequest>,
    /// What is followed.
    followed: Option<FollowedPlan>,
    /// When one was asked for last, and for which fleet and jobs beside.
    requested_at: Option<UnixMillis>,
    fleet: u64,
    /// Why the one that was asked for last was wanted.
    requested_for: Replan,
    /// Why another is, since.
    wanted: Replan,
    /// Planned hops that were granted since one was asked for last.
    granted: u64,
    /// How late the last one of them was, in microseconds.
    late: u64,
}

/// Whether another plan is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Replan {
    /// It isn't.
    #[default]
    No,
    /// One that may be better, now that more is known.
    Better,
    /// Any: something has happened that the one which is followed didn't know.
    Any,
}

impl JobPlan {
    /// Asks for a plan; its number.
    pub(crate) fn request(&mut self, requested: PlanRequest) -> u64 {
        self.version += 1;
        self.requested_at = Some(requested.at);
        self.fleet = requested.fleet;
        self.requested = Some(requested);
        // What happens from now on it doesn't know.
        self.requested_for = std::mem::take(&mut self.wanted);
        self.granted = 0;
        self.version
    }

    /// A plan has come; false where it isn't the one that was asked for last, or no better than what is
    /// followed.
    pub(crate) fn ready(&mut self, version: u64, schedule: &Schedule) -> bool {
        if version != self.version {
            return false;
        }
        let Some(requested) = self.requested.take() else { return false };
        let followed = FollowedPlan::new(&requested, schedule);
        if let Some(before) = &self.followed
            && self.requested_for != Replan::Any
            && before.ends.saturating_add(self.late) <= followed.ends
        {
            return false;
        }
        self.late = 0;
        self.followed = Some(followed);
        true
    }

    /// What was planned holds no more; it is followed until another comes.
    pub(crate) fn outdate(&mut self) {
        self.wanted = Replan::Any;
    }

    /// This is the fleet, and who shares it: one that the plan didn't know, perhaps.
    pub(crate) fn for_fleet(&mut self, fleet: u64) {
        if self.fleet != fleet && self.requested_at.is_some() {
            self.wanted = Replan::Any;
        }
    }

    /// A planned hop is granted. Now and then another plan is made from what was measured meanwhile.
    pub(crate) fn granted(&mut self, hop: &PlannedHop, now: UnixMillis) {
        const PLANS_PER_JOB: u64 = 8;
        const MIN_HOPS: u64 = 32;
        self.late = now.0.saturating_mul(1000).saturating_sub(hop.start);
        self.granted += 1;
        let hops = self.followed.as_ref().map_or(0, |followed| followed.hops);
        if self.granted >= (hops / PLANS_PER_JOB).max(MIN_HOPS) {
            self.wanted = self.wanted.max(Replan::Better);
        }
        self.resume();
    }

    /// A lease was granted, or a place is idle. Where trials keep to their places that is far between, and each says
    /// when the others can begin.
    pub(crate) fn resume(&mut self) {
        if self.pins_trials() {
            self.wanted = self.wanted.max(Replan::Better);
        }
    }

    /// Is a plan followed by which trials keep to their places?
    pub(crate) fn pins_trials(&self) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.migrates)
    }

    /// Is another plan due, at the soonest `every` after the last one was asked for?
    pub(crate) fn is_due(&self, now: UnixMillis, every: Millis) -> bool {
        self.requested_at.is_none() || self.due_at(every).is_some_and(|at| at <= now)
    }

    /// When it will be, where it is wanted.
    pub(crate) fn due_at(&self, every: Millis) -> Option<UnixMillis> {
        let wanted = self.wanted > Replan::No && self.requested.is_none();
        // Where trials keep to their places, a plan is for long: it needn't be made anew for each second of it.
        let left =
            self.followed.as_ref().filter(|followed| followed.migrates).map_or(0, |followed| {
                (followed.ends / 1000).saturating_sub(followed.at.0) / PLAN_PART
            });
        self.requested_at.filter(|_| wanted).map(|at| at + every.max(Millis(left)))
    }

    /// Microseconds that are left of the plan at each place, which it would take alone.
    pub(crate) fn loads(&self) -> impl Iterator<Item = ((HostId, &str), u64)> {
        self.followed.iter().flat_map(FollowedPlan::loads)
    }

    /// Hops of the plan that is followed.
    pub(crate) fn steps(&self) -> u64 {
        self.followed.as_ref().map_or(0, |followed| followed.hops)
    }

    /// Is there a plan that is followed?
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.is_some()
    }

    /// Is the first plan still to come, asked for no longer than `patience` ago? Then when it is waited for no
    /// more.
    pub(crate) fn awaited_until(&self, now: UnixMillis, patience: Millis) -> Option<UnixMillis> {
        let requested = self.requested.as_ref().filter(|_| self.followed.is_none())?;
        let until = requested.at + patience;
        (now < until).then_some(until)
    }

    /// Is a plan on its way that knows that a place is idle, as one that is followed doesn't? Then until when it is
    /// waited for.
    pub(crate) fn renewed_until(
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

    /// What the plan says of an idle place at `now`; `standing` of each hop is asked for in their order.
    pub(crate) fn advise(
        &self,
        place: (HostId, &str),
        now: UnixMillis,
        standing: impl Fn(&PlannedHop) -> HopStatus,
    ) -> PlanAdvice {
        let followed = self.followed.as_ref();
        followed.map_or(PlanAdvice::Nothing, |followed| followed.advise(place, now, standing))
    }

    /// Whose turn it is with a trial.
    pub(crate) fn next_host(
        &self,
        trial: TrialId,
        standing: impl Fn(&PlannedHop) -> HopStatus,
    ) -> Option<HostId> {
        Some(self.followed.as_ref()?.next(trial, standing)?.host)
    }

    /// Instead of a planned hop, and those that follow it at its place, a trial visits these shards there.
    pub(crate) fn exchange(
        &mut self,
        device: &str,
        hop: &PlannedHop,
        shards: impl Iterator<Item = ShardId>,
    ) {
        if let Some(followed) = &mut self.followed {
            followed.exchange(device, hop, shards);
        }
    }

    /// Takes hops out of a place's and a trial's lists that are over.
    pub(crate) fn clear(
        &mut self,
        place: (HostId, &str),
        trial: TrialId,
        standing: impl Fn(&PlannedHop) -> HopStatus,
    ) {
        if let Some(followed) = &mut self.followed {
            followed.clear(place, trial, standing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(5);

    fn requested() -> PlanRequest {
        let (trials, devices, contention) = (Vec::new(), Vec::new(), Vec::new());
        PlanRequest { at: NOW, fleet: 1, migrates: false, trials, devices, contention }
    }

    #[test]
    fn what_happens_while_a_plan_is_made_asks_for_another() {
        let mut planning = JobPlan::default();
        planning.outdate();
        let version = planning.request(requested());
        assert!(planning.ready(version, &Schedule::default()));
        assert_eq!(planning.due_at(Millis(1)), None, "it knew all of it");
        let version = planning.request(requested());
        planning.outdate();
        assert!(!planning.ready(version, &Schedule::default()), "it is no better");
        assert_eq!(planning.due_at(Millis(1)), Some(NOW + Millis(1)));
    }
}
