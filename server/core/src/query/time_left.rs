//! How long a job has to go.

use super::Views;
use sojourn_protocol::{quantity::mul_div, time::Millis, view::TimeLeft};
use sojourn_scheduling::hosts::training_time;
use sojourn_state::Job;

/// How long a job has to go, if it had all slots of the hosts in contact to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remaining {
    /// The longest trial on the fastest slot.
    pub(super) longest: Millis,
    /// All its work on all slots.
    pub(super) all: Millis,
    /// By the mean time of its hops so far. None before its first hop.
    pub(super) expected: Option<Millis>,
}

impl From<Remaining> for TimeLeft {
    fn from(Remaining { longest, all, expected }: Remaining) -> Self {
        let at_least = longest.max(all);
        Self { at_least, expected: expected.map(|time| time.max(at_least)) }
    }
}

impl Views<'_> {
    /// How long a job has to go, of whose hops so many are done.
    pub(super) fn time_left(&self, job: &Job, hops: u64) -> Option<Remaining> {
        if !job.is_running() || job.paused_at.is_some() {
            return None;
        }
        let (fleet, remaining) = (self.hosts.fleet(), self.index.remaining(job.id)?);
        if fleet.slots() == 0 || remaining.total() == 0 {
            return None;
        }
        let longest = training_time(remaining.longest(), fleet.fastest(None));
        let total = training_time(remaining.total(), fleet.capacity());
        let left = remaining.trials().filter_map(|trial| {
            let chain = &job.trial(trial)?.chain;
            let all = u64::from(chain.epochs()).saturating_mul(chain.hops_per_epoch());
            Some(all.saturating_sub(chain.hops()))
        });
        let (all, most) = left.fold((0, 0), |(all, most): (u64, u64), left| {
            (all.saturating_add(left), most.max(left))
        });
        // All hops on all slots, or those of the trial that has most of them, one after the other.
        let rounds = all.div_ceil(fleet.slots()).max(most);
        let expected = (hops > 0).then(|| mul_div(job.counters.train_micros, rounds, hops));
        let millis = |micros: u64| Millis(micros.div_ceil(1000));
        Some(Remaining {
            longest: millis(longest),
            all: millis(total),
            expected: expected.map(millis),
        })
    }
}
