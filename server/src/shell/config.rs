//! The shell's settings.

use sojourn_core::{CoreConfig, InvariantSet};

/// The shell's settings.
#[derive(Debug, Clone, Copy)]
pub struct ShellConfig {
    /// The core's.
    pub core: CoreConfig,
    /// Invariants that the recovered state may break: an operator has said that it is served nevertheless.
    pub accept: InvariantSet,
    /// A snapshot is made after this many events.
    pub snapshot_every: u64,
    /// How many of the last events are kept for people to read when a snapshot allows a trim.
    pub keep_events: u64,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self {
            core: CoreConfig::default(),
            accept: InvariantSet::default(),
            snapshot_every: 50_000,
            keep_events: 1_000_000,
        }
    }
}
