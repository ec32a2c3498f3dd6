//! A bracket: trials that are thinned out rung by rung, each rung once all of its trials are evaluated.
//!
//! ```text
//!   rung 0: ranked, the best go on --> rung 1: ranked --> rung 2: counts its trials that aren't evaluated yet
//! ```
//!
//! A rung is ranked once, when the last of its trials is evaluated. A trial whose past changes takes the bracket back to the
//! first rung in which it counts otherwise, and so does one that is added. Who was let go on before stays in the next rung, though others
//! are better now.

use super::{
    Decision, TrialProgress,
    ranked::{Scored, ValueRank},
    said_place,
};
use sojourn_protocol::{ids::TrialId, quantity::to_usize, spec::Goal};
use std::collections::BTreeMap;

/// The trials of a bracket.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bracket {
    goal: Goal,
    reduction: usize,
    /// Epochs after which its trials are compared, rising; the last are all epochs.
    rungs: Vec<u32>,
    /// The trials of the first rungs, best first: of those that are whole.
    ranked: Vec<Vec<Scored>>,
    /// The trials of the rung after them, by id, where it isn't the last.
    open: Vec<TrialId>,
    /// How many of these have neither ended nor been evaluated after the rung's epochs.
    unsettled: usize,
    /// Trials that wait after a rung that is whole, by rung and place.
    waiting: BTreeMap<(usize, usize), TrialId>,
}

/// How a trial counts in the rung of so many epochs, once it is known: one that has ended before is the worst.
fn counts(goal: Goal, of: &TrialProgress, epochs: u32) -> Option<ValueRank> {
    match of.after(epochs) {
        Some(value) => Some(ValueRank::of(goal, value)),
        None => of.has_ended.then_some(ValueRank::WORST),
    }
}

