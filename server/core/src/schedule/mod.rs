//! What decisions about hops rest on: who is there, how long things take, what is left.
//!
//! | file | holds |
//! |---|---|
//! | `estimate/` | how long units take, measured and guessed |
//! | `fleet.rs` | the hosts in contact, their slots and speeds |
//! | `homes.rs` | which hosts keep which shard, where replicas are fixed |
//! | `followed.rs` | the plan that is followed |
//! | `look_again.rs` | when idle places may take what they left to others |
//! | `planning.rs` | when another one is asked for |
//! | `ranks.rs` | each job's trials by the work that they have left |
//!
//! All of it is soft: it comes back by itself after a start. Which hop a place gets is decided in
//! `handle/hop.rs`.

mod estimate;
mod fleet;
mod followed;
mod homes;
mod look_again;
mod planning;
mod ranks;

pub(crate) use estimate::{Estimates, PACE_ONE, PlaceName};
pub(crate) use fleet::{Fleet, FleetPlace, SPEED_ONE, look_after, takes};
pub(crate) use followed::{Advice, HopStatus, PlannedHop};
pub(crate) use homes::{Homes, Keeper};
pub(crate) use look_again::LookAgain;
pub(crate) use planning::{ALONE, Asked, PlaceKey, Planning};
pub(crate) use ranks::{Left, Ranks};

use sojourn_protocol::{
    ids::{HostId, JobId},
    time::UnixMillis,
};
use std::collections::{BTreeMap, BTreeSet};

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Schedule {
    /// For which fleet and how many trials it was last decided how results are taken in; none where it is to be
    /// decided anew.
    pub(crate) ordered: Option<(u64, usize)>,
    /// How long units take.
    pub(crate) estimates: Estimates,
    /// Who is there.
    pub(crate) fleet: Fleet,
    /// What is left, by job.
    pub(crate) ranks: BTreeMap<JobId, Ranks>,
    /// Where shards are kept, of jobs that fix their replicas.
    pub(crate) homes: BTreeMap<JobId, Homes>,
    /// The fleet that they were assigned for, and who rested then.
    pub(crate) housed: (u64, BTreeSet<HostId>),
    /// Plans, by job.
    pub(crate) plans: BTreeMap<JobId, Planning>,
    /// Jobs that have something to train, and how often others had before.
    pub(crate) sharing: (Vec<JobId>, u64),
    /// When to look whether second copies of hops are worth while, and when that was done last.
    pub(crate) copies_at: Option<UnixMillis>,
    pub(crate) copies_looked: UnixMillis,
    /// When an idle place may take what it left to others.
    pub(crate) look_again: LookAgain,
}

impl Schedule {
    /// Of the jobs that have something to train, these share the fleet from now on.
    pub(crate) fn share(&mut self, is_open: impl Fn(JobId) -> bool) {
        let jobs = || self.ranks.keys().copied().filter(|job| is_open(*job));
        if !jobs().eq(self.sharing.0.iter().copied()) {
            self.sharing = (jobs().collect(), self.sharing.1 + 1);
        }
    }

    /// The number of the fleet and of those who share it: what was planned for another one is stale.
    #[must_use]
    pub(crate) fn version(&self) -> u64 {
        self.fleet.version() + self.sharing.1
    }
}
