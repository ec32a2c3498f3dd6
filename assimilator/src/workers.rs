//! Threads that assimilate when they are woken.

use crate::{
    assimilator::{Assimilator, Step},
    queue::Queue,
};
use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

/// First and longest wait after trouble, for whoever isn't woken before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Running threads; dropping this stops them after the unit that each is at.
#[derive(Debug)]
pub struct Workers {
    bell: Arc<Bell>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Rung {
    times: u64,
    stop: bool,
}

impl Bell {
    fn rung(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one of them: who is at work looks again before it waits.
    fn ring(&self) {
        self.rung().times += 1;
        self.changed.notify_one();
    }

    fn stop(&self) {
        self.rung().stop = true;
        self.changed.notify_all();
    }

    /// Waits until it has rung more often than `seen` times, or is to stop.
    fn wait(&self, seen: u64) -> Rung {
        let rung = self.rung();
        let waited = self.changed.wait_while(rung, |rung| rung.times == seen && !rung.stop);
        *waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Bell::wait`], but no longer than `pause`.
    fn wait_for(&self, seen: u64, pause: Duration) -> Rung {
        let rung = self.rung();
        let silent = |rung: &mut Rung| rung.times == seen && !rung.stop;
        let waited = self.changed.wait_timeout_while(rung, pause, silent);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Workers {
    /// Starts `count` threads, which look for work once and then whenever they are woken.
    ///
    /// # Errors
    /// Where a thread can't be started.
    pub fn start<Q: Queue>(count: usize, assimilator: Assimilator<Q>) -> io::Result<Self> {
        let assimilator = Arc::new(assimilator);
        let mut workers = Self { bell: Arc::default(), threads: Vec::new() };
        for _ in 0..count {
            let (assimilator, bell) = (Arc::clone(&assimilator), Arc::clone(&workers.bell));
            let thread = std::thread::Builder::new().name("assimilator".to_owned());
            workers.threads.push(thread.spawn(move || work(&assimilator, &bell))?);
        }
        Ok(workers)
    }

    /// There is work.
    pub fn wake(&self) {
        self.bell.ring();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.bell.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("an assimilator thread panicked");
            }
        }
    }
}

fn work<Q: Queue>(assimilator: &Assimilator<Q>, bell: &Bell) {
    let mut rung = *bell.rung();
    let mut pause = FIRST_PAUSE;
    while !rung.stop {
        match assimilator.step() {
            Step::Nothing => {
                pause = FIRST_PAUSE;
                rung = bell.wait(rung.times);
            }
            Step::Done(_) => {
                pause = FIRST_PAUSE;
                rung.stop = bell.rung().stop;
            }
            Step::Trouble => {
                rung = bell.wait_for(rung.times, pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
