//! A job's plan: asked for, followed, and given up when the world has become another one.
//!
//! ```text
//!   nothing --ask--> asked --PlanReady--> followed --(hosts come or go, leases are lost, it lags)--> ask again
//! ```
//!
//! A plan is advice (`followed.rs`); whatever it doesn't say the policy decides.

use super::followed::{Advice, Followed, HopStatus, PlannedHop};
use sojourn_protocol::{
    ids::{Epoch, HostId, ShardId, TrialId},
    time::{Millis, UnixMillis},
};
use sojourn_workgen::plan::Schedule;

/// Plans that keep trials to their places are apart by such a part of what they are for.
const OF_PLAN: u64 = 256;

/// What is planned for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Planning {
    /// The number of the last plan that was asked for.
    version: u64,
    /// It, until it comes.
    asked: Option<Asked>,
    /// What is followed.
    followed: Option<Followed>,
    /// When one was asked for last, and for which fleet and jobs beside.
    asked_at: Option<UnixMillis>,
    fleet: u64,
    /// Why the one that was asked for last was wanted.
    asked_for: Wanted,
    /// Why another is, since.
    wanted: Wanted,
    /// Planned hops that were granted since one was asked for last.
    granted: u64,
    /// How late the last one of them was, in microseconds.
    late: u64,
}

/// Whether another plan is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    /// It isn't.
    #[default]
    No,
    /// One that may be better, now that more is known.
    Better,
    /// Any: something has happened that the one which is followed didn't know.
    Any,
}

/// A plan that is being made, and what its numbers stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) at: UnixMillis,
    pub(crate) fleet: u64,
    /// Moving a checkpoint takes time.
    pub(crate) roams: bool,
    pub(crate) trials: Vec<(TrialId, Epoch)>,
    pub(crate) places: Vec<PlaceKey>,
    /// By place: how much slower it is for what other jobs have planned there, beside [`ALONE`].
    pub(crate) crowds: Vec<u64>,
}

/// Nobody else has planned anything for a place.
pub(crate) const ALONE: u64 = 1 << 10;

/// A device of a host: its slots share one list.
pub(crate) type PlaceKey = (HostId, String);

impl Planning {
    /// Asks for a plan; its number.
    pub(crate) fn ask(&mut self, asked: Asked) -> u64 {
        self.version += 1;
        self.asked_at = Some(asked.at);
        self.fleet = asked.fleet;
        self.asked = Some(asked);
        // What happens from now on it doesn't know.
        self.asked_for = std::mem::take(&mut self.wanted);
        self.granted = 0;
        self.version
    }

    /// A plan has come; false where it isn't the one that was asked for last, or no better than what is
    /// followed.
    pub(crate) fn ready(&mut self, version: u64, schedule: &Schedule) -> bool {
        if version != self.version {
            return false;
        }
        let Some(asked) = self.asked.take() else { return false };
        let followed = Followed::new(&asked, schedule);
        if let Some(before) = &self.followed
            && self.asked_for != Wanted::Any
            && before.ends.saturating_add(self.late) <= followed.ends
        {
            return false;
        }
        self.late = 0;
        self.followed = Some(followed);
        true
    }

    /// What was planned holds no more; it is followed until another comes.
    pub(crate) fn outdated(&mut self) {
        self.wanted = Wanted::Any;
    }

    /// This is the fleet, and who shares it: one that the plan didn't know, perhaps.
    pub(crate) fn for_fleet(&mut self, fleet: u64) {
        if self.fleet != fleet && self.asked_at.is_some() {
            self.wanted = Wanted::Any;
        }
    }

    /// A planned hop is granted. Now and then another plan is made from what was measured meanwhile.
    pub(crate) fn granted(&mut self, hop: &PlannedHop, now: UnixMillis) {
        const PLANS: u64 = 8;
        const LEAST: u64 = 32;
        self.late = now.0.saturating_mul(1000).saturating_sub(hop.start);
        self.granted += 1;
        let hops = self.followed.as_ref().map_or(0, |followed| followed.hops);
        if self.granted >= (hops / PLANS).max(LEAST) {
            self.wanted = self.wanted.max(Wanted::Better);
        }
        self.goes_on();
    }

    /// A lease was granted, or a place is idle. Where trials keep to their places that is far between, and each says
    /// when the others can begin.
    pub(crate) fn goes_on(&mut self) {
        if self.keeps_places() {
            self.wanted = self.wanted.max(Wanted::Better);
        }
    }

    /// Is a plan followed by which trials keep to their places?
    pub(crate) fn keeps_places(&self) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.roams)
    }

    /// Is another plan due, at the soonest `every` after the last one was asked for?
    pub(crate) fn is_due(&self, now: UnixMillis, every: Millis) -> bool {
        self.asked_at.is_none() || self.due_at(every).is_some_and(|at| at <= now)
    }

    /// When it will be, where it is wanted.
    pub(crate) fn due_at(&self, every: Millis) -> Option<UnixMillis> {
        let wanted = self.wanted > Wanted::No && self.asked.is_none();
        // Where trials keep to their places, a plan is for long: it needn't be made anew for each second of it.
        let left =
            self.followed.as_ref().filter(|followed| followed.roams).map_or(0, |followed| {
                (followed.ends / 1000).saturating_sub(followed.at.0) / OF_PLAN
            });
        self.asked_at.filter(|_| wanted).map(|at| at + every.max(Millis(left)))
    }

    /// Microseconds that are left of the plan at each place, which it would take alone.
    pub(crate) fn loads(&self) -> impl Iterator<Item = ((HostId, &str), u64)> {
        self.followed.iter().flat_map(Followed::loads)
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
        let asked = self.asked.as_ref().filter(|_| self.followed.is_none())?;
        let until = asked.at + patience;
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
        let followed = self.followed.as_ref().filter(|followed| followed.roams)?;
        let coming = self.asked.is_some() || self.wanted > Wanted::No;
        let until = idle_since + patience;
        (coming && followed.at <= idle_since && now < until).then_some(until)
    }

    /// What the plan says of an idle place at `now`; `standing` of each hop is asked for in their order.
    pub(crate) fn advise(
        &self,
        place: (HostId, &str),
        now: UnixMillis,
        standing: impl Fn(&PlannedHop) -> HopStatus,
    ) -> Advice {
        let followed = self.followed.as_ref();
        followed.map_or(Advice::Nothing, |followed| followed.advise(place, now, standing))
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

    fn asked() -> Asked {
        let (trials, places, crowds) = (Vec::new(), Vec::new(), Vec::new());
        Asked { at: NOW, fleet: 1, roams: false, trials, places, crowds }
    }

    #[test]
    fn what_happens_while_a_plan_is_made_asks_for_another() {
        let mut planning = Planning::default();
        planning.outdated();
        let version = planning.ask(asked());
        assert!(planning.ready(version, &Schedule::default()));
        assert_eq!(planning.due_at(Millis(1)), None, "it knew all of it");
        let version = planning.ask(asked());
        planning.outdated();
        assert!(!planning.ready(version, &Schedule::default()), "it is no better");
        assert_eq!(planning.due_at(Millis(1)), Some(NOW + Millis(1)));
    }
}
