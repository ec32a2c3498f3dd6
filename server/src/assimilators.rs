//! Processes that assimilate: who they are, and the bell that says that there may be work for them.

use crate::boards::{Boards, News};
use sojourn_assimilator::Crew;
use sojourn_protocol::{
    assimilation::{AssimilatorView, Offer},
    ids::LeaseId,
    ranges::{LeadAnswer, LeadRequest, MadeRequest, RangeWork},
    time::Millis,
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout_at};

/// Whoever hasn't been heard of for so long is forgotten.
const REMEMBERED: Duration = Duration::from_secs(600);
/// A leader's request is held open for no longer.
const LONGEST_LEAD: Duration = Duration::from_secs(20);
/// How many are remembered at most; names are whatever their bearers say.
const MOST: usize = 1000;
/// The most characters of a name.
const LONGEST_NAME: usize = 100;

/// All of them, as they were heard of.
#[derive(Debug)]
pub(crate) struct Assimilators {
    rung: watch::Sender<u64>,
    heard: Mutex<BTreeMap<String, Heard>>,
    threads: OnceLock<Crew>,
    boards: Boards,
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Instant,
    taken: u64,
}

impl Default for Assimilators {
    fn default() -> Self {
        Self {
            rung: watch::Sender::new(0),
            heard: Mutex::default(),
            threads: OnceLock::new(),
            boards: Boards::default(),
        }
    }
}

impl Assimilators {
    /// There may be work, or the core has ended: whoever waits looks again.
    pub(crate) fn ring(&self) {
        self.rung.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Hears the bell from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.rung.subscribe()
    }

    /// What a leader gets who says what is left of its merge. Held open for as long as it says while there is nothing
    /// for it.
    pub(crate) async fn lead(&self, request: &LeadRequest) -> LeadAnswer {
        let until = Instant::now() + Duration::from_millis(request.wait.0).min(LONGEST_LEAD);
        let mut done = self.boards.listen();
        loop {
            let (answer, news) = self.boards.lead(request, Instant::now());
            if news == News::Ranges {
                self.ring();
                self.threads.get().into_iter().for_each(Crew::call);
            }
            let nothing = answer.made.is_empty() && answer.own.is_none();
            if !nothing || !matches!(timeout_at(until.into(), done.changed()).await, Ok(Ok(()))) {
                return answer;
            }
        }
    }

    /// A range of a merge that another leads.
    pub(crate) fn take_range(&self) -> Option<RangeWork> {
        self.boards.take(Instant::now())
    }

    /// Somebody has done one.
    pub(crate) fn range_made(&self, lease: LeaseId, made: MadeRequest) -> Offer {
        self.boards.made(lease, made, Instant::now())
    }

    /// Those that run in the server itself; said once.
    pub(crate) fn set_threads(&self, crew: Crew) {
        let _ = self.threads.set(crew);
    }

    /// How many run in the server itself.
    pub(crate) fn threads(&self) -> u32 {
        let threads = self.threads.get().map_or(0, Crew::size);
        u32::try_from(threads).unwrap_or(u32::MAX)
    }

    /// A process has asked, and got so many units.
    pub(crate) fn heard(&self, name: &str, taken: u64) {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let now = Instant::now();
        let mut heard = self.all();
        heard.retain(|_, one| now.duration_since(one.at) < REMEMBERED);
        if heard.len() < MOST || heard.contains_key(&name) {
            let one = heard.entry(name).or_insert(Heard { at: now, taken: 0 });
            *one = Heard { at: now, taken: one.taken.saturating_add(taken) };
        }
    }

    /// Those that were heard of lately, by name.
    pub(crate) fn view(&self) -> Vec<AssimilatorView> {
        let silent =
            |one: &Heard| Millis(u64::try_from(one.at.elapsed().as_millis()).unwrap_or(u64::MAX));
        let heard = self.all();
        let view = heard.iter().filter(|(_, one)| one.at.elapsed() < REMEMBERED);
        view.map(|(name, one)| AssimilatorView {
            name: name.clone(),
            silent: silent(one),
            taken: one.taken,
        })
        .collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_short_and_few() {
        let assimilators = Assimilators::default();
        let long = "x".repeat(10_000);
        assimilators.heard(&long, 1);
        assimilators.heard(&long, 2);
        let view = assimilators.view();
        assert_eq!((view.len(), view[0].name.len(), view[0].taken), (1, LONGEST_NAME, 3));
        for number in 0..2 * MOST {
            assimilators.heard(&number.to_string(), 0);
        }
        assert_eq!(assimilators.view().len(), MOST);
    }
}
