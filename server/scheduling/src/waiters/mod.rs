//! Hosts that wait for work, and which of them are looked at after a step.
//!
//! | file | holds |
//! |---|---|
//! | `long_polls.rs` | requests for work that are held open |
//! | `sweep.rs` | checks of all waiting hosts, in batches |
//! | `delay.rs` | when a host is offered again what it left to others |

mod delay;
mod long_polls;
mod sweep;

pub use delay::DelayTimers;
pub use long_polls::{LongPoll, LongPolls, Rank};
pub use sweep::{SWEEP_BATCH, Sweep};

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
};
use sojourn_state::{Change, UnitKey};
use std::collections::BTreeMap;

/// Names the caller who waits for a reply. Its meaning is the shell's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
pub struct ReplyTo(pub u64);

/// Which waiting hosts may have something to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// All that could do with work: some may have become runnable.
    All,
    /// The hosts that work of this trial fits.
    Trial(JobId, TrialId),
    /// This host: its leases or reports have changed.
    Host(HostId),
}

/// The wake-ups since waiting hosts were last looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WakeUps {
    /// All waiting hosts are looked at.
    pub all: bool,
    /// Trials whose work waiting hosts are offered.
    pub trials: Vec<(JobId, TrialId)>,
    /// A host may be there several times.
    pub hosts: Vec<HostId>,
}

/// Hosts that wait for work, and when to look whether there is some.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiters {
    polls: LongPolls,
    sweep: Sweep,
    delays: DelayTimers,
    /// Open evaluations that are left to other hosts, and since when.
    deferred_evaluations: BTreeMap<UnitKey, UnixMillis>,
    wakeups: WakeUps,
}

impl Waiters {
    /// Requests that are held open.
    pub fn polls(&self) -> &LongPolls {
        &self.polls
    }

    /// The same, to change them.
    pub fn polls_mut(&mut self) -> &mut LongPolls {
        &mut self.polls
    }

    /// Does a request of this host wait?
    pub fn waits(&self, host: HostId) -> bool {
        self.polls.waits(host)
    }

    /// Has waiting hosts looked at after this step.
    pub fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::All => self.wakeups.all = true,
            Wake::Trial(job, trial) => self.wakeups.trials.push((job, trial)),
            Wake::Host(host) => self.wakeups.hosts.push(host),
        }
    }

    /// A host has asked again, so it was told all that it had to hear.
    pub fn forget_wakeup(&mut self, host: HostId) {
        self.wakeups.hosts.retain(|woken| *woken != host);
    }

    /// Are waiting hosts to be looked at: since something has changed for them, or as a sweep is running?
    pub fn has_woken(&self) -> bool {
        let WakeUps { all, trials, hosts } = &self.wakeups;
        *all || !trials.is_empty() || !hosts.is_empty() || self.sweep.is_running()
    }

    /// An evaluation is left to the host that produced its checkpoint, if it wasn't before. The time counts from now.
    pub fn defer_evaluation(
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
    pub fn offer_again(&mut self, host: HostId, at: UnixMillis) {
        self.delays.at(at, host);
    }

    /// Since when an evaluation is left to other hosts.
    pub fn deferred_since(&self, unit: UnitKey) -> Option<UnixMillis> {
        self.deferred_evaluations.get(&unit).copied()
    }

    /// When waiting hosts are to be looked at next, whatever happens.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        let times = [self.polls.first_until(), self.delays.first(), self.sweep.next_batch()];
        times.into_iter().flatten().min()
    }

    /// Takes out the wake-ups since waiting hosts were last looked at.
    pub fn take_wakeups(&mut self) -> WakeUps {
        std::mem::take(&mut self.wakeups)
    }

    /// The check of all waiting hosts in batches.
    pub fn sweep_mut(&mut self) -> &mut Sweep {
        &mut self.sweep
    }

    /// Has the waiting hosts looked at for which something has changed: units may have become runnable, or a host's lease has
    /// ended.
    pub fn take_note(&mut self, change: Change) {
        match change {
            Change::LeaseEnded { host, .. } => {
                self.wake(Wake::Host(host));
                self.wake(Wake::All);
            }
            Change::Runnable(None) => self.wake(Wake::All),
            Change::Runnable(Some((job, trial))) => self.wake(Wake::Trial(job, trial)),
            Change::Work { .. }
            | Change::LeaseGranted(_)
            | Change::Reported(_)
            | Change::ResultSettled { .. }
            | Change::NothingFollows(_)
            | Change::Job(_)
            | Change::WallTime => {}
        }
    }

    /// Looks again at hosts that left something to others for as long as that was expected to take.
    pub fn expire_delays(&mut self, now: UnixMillis) {
        let due = self.delays.take_due(now);
        if due.is_empty() {
            return;
        }
        if self.fit_one_step() {
            self.delays.clear();
            self.wake(Wake::All);
        } else {
            due.into_iter().for_each(|host| self.wake(Wake::Host(host)));
        }
    }

    /// Are the waiting hosts so few that all of them can be looked at in one step?
    pub fn fit_one_step(&self) -> bool {
        self.polls.count() <= SWEEP_BATCH
    }
}
