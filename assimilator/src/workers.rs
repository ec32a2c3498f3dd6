//! Threads that assimilate when they are woken: as many as there is work for, between limits.

use crate::{
    assimilator::{Assimilator, Step},
    queue::Queue,
};
use sojourn_http::Backoff;
use std::{
    fmt, io,
    ops::RangeInclusive,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

/// Ceilings of the first and the longest pause after an error, for a thread that isn't woken before.
const FIRST_PAUSE: Duration = Duration::from_millis(400);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// A thread above the least ends when there was nothing to do for so long.
const LINGERS: Duration = Duration::from_secs(10);

/// Running threads; dropping this stops them after the unit that each is at.
pub struct Workers {
    bell: Arc<Bell>,
    start: Box<dyn Fn() -> io::Result<JoinHandle<()>> + Send + Sync>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("bell", &self.bell).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Bell {
    least: usize,
    most: usize,
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Rung {
    /// Times that it rang and nobody has looked since; more than all threads could look is no more than that.
    unheard: usize,
    /// Threads that wait for it.
    waiting: usize,
    running: usize,
    stop: bool,
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
enum Waited {
    Look,
    Leave,
}

impl Bell {
    fn rung(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one of them: who is at work looks again before it waits. Whether there should be one more; it counts already.
    fn ring(&self) -> bool {
        let mut rung = self.rung();
        rung.unheard = (rung.unheard + 1).min(self.most);
        let more = rung.unheard > rung.waiting && rung.running < self.most && !rung.stop;
        rung.running += usize::from(more);
        drop(rung);
        self.changed.notify_one();
        more
    }

    /// For all that wait; nobody is hired.
    fn call(&self) {
        let mut rung = self.rung();
        rung.unheard = rung.unheard.max(rung.waiting);
        drop(rung);
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.rung().stop = true;
        self.changed.notify_all();
    }

    /// Somebody looks now: on behalf of one ring, where it rang.
    fn look(&self) -> Waited {
        let mut rung = self.rung();
        if rung.stop {
            rung.running -= 1;
            return Waited::Leave;
        }
        rung.unheard = rung.unheard.saturating_sub(1);
        Waited::Look
    }

    /// Waits until it rings and nobody else has heard it, or is to stop; no longer than `pause`, or, where there is
    /// none, as long as whoever isn't needed stays.
    fn wait(&self, pause: Option<Duration>) -> Waited {
        let mut rung = self.rung();
        rung.waiting += 1;
        loop {
            let silent = |rung: &mut Rung| rung.unheard == 0 && !rung.stop;
            let longest = pause.unwrap_or(LINGERS);
            let waited = self.changed.wait_timeout_while(rung, longest, silent);
            let timed_out;
            (rung, timed_out) = {
                let (rung, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                (rung, waited.timed_out())
            };
            let spare = timed_out && pause.is_none() && rung.running > self.least;
            if rung.stop || spare {
                rung.waiting -= 1;
                rung.running -= 1;
                return Waited::Leave;
            }
            if !timed_out || pause.is_some() {
                rung.waiting -= 1;
                rung.unheard = rung.unheard.saturating_sub(1);
                return Waited::Look;
            }
        }
    }
}

impl Workers {
    /// Starts the least of `count` threads, and others, up to the most, while there is more work than the running ones
    /// get to. Each looks for work once and then whenever it is woken; where the queue waits itself, all the time.
    ///
    /// # Errors
    /// Where a thread can't be started.
    pub fn start<Q: Queue>(
        count: RangeInclusive<usize>,
        assimilator: Assimilator<Q>,
    ) -> io::Result<Self> {
        let (least, most) = (*count.start(), *count.end());
        let rung = Mutex::new(Rung { running: least, ..Rung::default() });
        let bell = Arc::new(Bell { least, most, rung, changed: Condvar::new() });
        let (assimilator, shared) = (Arc::new(assimilator), Arc::clone(&bell));
        let start = move || {
            let (assimilator, bell) = (Arc::clone(&assimilator), Arc::clone(&bell));
            let thread = std::thread::Builder::new().name("assimilator".to_owned());
            thread.spawn(move || work(&assimilator, &bell))
        };
        let workers = Self { bell: shared, start: Box::new(start), threads: Mutex::default() };
        for _ in 0..least {
            workers.hire()?;
        }
        Ok(workers)
    }

    /// There is work.
    pub fn wake(&self) {
        if self.bell.ring()
            && let Err(error) = self.hire()
        {
            self.bell.rung().running -= 1;
            tracing::warn!(%error, "one more assimilator can't be started");
        }
    }

    /// There is something that any of them can help with: those that wait look.
    pub fn wake_all(&self) {
        self.bell.call();
    }

    /// Threads that run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.bell.rung().running
    }

    /// Stops them after the unit that each is at, and waits for that.
    pub fn stop(&self) {
        self.bell.stop();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("an assimilator thread panicked");
            }
        }
    }

    fn hire(&self) -> io::Result<()> {
        let thread = (self.start)()?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have left.
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

fn work<Q: Queue>(assimilator: &Assimilator<Q>, bell: &Bell) {
    let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
    let mut next = bell.look();
    while next == Waited::Look {
        next = match assimilator.step() {
            Step::Nothing if !assimilator.queue_waits() => {
                backoff.reset();
                bell.wait(None)
            }
            Step::Nothing | Step::Done(_) | Step::Helped => {
                backoff.reset();
                bell.look()
            }
            Step::Trouble => bell.wait(Some(backoff.next(None))),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bell(least: usize, most: usize) -> Bell {
        let rung = Mutex::new(Rung { running: least, ..Rung::default() });
        Bell { least, most, rung, changed: Condvar::new() }
    }

    #[test]
    fn there_are_more_while_the_bell_rings_oftener_than_anybody_waits() {
        let bell = bell(1, 3);
        // The one that runs waits: it is enough for one ring, not for two.
        bell.rung().waiting = 1;
        assert!(!bell.ring());
        assert!(bell.ring());
        assert!(bell.ring());
        assert!(!bell.ring(), "there are as many as there may be");
        assert_eq!(bell.rung().running, 3);
        for unheard in [2, 1, 0, 0] {
            assert_eq!(bell.look(), Waited::Look);
            assert_eq!(bell.rung().unheard, unheard);
        }
        bell.stop();
        assert_eq!((bell.look(), bell.wait(None)), (Waited::Leave, Waited::Leave));
        assert!(!bell.ring(), "nobody comes any more");
    }

    #[test]
    fn a_call_is_for_those_that_wait_alone() {
        let bell = bell(1, 3);
        for (waiting, unheard) in [(0, 0), (2, 2), (2, 2)] {
            bell.rung().waiting = waiting;
            bell.call();
            let rung = bell.rung();
            assert_eq!((rung.unheard, rung.running), (unheard, 1));
        }
    }

    #[test]
    fn a_ring_that_came_before_is_heard() {
        let bell = bell(1, 1);
        bell.ring();
        assert_eq!(bell.wait(None), Waited::Look);
        assert_eq!(bell.wait(Some(Duration::from_millis(1))), Waited::Look, "the pause is over");
        let rung = bell.rung();
        assert_eq!((rung.waiting, rung.unheard), (0, 0));
    }
}
