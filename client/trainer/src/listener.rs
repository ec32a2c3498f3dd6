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

    /// Is it time to say what the unit takes of the machine?
    fn wants_usage(&self) -> bool {
        false
    }

    /// The unit has gone on; `loss` is the mean over the rows of the batches since this was last said.
    fn say_usage(&mut self, _loss: Option<f64>) {}

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
