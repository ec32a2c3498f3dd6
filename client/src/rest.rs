//! A pause in asking for work after trouble on this machine (a full disk, no trainer): units would only
//! come back unfinished. What is held already goes on.

use crate::backoff::Backoff;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The first rest, and the shortest.
const SHORTEST: Duration = Duration::from_secs(5);
/// The longest that rests grow to.
const LONGEST: Duration = Duration::from_secs(300);

/// Whether the machine rests.
#[derive(Debug)]
pub(crate) struct Rest(Mutex<State>);

#[derive(Debug)]
struct State {
    backoff: Backoff,
    until: Option<Instant>,
}

impl Rest {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { backoff: Backoff::new(LONGEST), until: None }))
    }

    /// There was trouble: rests anew, longer each time. Gives how long.
    pub(crate) fn begin(&self) -> Duration {
        let mut state = self.lock();
        let pause = state.backoff.next(Some(SHORTEST));
        state.until = Some(Instant::now() + pause);
        pause
    }

    /// A unit went well.
    pub(crate) fn well(&self) {
        self.lock().backoff.reset();
    }

    /// Waits until nothing speaks against asking.
    pub(crate) async fn over(&self) {
        loop {
            let until = self.lock().until;
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn trouble_rests_the_machine_for_a_while() {
        let rest = Rest::new();
        assert_eq!(rest.over().now_or_never(), Some(()));
        for _ in 0..20 {
            let pause = rest.begin();
            assert!(pause >= SHORTEST && pause <= LONGEST);
            assert_eq!(rest.over().now_or_never(), None);
        }
    }
}
