//! A plan that is requested: the trials and devices that its numbers stand for.

use sojourn_protocol::{
    cross_validation::Fold,
    ids::{Epoch, HostId, TrialId},
    time::UnixMillis,
};
use std::collections::BTreeMap;

/// A plan that is being made, with the trials and devices that its numbers stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// When the plan was requested.
    pub at: UnixMillis,
    /// The version of the fleet that it is for.
    pub fleet: u64,
    /// Moving a checkpoint takes time.
    pub migrates: bool,
    /// The trials of the problem in its order, each with the epoch in which its chain stands.
    pub trials: Vec<(TrialId, Epoch)>,
    /// The folds whose shards trials don't visit: a problem's later epochs have all shards.
    pub folds: BTreeMap<TrialId, Fold>,
    /// The devices of the problem in its order.
    pub devices: Vec<DeviceId>,
    /// By host: when its first slot should be free, in microseconds of the server's clock.
    pub free: BTreeMap<HostId, u64>,
    /// By device: how much slower it is, as other jobs have planned hops there, relative to [`NO_CONTENTION`].
    pub contention: Vec<u64>,
    /// Many of the devices were never measured.
    pub is_guessed: bool,
}

/// The contention of a device for which no other job has planned anything.
pub(super) const NO_CONTENTION: u64 = 1 << 10;

/// A device of a host: its slots share one list.
pub(super) type DeviceId = (HostId, String);

impl PlanRequest {
    /// The request of a plan that there can't be: for this fleet none is requested again.
    pub fn empty(at: UnixMillis, fleet: u64) -> Self {
        let (trials, devices, contention) = (Vec::new(), Vec::new(), Vec::new());
        let (free, folds) = (BTreeMap::new(), BTreeMap::new());
        Self {
            at,
            fleet,
            migrates: false,
            trials,
            folds,
            devices,
            free,
            contention,
            is_guessed: false,
        }
    }
}
