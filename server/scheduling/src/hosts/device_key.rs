//! A device as estimates know it, and the pace by which devices are compared.

use sojourn_protocol::ids::HostId;

/// The pace of a device of the reference speed. Slower ones have a larger one.
pub const PACE_ONE: u64 = 1 << 32;

/// A device, as estimates know it.
#[derive(Debug, Clone, Copy)]
pub struct DeviceKey<'a> {
    /// The host.
    pub host: HostId,
    /// The name of the host's device.
    pub device: &'a str,
    /// Operations per second in its common class, as the device reports.
    pub flops: f64,
    /// How fast it is in the class that it computes in, in thousandths of its speed in its common class. All figures of a
    /// device are kept as of its common class.
    pub speed: u64,
}
