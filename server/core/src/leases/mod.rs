//! Live leases: their deadlines, and those that hosts hold before they are granted.
//!
//! | file | holds |
//! |---|---|
//! | `deadline.rs` | when each live lease runs out, and how far it is |
//! | `bounds.rs` | its absolute end, and how much of a report is believed |
//! | `new_deadline.rs` | the deadline of a new lease |
//! | `provisional.rs` | leases that are granted when the result before them was taken in |
//! | `heartbeat.rs` | presence and progress |
//! | `release.rs`, `close.rs` | ends without a report |
//! | `access.rs` | what a host may upload and read |
//! | `confirm.rs` | how a provisional lease becomes a granted one |
//! | `message.rs` | a lease as its host gets it |
//! | `trial_losses.rs` | training losses of trials that stay on hosts |
//! | `trial_shares.rs` | what goes with a trial whose shares of a host follow a policy |
//! | `running_units.rs` | what hosts have said last of the units that they run, to be shown |

mod access;
mod bounds;
mod close;
mod confirm;
mod deadline;
mod handler;
mod heartbeat;
mod message;
mod new_deadline;
mod provisional;
mod release;
mod running_units;
mod trial_losses;
mod trial_shares;

pub(crate) use confirm::{ContinuedTrial, ResultBefore};
pub(crate) use deadline::{Deadline, Deadlines};
pub(crate) use handler::LeaseHandler;
pub(crate) use message::hop_message;
pub(crate) use provisional::{ProvisionalLease, ProvisionalLeases};
pub(crate) use release::FREE_RELEASES;

use running_units::{RunningUnit, RunningUnits};
use sojourn_protocol::{ids::LeaseId, time::UnixMillis};
use std::collections::{BTreeMap, BTreeSet};
use trial_losses::TrialLosses;
use trial_shares::TrialShares;

/// The soft state of leases.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Leases {
    deadlines: Deadlines,
    provisional: ProvisionalLeases,
    /// Leases that ran out and that their host still runs: batches done, and since when.
    overrunning: BTreeMap<LeaseId, (u32, UnixMillis)>,
    /// Leases that ran out and that their host was told to drop: what was uploaded under them is gone.
    dropped_uploads: BTreeSet<LeaseId>,
    shares: TrialShares,
    losses: TrialLosses,
    running: RunningUnits,
}

impl Leases {
    /// When live leases run out.
    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// The same, to change them.
    pub(crate) fn deadlines_mut(&mut self) -> &mut Deadlines {
        &mut self.deadlines
    }

    /// The deadline of a live lease.
    pub(crate) fn deadline(&self, lease: LeaseId) -> Option<&Deadline> {
        self.deadlines.get(lease)
    }

    /// A lease is live no more.
    pub(crate) fn end(&mut self, lease: LeaseId) {
        self.deadlines.clear(lease);
        self.running.end(lease);
    }

    /// The last report of a live lease's host on its unit, where that runs.
    pub(crate) fn running_unit(&self, lease: LeaseId) -> RunningUnit {
        self.running.of(lease)
    }

    /// Live leases of whose running units something is known.
    pub(crate) fn running_units(&self) -> impl Iterator<Item = LeaseId> {
        self.running.leases()
    }

    /// Leases that hosts hold before they are granted.
    pub(crate) fn provisional(&self) -> &ProvisionalLeases {
        &self.provisional
    }

    /// The same, to change them.
    pub(crate) fn provisional_mut(&mut self) -> &mut ProvisionalLeases {
        &mut self.provisional
    }

    /// The shares that go with trials whose shares of a host follow a policy.
    pub(crate) fn shares(&self) -> &TrialShares {
        &self.shares
    }

    /// The same, to change it.
    pub(crate) fn shares_mut(&mut self) -> &mut TrialShares {
        &mut self.shares
    }

    /// Training losses of trials that stay on hosts, to take in and to look at.
    pub(crate) fn losses_mut(&mut self) -> &mut TrialLosses {
        &mut self.losses
    }

    /// A host runs a lease that ran out, and has done so many batches of it.
    pub(crate) fn watch_overrun(&mut self, lease: LeaseId, done: u32, now: UnixMillis) {
        let seen = self.overrunning.entry(lease).or_insert((done, now));
        if done > seen.0 {
            *seen = (done, now);
        }
    }

    /// No host runs a lease any more that ran out.
    pub(crate) fn end_overrun(&mut self, lease: LeaseId) {
        self.overrunning.remove(&lease);
    }

    /// Since when a lease that ran out has made no progress.
    pub(crate) fn overrun_since(&self, lease: LeaseId) -> Option<UnixMillis> {
        self.overrunning.get(&lease).map(|(_, since)| *since)
    }

    /// The upload of a lease is thrown away.
    pub(crate) fn drop_upload(&mut self, lease: LeaseId) {
        self.dropped_uploads.insert(lease);
    }

    /// A lease was reported: what is uploaded under it now counts.
    pub(crate) fn reported(&mut self, lease: LeaseId) {
        self.end_overrun(lease);
        self.dropped_uploads.remove(&lease);
    }

    /// Was what had been uploaded under a lease thrown away?
    pub(crate) fn was_upload_dropped(&self, lease: LeaseId) -> bool {
        self.dropped_uploads.contains(&lease)
    }

    /// Forgets dropped uploads of leases that are forgotten themselves.
    pub(crate) fn forget_dropped_uploads(&mut self, is_known: impl Fn(LeaseId) -> bool) {
        self.dropped_uploads.retain(|lease| is_known(*lease));
    }
}
