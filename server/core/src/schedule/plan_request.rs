//! A plan that is requested: the trials and devices that its numbers stand for.

use sojourn_protocol::{
    ids::{Epoch, HostId, TrialId},
    time::UnixMillis,
};
use std::collections::BTreeMap;

/// A plan that is being made, with the trials and devices that its numbers stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanRequest {
    pub(crate) at: UnixMillis,
    pub(crate) fleet: u64,
    /// Moving a checkpoint takes time.
    pub(crate) migrates: bool,
    pub(crate) trials: Vec<(TrialId, Epoch)>,
    pub(crate) devices: Vec<DeviceId>,
    /// By host: when its first slot should be free, in microseconds of the server's clock.
    pub(crate) free: BTreeMap<HostId, u64>,
    /// By device: how much slower it is, as other jobs have planned hops there, relative to [`NO_CONTENTION`].
    pub(crate) contention: Vec<u64>,
}

/// The contention of a device for which no other job has planned anything.
pub(crate) const NO_CONTENTION: u64 = 1 << 10;

/// A device of a host: its slots share one list.
pub(crate) type DeviceId = (HostId, String);

impl PlanRequest {
    /// The request of a plan that there can't be: for this fleet none is requested again.
    pub(crate) fn empty(at: UnixMillis, fleet: u64) -> Self {
        let (trials, devices, contention) = (Vec::new(), Vec::new(), Vec::new());
        let free = BTreeMap::new();
        Self { at, fleet, migrates: false, trials, devices, free, contention }
    }
}
