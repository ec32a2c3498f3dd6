//! Live leases: their deadlines, and those that hosts hold before they are granted.
//!
//! | file | holds |
//! |---|---|
//! | `deadline.rs` | when each live lease runs out, and how far it is |
//! | `bounds.rs` | its absolute end, and how much of a report is believed |
//! | `new_deadline.rs` | the deadline of a new lease |
//! | `occupancy.rs` | when running work ends |
//! | `lines.rs` | when bytes that are on the lines of hosts have arrived |
//! | `provisional.rs` | leases that are granted when the result before them was taken in |
//! | `continued.rs` | the hop that a host may train next while its result is uploaded |
//! | `message.rs` | a lease as its host gets it |
//! | `trial_losses.rs` | training losses of trials that stay on hosts |
//! | `trial_cpu_shares.rs` | what goes with a trial whose CPU shares follow a policy |
//! | `running_units.rs` | what hosts have said last of the units that they run, to be shown |

mod bounds;
mod continued;
mod deadline;
mod lines;
mod message;
mod new_deadline;
mod occupancy;
mod provisional;
mod running_units;
mod trial_cpu_shares;
mod trial_losses;

pub use continued::{ContinuedTrial, ResultBefore};
pub use deadline::{Deadline, Deadlines, StopRequest};
pub use message::hop_message;
pub use occupancy::Occupancy;
pub use provisional::{ProvisionalLease, ProvisionalLeases};

use running_units::{RunningUnit, RunningUnits};
use sojourn_protocol::{api::Held, ids::LeaseId, time::UnixMillis};
use std::collections::{BTreeMap, BTreeSet};
use trial_cpu_shares::TrialCpuShares;
use trial_losses::TrialLosses;

/// The soft state of leases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leases {
    deadlines: Deadlines,
    provisional: ProvisionalLeases,
    /// Leases that ran out and that their host still runs: batches done, and since when.
    overrunning: BTreeMap<LeaseId, (u32, UnixMillis)>,
    /// Leases that ran out and that their host was told to drop: what was uploaded under them is gone.
    dropped_uploads: BTreeSet<LeaseId>,
    cpu_shares: TrialCpuShares,
    losses: TrialLosses,
    running: RunningUnits,
}

impl Leases {
    /// When live leases run out.
    pub fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// The same, to change them.
    pub fn deadlines_mut(&mut self) -> &mut Deadlines {
        &mut self.deadlines
    }

    /// The deadline of a live lease.
    pub fn deadline(&self, lease: LeaseId) -> Option<&Deadline> {
        self.deadlines.get(lease)
    }

    /// A lease is live no more.
    pub fn end(&mut self, lease: LeaseId) {
        self.deadlines.clear(lease);
        self.running.end(lease);
    }

    /// The last report of a live lease's host on its unit, where that runs.
    pub fn running_unit(&self, lease: LeaseId) -> RunningUnit {
        self.running.of(lease)
    }

    /// A host has reported on a lease's unit.
    pub fn heard(&mut self, held: &Held) {
        self.running.heard(held);
    }

    /// Live leases of whose running units something is known.
    pub fn running_units(&self) -> impl Iterator<Item = LeaseId> {
        self.running.leases()
    }

    /// Leases that hosts hold before they are granted.
    pub fn provisional(&self) -> &ProvisionalLeases {
        &self.provisional
    }

    /// The same, to change them.
    pub fn provisional_mut(&mut self) -> &mut ProvisionalLeases {
        &mut self.provisional
    }

    /// The CPU shares that go with trials for which a policy sets them.
    pub fn cpu_shares(&self) -> &TrialCpuShares {
        &self.cpu_shares
    }

    /// The same, to change it.
    pub fn cpu_shares_mut(&mut self) -> &mut TrialCpuShares {
        &mut self.cpu_shares
    }

    /// Training losses of trials that stay on hosts, to take in and to look at.
    pub fn losses_mut(&mut self) -> &mut TrialLosses {
        &mut self.losses
    }

    /// A host runs a lease that ran out, and has done so many batches of it.
    pub fn watch_overrun(&mut self, lease: LeaseId, done: u32, now: UnixMillis) {
        let seen = self.overrunning.entry(lease).or_insert((done, now));
        if done > seen.0 {
            *seen = (done, now);
        }
    }

    /// No host runs a lease any more that ran out.
    pub fn end_overrun(&mut self, lease: LeaseId) {
        self.overrunning.remove(&lease);
    }

    /// Since when a lease that ran out has made no progress.
    pub fn overrun_since(&self, lease: LeaseId) -> Option<UnixMillis> {
        self.overrunning.get(&lease).map(|(_, since)| *since)
    }

    /// The upload of a lease is thrown away.
    pub fn drop_upload(&mut self, lease: LeaseId) {
        self.dropped_uploads.insert(lease);
    }

    /// A lease was reported: what is uploaded under it now counts.
    pub fn reported(&mut self, lease: LeaseId) {
        self.end_overrun(lease);
        self.dropped_uploads.remove(&lease);
    }

    /// Was what had been uploaded under a lease thrown away?
    pub fn was_upload_dropped(&self, lease: LeaseId) -> bool {
        self.dropped_uploads.contains(&lease)
    }

    /// Forgets dropped uploads of leases that are forgotten themselves.
    pub fn forget_dropped_uploads(&mut self, is_known: impl Fn(LeaseId) -> bool) {
        self.dropped_uploads.retain(|lease| is_known(*lease));
    }
}
