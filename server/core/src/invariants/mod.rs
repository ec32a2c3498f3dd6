//! Invariants: conditions that every state must meet. Each has an id and one definition. Property tests, the simulator, debug
//! builds and the recovery of a server share them.
//!
//! | id | file | what it says |
//! |---|---|---|
//! | H1, H2, M1 | `trials` | each batch is trained once an epoch; results build on the version that they started from |
//! | H3, L1 to L4 | `leases` | who may hold how many leases, when they expire, and the indexes of both |
//! | A1, A2 | `results` | each acknowledged result has ended, or waits for an assimilator |
//! | B1 | `blobs` | each blob that is referred to is in the store |
//!
//! D1, determinism, is a property of runs: its tests run the same commands twice.

mod blobs;
mod leases;
mod results;
mod trials;

use crate::{assimilation_queue::AssimilationQueue, clock::Clock, core::Core};
use sojourn_scheduling::{
    hosts::Hosts, index::DerivedIndex, leases::Leases, schedule::Eligibility,
};
use sojourn_state::State;
use std::{fmt, str::FromStr};

/// The id of an invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every batch of every shard is trained once per epoch.
    H1,
    /// A trial has one current version, and leases and results build on it.
    H2,
    /// No host runs more units than it has slots.
    H3,
    /// A unit has one live lease, or two of which one is speculative.
    L1,
    /// Every live lease has a deadline, and no other lease has.
    L2,
    /// Each index over the state is equal to a recount.
    L3,
    /// A provisional lease follows a lease that its trial has in hand.
    L4,
    /// Merged trials: what is in flight is counted once, and its base is kept.
    M1,
    /// An acknowledged report has ended, or waits in its trial's queue.
    A1,
    /// Each result that could be assimilated now is in the queue of the assimilators.
    A2,
    /// Each blob that is referred to is in the store, and references are counted right.
    B1,
}

impl Invariant {
    /// All of them, in the order in which they are checked.
    pub const ALL: [Self; 11] = [
        Self::H1,
        Self::H2,
        Self::M1,
        Self::H3,
        Self::L1,
        Self::L2,
        Self::L3,
        Self::L4,
        Self::A1,
        Self::A2,
        Self::B1,
    ];

    /// The invariant's id, as errors show it.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::H1 => "H1",
            Self::H2 => "H2",
            Self::H3 => "H3",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::L4 => "L4",
            Self::M1 => "M1",
            Self::A1 => "A1",
            Self::A2 => "A2",
            Self::B1 => "B1",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A text is no invariant's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no invariant's id: they are {list}", list = Invariant::ALL.map(Invariant::id).join(", "))]
pub struct UnknownInvariant(String);

impl FromStr for Invariant {
    type Err = UnknownInvariant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|invariant| invariant.id() == text);
        known.ok_or_else(|| UnknownInvariant(text.to_owned()))
    }
}

/// A set of invariants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvariantSet(u32);

impl InvariantSet {
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);

    const fn bit(of: Invariant) -> u32 {
        match of {
            Invariant::H1 => 1,
            Invariant::H2 => 1 << 1,
            Invariant::H3 => 1 << 2,
            Invariant::L1 => 1 << 3,
            Invariant::L2 => 1 << 4,
            Invariant::L3 => 1 << 5,
            Invariant::L4 => 1 << 6,
            Invariant::M1 => 1 << 7,
            Invariant::A1 => 1 << 8,
            Invariant::A2 => 1 << 9,
            Invariant::B1 => 1 << 10,
        }
    }

    /// Is this one in it?
    #[must_use]
    pub const fn contains(self, invariant: Invariant) -> bool {
        self.0 & Self::bit(invariant) != 0
    }
}

impl FromIterator<Invariant> for InvariantSet {
    fn from_iter<T: IntoIterator<Item = Invariant>>(invariants: T) -> Self {
        Self(invariants.into_iter().fold(0, |set, invariant| set | Self::bit(invariant)))
    }
}

/// An invariant that doesn't hold, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invariant {id} is violated: {what}")]
pub struct Violation {
    /// The invariant's id.
    pub id: Invariant,
    /// The ids of what breaks it, and the values that differ.
    pub what: String,
}

fn holds(id: Invariant, true_: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if true_ { Ok(()) } else { Err(Violation { id, what: what() }) }
}

/// The subject of the invariants: the durable state, and the parts beside it.
#[derive(Clone, Copy)]
struct Subject<'a> {
    state: &'a State,
    clock: &'a Clock,
    index: &'a DerivedIndex,
    hosts: &'a Hosts,
    leases: &'a Leases,
    queue: &'a AssimilationQueue,
    eligible: Eligibility<'a>,
}

impl Subject<'_> {
    fn check(self, invariant: Invariant) -> Result<(), Violation> {
        match invariant {
            Invariant::H1 => trials::batches_are_trained_once(self.state),
            Invariant::H2 => trials::results_build_on_the_version(self.state),
            Invariant::M1 => trials::merged_units_are_counted_once(self.state),
            Invariant::H3 => leases::slots_hold_one_unit_each(self),
            Invariant::L1 => leases::units_have_one_live_lease(self.state),
            Invariant::L2 => leases::live_leases_have_deadlines(self),
            Invariant::L3 => leases::indexes_are_those_of_a_recount(self),
            Invariant::L4 => leases::provisional_leases_follow_others(self),
            Invariant::A1 => results::reports_have_ended_or_wait(self.state),
            Invariant::A2 => results::waiting_results_are_queued(self),
            Invariant::B1 => blobs::references_are_kept_and_counted(self.state),
        }
    }
}

impl Core {
    /// All invariants, over the whole state.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn check_invariants(&self) -> Result<(), Violation> {
        self.violations().next().map_or(Ok(()), Err)
    }

    /// The invariants that are violated: of each the first violation.
    pub fn violations(&self) -> impl Iterator<Item = Violation> + '_ {
        let subject = self.subject();
        Invariant::ALL.into_iter().filter_map(move |invariant| subject.check(invariant).err())
    }

    /// Checks the invariants that cost no more than the leases: for debug builds, after each step.
    pub(crate) fn check_cheap_invariants(&self) -> Result<(), Violation> {
        self.subject().check(Invariant::L2)
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            state: &self.state,
            clock: &self.clock,
            index: &self.index,
            hosts: &self.hosts,
            leases: &self.leases,
            queue: &self.queue,
            eligible: self.eligibility(),
        }
    }
}
