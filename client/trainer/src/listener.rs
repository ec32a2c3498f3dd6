//! Listeners to a running unit.

use sojourn_protocol::{digest::Digest, quantity::Micros, trainer::TrainerUpdate};
use std::{
    ops::ControlFlow,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Gets the news of a running unit.
pub(crate) trait Listener {
    /// Takes an update. It may stop the hop; else it returns how long it has paused the unit.
    fn update(&mut self, update: TrainerUpdate) -> ControlFlow<(), Duration>;

    /// Waits for a pending shard, and returns its file; `None` where the hop is to stop instead.
    fn wait_for(&mut self, blob: Digest) -> Option<PathBuf>;
}

/// A closure takes updates; no shards arrive there.
impl<F: FnMut(TrainerUpdate) -> ControlFlow<(), Duration>> Listener for F {
    fn update(&mut self, update: TrainerUpdate) -> ControlFlow<(), Duration> {
        self(update)
    }

    fn wait_for(&mut self, _: Digest) -> Option<PathBuf> {
        None
    }
}

/// Microseconds since a unit started.
pub(crate) fn micros(started: Instant) -> u64 {
    Micros::from(started.elapsed()).0
}
