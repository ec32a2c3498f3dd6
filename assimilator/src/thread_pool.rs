//! Threads that assimilate when they are notified: as many as there is work for, between two limits.

use crate::{
    pipeline::{Assimilator, Step},
    queue::Queue,
    small_results::SmallResults,
};
use parking_lot::{Condvar, Mutex};
use sojourn_http::Backoff;
use std::{fmt, io, ops::RangeInclusive, sync::Arc, thread::JoinHandle, time::Duration};

/// Ceilings of the first and the longest pause after an error, for a thread that isn't notified before.
const FIRST_PAUSE: Duration = Duration::from_millis(400);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// A thread above the minimum ends when it has had nothing to do for so long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Running threads. Dropping this stops each of them after its current unit.
pub struct Workers {
    signal: Arc<WorkSignal>,
    start: Box<dyn Fn() -> io::Result<JoinHandle<()>> + Send + Sync>,
    small_results: Arc<SmallResults>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("signal", &self.signal).finish_non_exhaustive()
    }
}

/// Says that there is work. A semaphore with a limit, and a count of the threads.
#[derive(Debug)]
struct WorkSignal {
    min: usize,
    max: usize,
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    /// Notifications that no thread has looked after yet. At most as many as there may be threads.
    pending: usize,
    /// Threads that wait for a notification.
    waiting: usize,
    running: usize,
    is_stopping: bool,
}

/// The next step of a thread.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Look for work.
    Look,
    /// End the thread.
    End,
}

impl WorkSignal {
    fn new(min: usize, max: usize) -> Self {
        let state = Mutex::new(SignalState { running: min, ..SignalState::default() });
        Self { min, max, state, changed: Condvar::new() }
    }

    /// Notifies one thread; a busy one looks again before it waits. True where one more thread should be started, which
    /// is counted as running already.
    fn notify(&self) -> bool {
        let mut state = self.state.lock();
        state.pending = (state.pending + 1).min(self.max);
        let is_short =
            state.pending > state.waiting && state.running < self.max && !state.is_stopping;
        state.running += usize::from(is_short);
        drop(state);
        self.changed.notify_one();
        is_short
    }

    /// Notifies all waiting threads; no thread is started.
    fn notify_waiting(&self) {
        let mut state = self.state.lock();
        state.pending = state.pending.max(state.waiting);
        drop(state);
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// A thread that doesn't wait looks for work. It takes one notification, if there is one.
    fn look(&self) -> Next {
        let mut state = self.state.lock();
        if state.is_stopping {
            state.running -= 1;
            return Next::End;
        }
        state.pending = state.pending.saturating_sub(1);
        Next::Look
    }

    /// Waits for a notification that no other thread has taken, or the end. With a `pause`, a thread looks again after
    /// that; without one, it ends after [`IDLE_TIMEOUT`] where it isn't needed.
    fn wait(&self, pause: Option<Duration>) -> Next {
        let mut state = self.state.lock();
        state.waiting += 1;
        loop {
            let is_quiet = |state: &mut SignalState| state.pending == 0 && !state.is_stopping;
            let limit = pause.unwrap_or(IDLE_TIMEOUT);
            let has_timed_out =
                self.changed.wait_while_for(&mut state, is_quiet, limit).timed_out();
            let is_spare = has_timed_out && pause.is_none() && state.running > self.min;
            if state.is_stopping || is_spare {
                state.waiting -= 1;
                state.running -= 1;
                return Next::End;
            }
            if !has_timed_out || pause.is_some() {
                state.waiting -= 1;
                state.pending = state.pending.saturating_sub(1);
                return Next::Look;
            }
        }
    }
}

impl Workers {
    /// Starts the minimum of `count` threads, and others, up to the maximum, while there is more work than the running
    /// ones get to. Each looks for work once and then whenever it is notified; where the queue itself waits, all the
    /// time.
    ///
    /// # Errors
    /// Where a thread can't be started.
    pub fn start<Q: Queue>(
        count: RangeInclusive<usize>,
        assimilator: Assimilator<Q>,
    ) -> io::Result<Self> {
        let (min, max) = (*count.start(), *count.end());
        let signal = Arc::new(WorkSignal::new(min, max));
        let (assimilator, shared) = (Arc::new(assimilator), Arc::clone(&signal));
        let small_results = Arc::clone(assimilator.small_results());
        let start = move || {
            let (assimilator, signal) = (Arc::clone(&assimilator), Arc::clone(&signal));
            let thread = std::thread::Builder::new().name("assimilator".to_owned());
            thread.spawn(move || work(&assimilator, &signal))
        };
        let (start, threads) = (Box::new(start), Mutex::default());
        let workers = Self { signal: shared, start, small_results, threads };
        for _ in 0..min {
            workers.start_thread()?;
        }
        Ok(workers)
    }

