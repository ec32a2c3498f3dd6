//! A job's plan: asked for, followed, and given up when the world has become another one.
//!
//! ```text
//!   nothing --ask--> asked --PlanReady--> followed --(hosts come or go, leases are lost, it lags)--> ask again
//! ```
//!
//! A plan is advice: each place takes the first hop of its own list whose trial is free and has nothing else
//! planned before it; it waits for one that isn't only while that is about to be. Whatever the plan doesn't say
//! the policy decides.

use sojourn_protocol::{
    ids::{Epoch, HostId, ShardId, TrialId},
    time::{Millis, UnixMillis},
};
use sojourn_workgen::plan::Schedule;
use std::collections::{BTreeMap, VecDeque};

/// Trials of a place's list that are looked at for one decision.
const LOOK: usize = 32;
/// A hop may be late by so much of its length before others go before it.
const LATE: u64 = 8;
/// And by this much in any case: microseconds.
const LATE_AT_LEAST: u64 = 20_000;

/// What is planned for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Planning {
    /// The number of the last plan that was asked for.
    version: u64,
    /// It, until it comes.
    asked: Option<Asked>,
    /// What is followed.
    followed: Option<Followed>,
    /// When one was asked for last, and for which fleet.
    asked_at: Option<UnixMillis>,
    fleet: u64,
    /// Why another is wanted.
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
    pub(crate) trials: Vec<(TrialId, Epoch)>,
    pub(crate) places: Vec<PlaceKey>,
}

/// A device of a host: its slots share one list.
pub(crate) type PlaceKey = (HostId, String);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Followed {
    /// How many hops were planned.
    hops: u64,
    /// When the last one ends, in microseconds of the server's clock.
    ends: u64,
    /// Each trial's hops, in order.
    trials: BTreeMap<TrialId, VecDeque<PlannedHop>>,
    /// Each place's hops, in order.
    lists: BTreeMap<HostId, BTreeMap<String, VecDeque<PlannedHop>>>,
}

/// A hop at its place, in microseconds of the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedHop {
    /// Its place among all of them, by their start, from 1.
    pub(crate) step: u64,
    pub(crate) trial: TrialId,
    pub(crate) epoch: Epoch,
    pub(crate) shard: ShardId,
    pub(crate) host: HostId,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl PlannedHop {
    /// Is the other one of the same trial's epoch?
    fn is_in_a_row_with(&self, next: &Self) -> bool {
        self.trial == next.trial && self.epoch == next.epoch
    }

    /// So long others wait for it, in microseconds of the server's clock.
    fn patience_until(&self) -> u64 {
        let patience = self.end.saturating_sub(self.start) / LATE + LATE_AT_LEAST;
        self.start.saturating_add(patience)
    }
}

/// What a plan says of an idle place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// It gets this hop, and with it so many more of the same trial's epoch.
    Take(PlannedHop, u32),
    /// What comes next for it is about to be open: it waits, at the most until then.
    Wait(UnixMillis),
    /// The plan says nothing of it.
    Nothing,
}

/// How a planned hop stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It can be granted.
    Open,
    /// Its trial is elsewhere, or not so far yet.
    Later,
    /// It is trained, or will never be.
    Over,
}

impl Planning {
    /// Asks for a plan; its number.
    pub(crate) fn ask(&mut self, asked: Asked) -> u64 {
        self.version += 1;
        self.asked_at = Some(asked.at);
        self.fleet = asked.fleet;
        self.asked = Some(asked);
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
        let wanted = std::mem::take(&mut self.wanted);
        let begin = asked.at.0.saturating_mul(1000);
        let ends = begin.saturating_add(schedule.makespan);
        if let Some(followed) = &self.followed
            && wanted != Wanted::Any
            && followed.ends.saturating_add(self.late) <= ends
        {
            return false;
        }
        let hops = u64::try_from(schedule.steps.len()).unwrap_or(u64::MAX);
        let mut followed = Followed { hops, ends, ..Followed::default() };
        self.late = 0;
        for (n, step) in (1..).zip(&schedule.steps) {
            let trial = usize::try_from(step.trial).ok().and_then(|n| asked.trials.get(n));
            let place = usize::try_from(step.place).ok().and_then(|n| asked.places.get(n));
            let (Some((trial, epoch)), Some((host, device))) = (trial, place) else { continue };
            let hop = PlannedHop {
                step: n,
                trial: *trial,
                epoch: Epoch(epoch.0 + step.epoch),
                shard: ShardId(step.shard),
                host: *host,
                start: begin + step.start,
                end: begin + step.end,
            };
            followed.trials.entry(*trial).or_default().push_back(hop);
            let of_host = followed.lists.entry(*host).or_default();
            of_host.entry(device.clone()).or_default().push_back(hop);
        }
        self.followed = Some(followed);
        true
    }

