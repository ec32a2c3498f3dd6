//! Everybody who assimilates for this server: threads of its process and other processes. They are told here that there
//! is work, and share large merges.

use crate::range_merges::{News, RangeMerges};
use parking_lot::{Mutex, RwLock};
use sojourn_protocol::{
    assimilation::{AssimilatorView, Offer},
    ids::LeaseId,
    quantity::SaturatingFrom as _,
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest, RangeWork},
    text::plain_name,
    time::Millis,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout_at};

/// A process that was silent for so long is forgotten.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a leader's request is held open at most.
const MAX_LEAD_WAIT: Duration = Duration::from_secs(20);
/// The most processes that are remembered: their names are their own choice.
const MAX_ASSIMILATORS: usize = 1000;
/// The most characters of a process' name.
const MAX_NAME_CHARS: usize = 100;

/// Threads of the server's process that assimilate. The server wakes them and stops them.
pub trait AssimilationThreads: fmt::Debug + Send + Sync {
    /// One more result waits: one thread is woken, or one more is started.
    fn wake_one(&self);
    /// There is something that each of them can help with: all that wait are woken.
    fn wake_all(&self);
    /// Threads that run now.
    fn running(&self) -> usize;
    /// Stops them, each after the unit that it is at. Returns when all have ended.
    fn stop(&self);
}

/// Everybody who assimilates for this server.
#[derive(Debug)]
pub(crate) struct Assimilators {
    /// Counts notices of work: each change wakes the requests that wait for it.
    work: watch::Sender<u64>,
    heard: Mutex<BTreeMap<String, Heard>>,
    threads: RwLock<Option<Arc<dyn AssimilationThreads>>>,
    range_merges: RangeMerges,
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Instant,
    taken: u64,
}

impl Default for Assimilators {
    fn default() -> Self {
        Self {
            work: watch::Sender::new(0),
            heard: Mutex::default(),
            threads: RwLock::default(),
            range_merges: RangeMerges::default(),
        }
    }
}

impl Assimilators {
    /// One more result waits.
    pub(crate) fn notify(&self) {
        if let Some(threads) = self.local() {
            threads.wake_one();
        }
        self.notify_processes();
    }

    /// There may be work, or the core has ended: every request that waits looks again.
    fn notify_processes(&self) {
        self.work.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Sees every notice of work from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.work.subscribe()
    }

    /// Answers a leader that names the open ranges of its merge. Held open for as long as the request says while there is
    /// nothing to answer.
    pub(crate) async fn lead(&self, request: &LeadRequest) -> LeadAnswer {
        let until = Instant::now() + Duration::from_millis(request.wait.0).min(MAX_LEAD_WAIT);
        let mut done = self.range_merges.subscribe();
        loop {
            let (answer, news) = self.range_merges.lead(request, Instant::now());
            if news == News::Ranges {
                self.notify_processes();
                if let Some(threads) = self.local() {
                    threads.wake_all();
                }
            }
            let nothing = answer.done.is_empty() && answer.own.is_none();
            if !nothing || !matches!(timeout_at(until.into(), done.changed()).await, Ok(Ok(()))) {
                return answer;
            }
        }
    }

    /// A range of a merge that another leads.
    pub(crate) fn take_range(&self) -> Option<RangeWork> {
        self.range_merges.take(Instant::now())
    }

    /// Takes the result of a range.
    pub(crate) fn range_made(&self, lease: LeaseId, made: RangeResultRequest) -> Offer {
        self.range_merges.made(lease, made, Instant::now())
    }

    /// Has the threads of this process told of work, until [`Assimilators::stop`].
    pub(crate) fn attach(&self, threads: Arc<dyn AssimilationThreads>) {
        *self.threads.write() = Some(threads);
    }

    /// The core has ended: requests that wait are answered, and the threads end. Blocks until they have.
    pub(crate) fn stop(&self) {
        self.notify_processes();
        let threads = self.threads.write().take();
        if let Some(threads) = threads {
            threads.stop();
        }
    }

    /// How many threads run in this process.
    pub(crate) fn threads(&self) -> u32 {
        let running = self.local().map_or(0, |threads| threads.running());
        u32::saturating_from(running)
    }

    fn local(&self) -> Option<Arc<dyn AssimilationThreads>> {
        self.threads.read().clone()
    }

    /// Notes that a process asked, and got so many units.
    pub(crate) fn heard(&self, name: &str, taken: u64) {
        let name = plain_name(name, MAX_NAME_CHARS);
        let now = Instant::now();
        let mut heard = self.heard.lock();
        heard.retain(|_, one| now.duration_since(one.at) < SILENCE_TIMEOUT);
        if heard.len() < MAX_ASSIMILATORS || heard.contains_key(&name) {
            let one = heard.entry(name).or_insert(Heard { at: now, taken: 0 });
            *one = Heard { at: now, taken: one.taken.saturating_add(taken) };
        }
    }

    /// The processes that were heard of lately, by name.
    pub(crate) fn view(&self) -> Vec<AssimilatorView> {
        let silent = |one: &Heard| Millis(u64::saturating_from(one.at.elapsed().as_millis()));
        let heard = self.heard.lock();
        let view = heard.iter().filter(|(_, one)| one.at.elapsed() < SILENCE_TIMEOUT);
        view.map(|(name, one)| AssimilatorView {
            name: name.clone(),
            silent: silent(one),
            taken: one.taken,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_assimilators_are_bounded() {
        let assimilators = Assimilators::default();
        let long = "x".repeat(10_000);
        assimilators.heard(&long, 1);
        assimilators.heard(&long, 2);
        let view = assimilators.view();
        assert_eq!((view.len(), view[0].name.len(), view[0].taken), (1, MAX_NAME_CHARS, 3));
        for number in 0..2 * MAX_ASSIMILATORS {
            assimilators.heard(&number.to_string(), 0);
        }
        assert_eq!(assimilators.view().len(), MAX_ASSIMILATORS);
    }
}