    /// There is work.
    pub fn notify(&self) {
        if self.signal.notify()
            && let Err(error) = self.start_thread()
        {
            self.signal.state.lock().running -= 1;
            tracing::warn!(%error, "another assimilator thread can't be started");
        }
    }

    /// Has all waiting threads look for work: there is something that any of them can help with.
    pub fn notify_waiting(&self) {
        self.signal.notify_waiting();
    }

    /// Threads that run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.signal.state.lock().running
    }

    /// Stops each thread after its current unit, and waits for that, and for small results.
    pub fn stop(&self) {
        self.signal.stop();
        let mut threads = self.threads.lock();
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("an assimilator thread panicked");
            }
        }
        self.small_results.stop();
    }

    fn start_thread(&self) -> io::Result<()> {
        let thread = (self.start)()?;
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work<Q: Queue>(assimilator: &Arc<Assimilator<Q>>, signal: &Arc<WorkSignal>) {
    let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
    let mut next = signal.look();
    while next == Next::Look {
        let shared = Arc::clone(signal);
        next = match assimilator.step_beside(move || shared.notify_waiting()) {
            Step::Nothing if !assimilator.queue_waits() => {
                backoff.reset();
                signal.wait(None)
            }
            Step::Nothing | Step::Begun | Step::Done(_) | Step::RangeDone => {
                backoff.reset();
                signal.look()
            }
            Step::Failed => signal.wait(Some(backoff.next(None))),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_started_when_notifications_exceed_waiting_threads() {
        let signal = WorkSignal::new(1, 3);
        // The running thread waits: it is enough for one notification, not for two.
        signal.state.lock().waiting = 1;
        assert!(!signal.notify());
        assert!(signal.notify());
        assert!(signal.notify());
        assert!(!signal.notify(), "there are as many as there may be");
        assert_eq!(signal.state.lock().running, 3);
        for pending in [2, 1, 0, 0] {
            assert_eq!(signal.look(), Next::Look);
            assert_eq!(signal.state.lock().pending, pending);
        }
        signal.stop();
        assert_eq!((signal.look(), signal.wait(None)), (Next::End, Next::End));
        assert!(!signal.notify(), "no thread is started any more");
    }

    #[test]
    fn notify_waiting_starts_no_thread() {
        let signal = WorkSignal::new(1, 3);
        for (waiting, pending) in [(0, 0), (2, 2), (2, 2)] {
            signal.state.lock().waiting = waiting;
            signal.notify_waiting();
            let state = signal.state.lock();
            assert_eq!((state.pending, state.running), (pending, 1));
        }
    }

    #[test]
    fn a_notification_from_before_the_wait_is_taken() {
        let signal = WorkSignal::new(1, 1);
        signal.notify();
        assert_eq!(signal.wait(None), Next::Look);
        assert_eq!(signal.wait(Some(Duration::from_millis(1))), Next::Look, "the pause is over");
        let state = signal.state.lock();
        assert_eq!((state.waiting, state.pending), (0, 0));
    }
}