    /// What was planned holds no more; it is followed until another comes.
    pub(crate) fn outdated(&mut self) {
        self.wanted = Wanted::Any;
    }

    /// This is the fleet: one that the plan didn't know, perhaps.
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
    }

    /// Is another plan due, at the soonest `every` after the last one was asked for?
    pub(crate) fn is_due(&self, now: UnixMillis, every: Millis) -> bool {
        self.asked_at.is_none() || self.due_at(every).is_some_and(|at| at <= now)
    }

    /// When it will be, where it is wanted.
    pub(crate) fn due_at(&self, every: Millis) -> Option<UnixMillis> {
        let wanted = self.wanted > Wanted::No && self.asked.is_none();
        self.asked_at.filter(|_| wanted).map(|at| at + every)
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

    /// What the plan says of an idle place at `now`; `standing` of each hop is asked for in their order.
    pub(crate) fn advise(
        &self,
        host: HostId,
        device: &str,
        now: UnixMillis,
        standing: impl Fn(&PlannedHop) -> Standing,
    ) -> Advice {
        let Some(followed) = &self.followed else { return Advice::Nothing };
        let lists = followed.lists.get(&host);
        let Some(list) = lists.and_then(|lists| lists.get(device)) else { return Advice::Nothing };
        let micros = now.0.saturating_mul(1000);
        let left = || list.iter().filter(|hop| standing(hop) != Standing::Over);
        let is_next = |hop: &PlannedHop| {
            let mut of_trial = followed.trials.get(&hop.trial).into_iter().flatten();
            let next = of_trial.find(|other| standing(other) != Standing::Over);
            next.is_none_or(|next| next == hop || next.patience_until() <= micros)
        };
        let mut looked = 0;
        let mut before: Option<&PlannedHop> = None;
        for (n, hop) in left().enumerate() {
            if before.is_some_and(|before| before.is_in_a_row_with(hop)) {
                // What holds for the first of several in a row holds for all.
                continue;
            }
            before = Some(hop);
            looked += 1;
            if looked > LOOK {
                break;
            }
            if standing(hop) == Standing::Open && is_next(hop) {
                let further = left().skip(n + 1).take_while(|next| hop.is_in_a_row_with(next));
                return Advice::Take(*hop, u32::try_from(further.count()).unwrap_or(u32::MAX));
            }
            let until = hop.patience_until();
            if micros < until {
                return Advice::Wait(UnixMillis(until.div_ceil(1000)));
            }
        }
        Advice::Nothing
    }

    /// Whose turn it is with a trial.
    pub(crate) fn next_host(
        &self,
        trial: TrialId,
        standing: impl Fn(&PlannedHop) -> Standing,
    ) -> Option<HostId> {
        let mut hops = self.followed.as_ref()?.trials.get(&trial)?.iter();
        hops.find(|hop| standing(hop) != Standing::Over).map(|hop| hop.host)
    }

    /// Takes hops out of a place's and a trial's lists that are over.
    pub(crate) fn clear(
        &mut self,
        (host, device): (HostId, &str),
        trial: TrialId,
        standing: impl Fn(&PlannedHop) -> Standing,
    ) {
        let Some(followed) = &mut self.followed else { return };
        let of_host = followed.lists.get_mut(&host);
        let list = of_host.and_then(|lists| lists.get_mut(device));
        let of_trial = followed.trials.get_mut(&trial);
        for hops in list.into_iter().chain(of_trial) {
            while hops.front().is_some_and(|hop| standing(hop) == Standing::Over) {
                hops.pop_front();
            }
        }
    }
}
