//! The time since the machine was started, by a clock that nobody sets and that goes on while the machine sleeps.

use std::time::Duration;

/// The time since the machine was started (`CLOCK_BOOTTIME`). `std::time::Instant` stands still while the machine sleeps.
#[must_use]
pub(crate) fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}
