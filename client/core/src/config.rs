//! The configuration of an agent, which stays for its life.

use crate::time::Micros;

/// How an agent works. Agents of equal hosts can share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The devices that units run on, and how many slots each has.
    pub devices: Vec<DeviceSlots>,
    /// Units that are asked for beside each slot's own, so that their blobs come while others run.
    pub units_ahead: u32,
    /// How long the server may hold a request for work.
    pub ask_wait: Micros,
    /// The longest pause between two attempts while the server is away.
    pub max_retry_pause: Micros,
    /// The shortest pause in asking for work after a fault that the next unit would meet too. Pauses grow while
    /// it lasts.
    pub min_cooldown: Micros,
    /// How long a shutdown takes at most.
    pub shutdown_time: Micros,
    /// How long work waits at the start for results of an earlier run to be delivered.
    pub head_start: Micros,
    /// The time after which the client ends by itself: it has held no unit for so long, or none has run while the
    /// server couldn't be reached. None: the client waits for work for ever.
    pub exit_when_idle: Option<Micros>,
}

/// A device and its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSlots {
    /// The device's name among the host's devices, as in [`sojourn_protocol::inventory::Device::name`].
    pub name: String,
    /// Units that run on it at once.
    pub slots: u32,
}

impl AgentConfig {
    /// The usual times, for these devices.
    #[must_use]
    pub fn new(devices: Vec<DeviceSlots>) -> Self {
        Self {
            devices,
            units_ahead: 1,
            ask_wait: Micros::from_secs(20),
            max_retry_pause: Micros::from_secs(30),
            min_cooldown: Micros::from_secs(5),
            shutdown_time: Micros::from_secs(10),
            head_start: Micros::from_secs(10),
            exit_when_idle: None,
        }
    }

    /// The index of a device.
    pub(crate) fn device(&self, name: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.name == name)
    }
}
