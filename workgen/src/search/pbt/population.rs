//! The decisions on a population: which trials go on, which are replaced, and by a clone of which.

use crate::search::stopping::{Decision, Scored, ValueRank};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
    spec::{Goal, Pbt},
};
use std::collections::{BTreeMap, BTreeSet};

/// A trial that is, or was, of the population.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The trial.
    pub trial: TrialId,
    /// The trial whose place this one has taken; none for the trials with which the search began.
    pub replaces: Option<Replaces>,
    /// Epochs up to which it may train now.
    pub allowed: u32,
    /// Epochs in all.
    pub epochs: u32,
    /// The trial has trained what it may, all of that is evaluated, and it hasn't ended.
    pub waits: bool,
    /// The metric after its first generation, its second and so on, as far as all epochs until then are evaluated.
    pub values: Vec<f64>,
    /// How it ended, once it has.
    pub end: Option<MemberEnd>,
}

/// The replacement of a trial by a clone of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaces {
    /// The trial that was replaced.
    pub trial: TrialId,
    /// The trial from which the clone goes on.
    pub from: TrialId,
    /// The generation after which, counted from 1.
    pub generation: u32,
}

/// How a member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberEnd {
    /// By errors. It is the worst of its generation, and may be replaced.
    Failed,
    /// With what it has: trained to the end, good enough, or stopped by its user. Nobody takes its place.
    Finished,
}

/// A clone that is to take the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exploit {
    /// The trial that is replaced, the one that is cloned, and the generation after which.
    pub replaces: Replaces,
    /// Epochs that the other had trained by then.
    pub epochs: u32,
    /// Epochs up to which the clone trains at first.
    pub allowed: u32,
}

/// The decisions on a population.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// Trials that go on, and replaced ones that end.
    pub decisions: Vec<Decision>,
    /// The clones that a generation brings, all of them at once; they get their ids in this order.
    pub exploits: Vec<Exploit>,
    /// Why they come, for people.
    pub why: String,
}

/// The decisions that follow from what is known, `members` being in the order of their ids. `decisions` are carried out first,
/// then the clones are added; after that it is asked again. Nothing where all is decided.
///
/// A generation in which somebody was replaced is over: what is known of it later, after a rollback say, changes nothing. Nobody goes
/// on to the next but one before a generation is over, so that the checkpoints of two ends are enough to clone from.
///
/// `can_clone` says if the checkpoint of a trial after so many epochs is there.
#[must_use]
pub fn decide(
    pbt: &Pbt,
    goal: Goal,
    seed: u64,
    members: &[Member],
    can_clone: &dyn Fn(TrialId, u32) -> bool,
) -> Decided {
    Population::new(pbt, goal, members).decide(seed, can_clone)
}

struct Population<'a> {
    pbt: &'a Pbt,
    /// Epochs of a generation, at least 1.
    interval: u32,
    goal: Goal,
    members: &'a [Member],
    /// By a replaced trial, its clone.
    successors: BTreeMap<TrialId, &'a Member>,
    /// The last generation in which somebody was replaced, else 0.
    over: u32,
}

/// The members of a generation by what it has come to.
struct Standings<'a> {
    generation: u32,
    /// Epochs that they have trained by its end.
    epochs: u32,
    members: BTreeMap<TrialId, &'a Member>,
    /// The members of which that is known, the best first.
    ranked: Vec<Scored>,
    /// How many aren't evaluated yet.
    open: usize,
}

impl<'a> Population<'a> {
    fn new(pbt: &'a Pbt, goal: Goal, members: &'a [Member]) -> Self {
        let replaced = members.iter().filter_map(|of| Some((of.replaces?, of)));
        let over = replaced.clone().map(|(of, _)| of.generation).max().unwrap_or(0);
        let successors = replaced.map(|(of, member)| (of.trial, member)).collect();
        let interval = pbt.interval.max(1);
        Self { pbt, interval, goal, members, successors, over }
    }

    fn decide(&self, seed: u64, can_clone: &dyn Fn(TrialId, u32) -> bool) -> Decided {
        let mut decided = Decided::default();
        for member in self.members {
            if let Some(clone) = self.successors.get(&member.trial) {
                decided.decisions.extend(self.ended(member, clone));
            } else if member.waits && !self.is_at_open_end(member) {
                let why = format!("nobody takes its place after {}", counted(member.allowed));
                decided.decisions.push(self.go_on(member, why));
            }
        }
        for generation in self.over.saturating_add(1).. {
            let Some(epochs) = generation.checked_mul(self.interval) else { break };
            let of = self.standings(generation, epochs);
            if !of.members.values().any(|member| member.epochs > epochs) {
                break;
            }
            if of.open > 0 {
                let worst = self.worst(of.ranked.len() + of.open);
                let certain = of.waiting().filter_map(|(place, member)| {
                    let behind = of.ranked.len().saturating_sub(place + 1);
                    (behind >= worst).then(|| {
                        let (all, after) = (of.ranked.len() + of.open, counted(epochs));
                        self.go_on(
                            member,
                            format!("at least {behind} of {all} are worse after {after}"),
                        )
                    })
                });
                decided.decisions.extend(certain);
                break;
            }
            let exploits = self.exploits(&of, seed, can_clone);
            let lose: BTreeSet<TrialId> = exploits.iter().map(|of| of.replaces.trial).collect();
            let others = of.waiting().filter(|(_, member)| !lose.contains(&member.trial));
            decided
                .decisions
                .extend(others.map(|(place, member)| self.go_on(member, of.said_place(place))));
            if !exploits.is_empty() {
                let (count, all) = (exploits.len(), of.ranked.len());
                let s = if count == 1 { " is" } else { "s are" };
                decided.why = format!(
                    "after {} {count} trial{s} replaced: the worst of {all} go on from the best",
                    counted(epochs)
                );
                decided.exploits = exploits;
                break;
            }
        }
        decided
    }

