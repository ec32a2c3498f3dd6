//! Giving work to hosts: requests that wait, wake-ups, grants.
//!
//! | file | holds |
//! |---|---|
//! | `long_polls.rs` | requests for work that are held open |
//! | `sweep.rs` | checks of all waiting hosts, in batches |
//! | `delay.rs` | when a host is offered again what it left to others |
//! | `wake.rs` | which waiting hosts are looked at after a step |
//! | `poll.rs` | a request for work: what it is answered, or that it waits |
//! | `grant.rs` | leases for the slots of a host |

mod delay;
mod dispatcher;
mod grant;
mod long_polls;
mod poll;
mod sweep;
mod wake;

pub(crate) use delay::DelayTimers;
pub(crate) use dispatcher::Dispatcher;
pub(crate) use long_polls::LongPolls;
pub(crate) use sweep::Sweep;

use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
};
use sojourn_state::UnitKey;
use std::collections::BTreeMap;

/// Which waiting hosts may have something to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// All that could do with work: some may have become runnable.
    All,
    /// The hosts that work of this trial fits.
    Trial(JobId, TrialId),
    /// This host: its leases or reports have changed.
    Host(HostId),
}

/// The wake-ups since waiting hosts were last looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WakeUps {
    pub(crate) all: bool,
    pub(crate) trials: Vec<(JobId, TrialId)>,
    /// A host may be there several times.
    pub(crate) hosts: Vec<HostId>,
}

/// Hosts that wait for work, and when to look whether there is some.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Waiters {
    polls: LongPolls,
    sweep: Sweep,
    delays: DelayTimers,
    /// Open evaluations that are left to the host that produced their checkpoint, and since when.
    deferred_evaluations: BTreeMap<UnitKey, UnixMillis>,
    wakeups: WakeUps,
}

impl Waiters {
    /// Requests that are held open.
    pub(crate) fn polls(&self) -> &LongPolls {
        &self.polls
    }

    /// The same, to change them.
    pub(crate) fn polls_mut(&mut self) -> &mut LongPolls {
        &mut self.polls
    }

    /// Does a request of this host wait?
    pub(crate) fn waits(&self, host: HostId) -> bool {
        self.polls.waits(host)
    }

    /// Has waiting hosts looked at after this step.
    pub(crate) fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::All => self.wakeups.all = true,
            Wake::Trial(job, trial) => self.wakeups.trials.push((job, trial)),
            Wake::Host(host) => self.wakeups.hosts.push(host),
        }
    }

    /// A host has asked again, so it was told all that it had to hear.
    pub(crate) fn forget_wakeup(&mut self, host: HostId) {
        self.wakeups.hosts.retain(|woken| *woken != host);
    }

    /// Are waiting hosts to be looked at: since something has changed for them, or as a sweep is running?
    pub(crate) fn has_woken(&self) -> bool {
        let WakeUps { all, trials, hosts } = &self.wakeups;
        *all || !trials.is_empty() || !hosts.is_empty() || self.sweep.is_running()
    }

    /// An evaluation is left to the host that produced its checkpoint, if it wasn't before. The time counts from now.
    pub(crate) fn defer_evaluation(
        &mut self,
        unit: UnitKey,
        now: UnixMillis,
        is_open: impl Fn(&UnitKey) -> bool,
    ) {
        if !self.deferred_evaluations.contains_key(&unit) {
            self.deferred_evaluations.retain(|unit, _| is_open(unit));
            self.deferred_evaluations.insert(unit, now);
        }
    }

    /// Offers a host again at that time what it leaves to others now.
    pub(crate) fn offer_again(&mut self, host: HostId, at: UnixMillis) {
        self.delays.at(at, host);
    }

    /// Since when an evaluation is left to the host that produced its checkpoint.
    pub(crate) fn deferred_since(&self, unit: UnitKey) -> Option<UnixMillis> {
        self.deferred_evaluations.get(&unit).copied()
    }

    /// When waiting hosts are to be looked at next, whatever happens.
    pub(crate) fn next_deadline(&self) -> Option<UnixMillis> {
        let times = [self.polls.first_until(), self.delays.first(), self.sweep.next_batch()];
        times.into_iter().flatten().min()
    }
}
