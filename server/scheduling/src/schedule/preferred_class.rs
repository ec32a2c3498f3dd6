//! Which numeric class each job prefers, where devices offer several.
//!
//! A device that offers the preferred class trains new trials of the job in it, another device trains them in its fastest
//! one. So two choices matter: a fast class, in which fast devices train trials of their own, or the common one, in which
//! all devices share every trial. The class is taken with which the job is estimated to end first. Trials stay in the class
//! that they are in.

use crate::{
    hosts::{DeviceClasses, training_time},
    index::RemainingWorkIndex,
    schedule::Eligibility,
};
use sojourn_protocol::{digest::Digest, spec::Replicas};
use sojourn_state::{Job, Trial};
use std::{cmp::Reverse, collections::BTreeMap};

/// A slower class is preferred where the job ends sooner by this part.
const MIN_GAIN_PART: u64 = 256;

/// The devices that work in one class, and the trials in it.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// The speeds of all slots together.
    capacity: u64,
    /// The speed of the fastest.
    fastest: u64,
    /// The work of all trials, in microseconds at the reference speed.
    load: u64,
    /// The work of the longest that only one slot trains at a time.
    longest: u64,
}

impl Group {
    /// When its trials end, if its slots share them without loss.
    fn end(self) -> u64 {
        training_time(self.load, self.capacity).max(training_time(self.longest, self.fastest))
    }

    /// The same with one more trial.
    fn with(self, trial: TrialWork) -> Self {
        Self {
            load: self.load.saturating_add(trial.work),
            longest: self.longest.max(trial.in_a_row),
            ..self
        }
    }
}

/// The remaining work of a trial.
#[derive(Debug, Clone, Copy)]
struct TrialWork {
    work: u64,
    /// The part of it that only one slot trains at a time.
    in_a_row: u64,
    /// The class that it is in already.
    class: Option<Digest>,
}

/// How a job would go with a preferred class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outlook {
    /// Trials in a class in which no device works then.
    waiting: usize,
    /// Groups of devices that each keep all shards, where the job fixes its replicas.
    groups: usize,
    /// Microseconds until it ends.
    end: u64,
}

impl Outlook {
    /// Is it better than with a faster class? Ends that differ by no more than what speeds are known to are equal.
    fn is_better(self, faster: Self) -> bool {
        let kept = (self.waiting, self.groups).cmp(&(faster.waiting, faster.groups));
        kept.then(self.end.saturating_add(self.end / MIN_GAIN_PART).cmp(&faster.end)).is_lt()
    }
}

impl Eligibility<'_> {
    /// The class that a job prefers. `None` where every device works in its fastest one.
    pub fn preferred_class(&self, job: &Job, remaining: &RemainingWorkIndex) -> Option<Digest> {
        if !job.spec.placement.reproducible {
            return None;
        }
        let trials: Vec<TrialWork> = remaining
            .running()
            .filter_map(|(id, _)| {
                let trial = job.trial(id)?;
                Some(self.work_of(job, trial, remaining.work_of(id)))
            })
            .collect();
        let mut candidates: BTreeMap<Digest, u64> = BTreeMap::new();
        let pools = || self.hosts.fleet().hosts().flat_map(|(_, pools)| pools);
        for offered in pools().filter(|pool| pool.classes.is_choice()) {
            for of in offered.classes.iter().filter(|of| self.cost.is_proved(job, of.class)) {
                let fastest = candidates.entry(of.class).or_default();
                *fastest = of.speed.max(*fastest);
            }
        }
        let mut candidates: Vec<(Reverse<u64>, Digest)> =
            candidates.into_iter().map(|(class, speed)| (Reverse(speed), class)).collect();
        candidates.sort_unstable();
        let outlooks =
            candidates.into_iter().map(|(_, class)| (class, self.outlook(job, &trials, class)));
        // The fastest comes first.
        let best = outlooks.reduce(|best, next| if next.1.is_better(best.1) { next } else { best });
        best.map(|(class, _)| class)
    }

    fn work_of(&self, job: &Job, trial: &Trial, work: u64) -> TrialWork {
        // Where trials may be merged, a trial isn't bound to one slot at a time.
        let in_a_row = if job.spec.placement.may_merge() { 0 } else { work };
        let class = self.state.required_class(job, trial);
        let class = class.or_else(|| self.state.in_hand(trial).find_map(|lease| lease.class));
        TrialWork { work, in_a_row, class }
    }

    fn outlook(&self, job: &Job, trials: &[TrialWork], preferred: Digest) -> Outlook {
        let works_in = |classes: &DeviceClasses| match classes.offers(preferred) {
            true => preferred,
            false => self.cost.proved_class(job, classes).unwrap_or(classes.fastest().class),
        };
        let mut groups: BTreeMap<Digest, Group> = BTreeMap::new();
        for pool in self.hosts.fleet().hosts().flat_map(|(_, pools)| pools) {
            let class = works_in(&pool.classes);
            let speed = pool.classes.speed_in(class, pool.speed);
            let group = groups.entry(class).or_default();
            let all = speed.saturating_mul(u64::from(pool.slots));
            group.capacity = group.capacity.saturating_add(all);
            group.fastest = group.fastest.max(speed);
        }
        let mut waiting = 0;
        for (trial, class) in trials.iter().filter_map(|trial| Some((trial, trial.class?))) {
            match groups.get_mut(&class) {
                Some(group) => *group = group.with(*trial),
                None => waiting += 1,
            }
        }
        // The longest first, each to the class that then ends first.
        for trial in trials.iter().filter(|trial| trial.class.is_none()) {
            let begin = groups.iter_mut().filter(|(class, _)| self.cost.is_proved(job, **class));
            let best = begin.map(|(_, group)| group).min_by_key(|group| group.with(*trial).end());
            if let Some(group) = best {
                *group = group.with(*trial);
            }
        }
        let is_fixed = matches!(job.spec.placement.replicas, Replicas::Fixed(_));
        let end = groups.values().map(|group| group.end()).max().unwrap_or(0);
        Outlook { waiting, groups: if is_fixed { groups.len() } else { 0 }, end }
    }
}