    /// Does it wait at the end of a generation that isn't over?
    fn is_at_open_end(&self, member: &Member) -> bool {
        member.allowed.is_multiple_of(self.interval) && member.allowed / self.interval > self.over
    }

    /// The decision by which a member trains up to the end of the next generation.
    fn go_on(&self, member: &Member, why: String) -> Decision {
        Decision::Continue { trial: member.trial, epochs: self.next_end(member), why }
    }

    fn next_end(&self, member: &Member) -> u32 {
        self.pbt.end_after(member.allowed).min(member.epochs)
    }

    /// One whose place a clone has taken ends, unless its user lets it go on all the same.
    fn ended(&self, member: &Member, clone: &Member) -> Option<Decision> {
        let Replaces { from, generation, .. } = clone.replaces.filter(|_| member.end.is_none())?;
        let epochs = generation.saturating_mul(self.interval);
        if member.allowed > epochs {
            let why = "it isn't of the population any more".to_owned();
            let (trial, epochs) = (member.trial, member.epochs);
            return member.waits.then_some(Decision::Continue { trial, epochs, why });
        }
        let of = self.standings(generation, epochs);
        let mut places = of.ranked.iter();
        let place = places.position(|scored| scored.trial == member.trial);
        let place = place.map_or_else(|| "replaced".to_owned(), |place| of.said_place(place));
        let why = format!("{place}: trial {} goes on from trial {from} in its place", clone.trial);
        Some(Decision::Stop { trial: member.trial, why })
    }

    fn worst(&self, members: usize) -> usize {
        to_usize(self.pbt.replaced_of(u32::saturating_from(members)))
    }

    fn standings(&self, generation: u32, epochs: u32) -> Standings<'a> {
        let is_of_it = |of: &&Member| of.replaces.is_none_or(|of| of.generation < generation);
        let was_replaced = |of: &Member| {
            let clone = self.successors.get(&of.trial).and_then(|clone| clone.replaces);
            clone.is_some_and(|clone| clone.generation < generation)
        };
        let members = self.members.iter().filter(is_of_it).filter(|of| !was_replaced(of));
        let (mut ranked, mut open) = (Vec::new(), 0);
        let mut of_it = BTreeMap::new();
        for member in members {
            let value = to_usize(generation).checked_sub(1).and_then(|at| member.values.get(at));
            let rank = match (value, member.end) {
                (Some(value), _) => Some(ValueRank::of(self.goal, *value)),
                (None, Some(MemberEnd::Failed)) => Some(ValueRank::of(self.goal, f64::NAN)),
                (None, Some(MemberEnd::Finished)) => continue,
                (None, None) => None,
            };
            of_it.insert(member.trial, member);
            match rank {
                Some(rank) => ranked.push(Scored { rank, trial: member.trial }),
                None => open += 1,
            }
        }
        ranked.sort_unstable();
        Standings { generation, epochs, members: of_it, ranked, open }
    }

    /// The clones of a generation of which all is known.
    fn exploits(
        &self,
        of: &Standings<'_>,
        seed: u64,
        can_clone: &dyn Fn(TrialId, u32) -> bool,
    ) -> Vec<Exploit> {
        let (count, epochs) = (self.worst(of.ranked.len()), of.epochs);
        let is_parent = |member: &&Member| {
            let value = to_usize(of.generation).checked_sub(1).and_then(|at| member.values.get(at));
            let is_known = value.is_some_and(|value| value.is_finite());
            is_known && member.epochs > epochs && can_clone(member.trial, epochs)
        };
        let member = |scored: &Scored| of.members.get(&scored.trial).copied();
        let best = of.ranked.iter().take(count).filter_map(member);
        let best: Vec<&Member> = best.filter(is_parent).collect();
        let worst = of.ranked.iter().skip(of.ranked.len().saturating_sub(count));
        let replaceable = worst.filter_map(member).filter(|of| match of.end {
            // One that its user let go on stays.
            None => of.allowed == epochs,
            Some(MemberEnd::Failed) => of.allowed <= epochs,
            Some(MemberEnd::Finished) => false,
        });
        let exploit = |loser: &Member| {
            let parts = [seed, u64::from(loser.trial.0), u64::from(of.generation)];
            let mut stream = seeds::stream("pbt/exploit", &parts);
            let drawn = seeds::below(&mut stream, u32::saturating_from(best.len()));
            let from = best.get(to_usize(drawn))?;
            let (trial, generation) = (loser.trial, of.generation);
            let replaces = Replaces { trial, from: from.trial, generation };
            let allowed = self.pbt.end_after(epochs).min(from.epochs);
            Some(Exploit { replaces, epochs, allowed })
        };
        replaceable.filter_map(exploit).collect()
    }
}

impl Standings<'_> {
    /// The members that wait at the generation's end and have no successor, with their places from 0.
    fn waiting(&self) -> impl Iterator<Item = (usize, &Member)> {
        let member = |scored: &Scored| self.members.get(&scored.trial).copied();
        let all = self.ranked.iter().map(member).enumerate();
        let all = all.filter_map(|(place, member)| Some((place, member?)));
        all.filter(|(_, member)| member.waits && member.allowed == self.epochs)
    }

    fn said_place(&self, place: usize) -> String {
        format!("place {} of {} after {}", place + 1, self.ranked.len(), counted(self.epochs))
    }
}

fn counted(epochs: u32) -> String {
    format!("{epochs} epoch{}", if epochs == 1 { "" } else { "s" })
}
