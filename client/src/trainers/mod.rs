//! The trainers of the machine: the devices that they compute on, and the watch over each unit.

pub(crate) mod cpu_share;
pub(crate) mod devices;
pub(crate) mod gpus;
pub(crate) mod last_failure;
pub(crate) mod pool;
pub(crate) mod runner;
pub(crate) mod slot_runner;
pub(crate) mod usage;
pub(crate) mod watchdog;
