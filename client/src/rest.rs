//! A pause in asking for work after trouble that the next unit would meet too (a full disk, no trainer, a
//! blob that can't be had): units would only come back unfinished. What is held already goes on.

use sojourn_http::Backoff;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The longest that rests grow to.
const LONGEST: Duration = Duration::from_secs(300);

/// Whether the machine rests.
#[derive(Debug)]
pub(crate) struct Rest {
    shortest: Duration,
    state: Mutex<State>,
    called_off: Notify,
}

#[derive(Debug)]
struct State {
    backoff: Backoff,
    until: Option<Instant>,
    /// What the trouble is.
    reason: String,
}

impl Rest {
    /// No rest yet; the first, and each, takes `shortest` at least.
    pub(crate) fn new(shortest: Duration) -> Self {
        let state = State { backoff: Backoff::new(LONGEST), until: None, reason: String::new() };
        Self { shortest, state: Mutex::new(state), called_off: Notify::new() }
    }

    /// There was trouble: rests anew, longer each time. Gives how long.
    pub(crate) fn begin(&self, reason: &str) -> Duration {
        let mut state = self.lock();
        reason.clone_into(&mut state.reason);
        let pause = state.backoff.next(Some(self.shortest));
        state.until = Some(Instant::now() + pause);
        pause
    }

    /// For how long yet, and what the trouble is; none where nothing speaks against asking.
    pub(crate) fn left(&self) -> Option<(Duration, String)> {
        let state = self.lock();
        let left = state.until?.checked_duration_since(Instant::now())?;
        Some((left, state.reason.clone()))
    }

    /// There was no trouble after all.
    pub(crate) fn call_off(&self) {
        self.lock().until = None;
        self.called_off.notify_waiters();
    }

    /// A unit went well.
    pub(crate) fn well(&self) {
        self.lock().backoff.reset();
    }

    /// Waits until nothing speaks against asking.
    pub(crate) async fn over(&self) {
        loop {
            // Before the look: what is called off after it is heard.
            let called_off = self.called_off.notified();
            let until = self.lock().until;
            match until {
                Some(until) if until > Instant::now() => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = called_off => {}
                },
                _ => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn trouble_rests_the_machine_for_a_while() {
        let shortest = Duration::from_secs(5);
        let rest = Rest::new(shortest);
        assert_eq!(rest.over().now_or_never(), Some(()));
        for _ in 0..20 {
            let pause = rest.begin("no room");
            assert!(pause >= shortest && pause <= LONGEST);
            assert_eq!(rest.over().now_or_never(), None);
        }
        let mut over = Box::pin(rest.over());
        assert_eq!(over.as_mut().now_or_never(), None);
        assert!(rest.left().is_some_and(|(left, reason)| left <= LONGEST && reason == "no room"));
        rest.call_off();
        assert_eq!(rest.left(), None);
        assert_eq!(over.now_or_never(), Some(()));
    }
}