impl Bracket {
    pub(super) fn new(rungs: Vec<u32>, reduction: u32, goal: Goal) -> Self {
        Self {
            goal,
            reduction: to_usize(reduction).max(2),
            rungs,
            ranked: Vec::new(),
            open: Vec::new(),
            unsettled: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// How many trials it has.
    pub(super) fn len(&self) -> usize {
        self.ranked.first().map_or(self.open.len(), Vec::len)
    }

    /// Is something to be decided?
    pub(super) fn is_due(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A trial was as `before` says, if it was there, and is as `now` says, and among `trials`. One that wasn't has the highest id.
    pub(super) fn change(
        &mut self,
        trial: TrialId,
        before: Option<&TrialProgress>,
        now: &TrialProgress,
        trials: &[TrialProgress],
    ) {
        if let Some(before) = before {
            self.count_again(trial, before, now, trials);
        } else {
            self.go_back(0, trials);
            self.add(trial, now);
        }
        self.rank_whole(trials);
        self.wait_again(trial, now);
    }

    /// Adds a trial to the first rung, which isn't ranked; it has the highest id.
    pub(super) fn add(&mut self, trial: TrialId, now: &TrialProgress) {
        self.open.push(trial);
        self.unsettled += usize::from(self.is_unsettled(now));
    }

    pub(super) fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.waiting.iter().filter_map(|((rung, place), trial)| {
            let of = self.ranked.get(*rung)?.len();
            let go_on = self.go_on(of);
            let (epochs, next) = (*self.rungs.get(*rung)?, *self.rungs.get(rung + 1)?);
            let why = said_place(*place, of, epochs, go_on);
            Some(match *place < go_on {
                true => Decision::Continue { trial: *trial, epochs: next, why },
                false => Decision::Stop { trial: *trial, why },
            })
        })
    }

    /// How many of so many go on.
    fn go_on(&self, of: usize) -> usize {
        (of / self.reduction).max(1)
    }

    /// The epochs of the rung that isn't whole, where it isn't the last.
    fn open_epochs(&self) -> Option<u32> {
        let is_last = self.ranked.len() + 1 >= self.rungs.len();
        self.rungs.get(self.ranked.len()).copied().filter(|_| !is_last)
    }

    fn is_unsettled(&self, of: &TrialProgress) -> bool {
        self.open_epochs().is_some_and(|epochs| counts(self.goal, of, epochs).is_none())
    }

    /// Counts a trial as it is now, wherever it was counted otherwise.
    fn count_again(
        &mut self,
        trial: TrialId,
        before: &TrialProgress,
        now: &TrialProgress,
        trials: &[TrialProgress],
    ) {
        let mut changed = None;
        for (rung, (ranked, epochs, next)) in self.whole().enumerate() {
            let was = counts(self.goal, before, epochs);
            let scored = was.map(|rank| Scored { rank, trial });
            let Some(Ok(place)) = scored.map(|scored| ranked.binary_search(&scored)) else {
                // It was left out before.
                return;
            };
            let goes_on =
                |of: &TrialProgress| place < self.go_on(ranked.len()) || of.allowed >= next;
            if was != counts(self.goal, now, epochs) || goes_on(before) != goes_on(now) {
                changed = Some(rung);
                break;
            }
        }
        if let Some(rung) = changed {
            self.go_back(rung, trials);
        } else if self.open.binary_search(&trial).is_ok() {
            let (was, is) = (self.is_unsettled(before), self.is_unsettled(now));
            self.unsettled = self.unsettled + usize::from(is) - usize::from(was);
        }
    }

    /// Takes the bracket back to where this rung wasn't ranked, if it is.
    fn go_back(&mut self, rung: usize, trials: &[TrialProgress]) {
        let Some(ranked) = self.ranked.get(rung) else { return };
        let members = ranked.iter().map(|scored| scored.trial).collect();
        self.ranked.truncate(rung);
        drop(self.waiting.split_off(&(rung, 0)));
        self.open_rung(members, trials);
    }

    /// The rungs that are whole: their trials, best first, their epochs and those of the next one.
    fn whole(&self) -> impl Iterator<Item = (&Vec<Scored>, u32, u32)> {
        let epochs = self.rungs.iter().copied().zip(self.rungs.iter().copied().skip(1));
        self.ranked.iter().zip(epochs).map(|(ranked, (epochs, next))| (ranked, epochs, next))
    }

    /// The rung that isn't whole has these trials.
    fn open_rung(&mut self, mut members: Vec<TrialId>, trials: &[TrialProgress]) {
        members.sort_unstable();
        let known = members.iter().filter_map(|trial| trials.get(to_usize(trial.0)));
        self.unsettled = known.filter(|of| self.is_unsettled(of)).count();
        self.open = members;
    }

    /// Ranks the rungs of which all trials are evaluated.
    pub(super) fn rank_whole(&mut self, trials: &[TrialProgress]) {
        while self.unsettled == 0
            && let Some(epochs) = self.open_epochs()
            && let Some(next) = self.rungs.get(self.ranked.len() + 1).copied()
        {
            let of = |trial: TrialId| trials.get(to_usize(trial.0));
            let scored = |trial: &TrialId| {
                let rank = of(*trial).and_then(|of| counts(self.goal, of, epochs));
                Scored { rank: rank.unwrap_or(ValueRank::WORST), trial: *trial }
            };
            let mut ranked: Vec<Scored> = self.open.iter().map(scored).collect();
            ranked.sort_unstable();
            let rung = self.ranked.len();
            let places = ranked.iter().enumerate();
            let waits = |of: &TrialProgress| of.waits_between(epochs, next);
            let waiting = places.filter(|(_, scored)| of(scored.trial).is_some_and(waits));
            self.waiting.extend(waiting.map(|(place, scored)| ((rung, place), scored.trial)));
            let go_on = self.go_on(ranked.len());
            let has_gone_on = |trial: TrialId| of(trial).is_some_and(|of| of.allowed >= next);
            let members = ranked.iter().map(|scored| scored.trial).enumerate();
            let members = members.filter(|(place, trial)| *place < go_on || has_gone_on(*trial));
            let members = members.map(|(_, trial)| trial).collect();
            self.ranked.push(ranked);
            self.open_rung(members, trials);
        }
    }

    /// Finds the rungs anew after which the trial waits.
    fn wait_again(&mut self, trial: TrialId, now: &TrialProgress) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (rung, (ranked, epochs, next)) in self.whole().enumerate() {
            let scored = counts(self.goal, now, epochs).map(|rank| Scored { rank, trial });
            let Some(Ok(place)) = scored.map(|scored| ranked.binary_search(&scored)) else {
                break;
            };
            if now.waits_between(epochs, next) {
                waiting.insert((rung, place), trial);
            } else {
                waiting.remove(&(rung, place));
            }
        }
        self.waiting = waiting;
    }
}
