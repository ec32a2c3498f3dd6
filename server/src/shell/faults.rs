//! How long to pause after a failure, before the shell tries to go on.

use sojourn_http::Backoff;
use std::time::{Duration, Instant};

/// Ceilings of the first and the longest pause between attempts to go on after a failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// After this time without a fault, the next one is followed by the first pause again.
const FAULT_MEMORY: Duration = Duration::from_secs(60);

/// The core's faults so far.
#[derive(Debug)]
pub(super) struct Faults {
    last: Option<Instant>,
    backoff: Backoff,
}

/// Pauses between attempts to recover the state from the journal.
pub(super) fn recovery_backoff() -> Backoff {
    Backoff::from(FIRST_PAUSE, MAX_PAUSE)
}

impl Default for Faults {
    fn default() -> Self {
        Self { last: None, backoff: recovery_backoff() }
    }
}

impl Faults {
    /// The pause after a fault that has come now.
    pub(super) fn pause(&mut self) -> Duration {
        if self.last.is_some_and(|at| at.elapsed() >= FAULT_MEMORY) {
            self.backoff.reset();
        }
        self.last = Some(Instant::now());
        self.backoff.next(None)
    }
}
