//! Figures for monitoring: the whole server in some dozens of numbers, whatever its size.
//!
//! | file | holds |
//! |---|---|
//! | `labels.rs` | what numbers are split by: states, kinds, reasons |
//! | `totals.rs` | what is counted since the core began |
//!
//! `query/figures.rs` counts the rest anew for each query.

mod labels;
mod totals;

pub use labels::{HostStatus, JobStatus, LeaseStage, NoWorkReason, TrialStatus, UnitKind};
pub use sojourn_state::{LeaseEndReason, ResultEnd};
pub use totals::Totals;

use sojourn_protocol::{
    ids::JobId,
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use sojourn_scheduling::schedule::PlanCounts;
use sojourn_state::JournalPosition;
use std::collections::BTreeMap;

/// Most jobs of which there are figures of their own: those that run, the oldest first.
pub const MAX_JOB_FIGURES: usize = 50;

/// How many there are of each label. A label that isn't in it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts<L>(BTreeMap<L, u64>);

impl<L> Default for Counts<L> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<L: Ord> Counts<L> {
    /// One more of this label.
    pub fn add(&mut self, label: L) {
        self.add_all(label, 1);
    }

    /// So many more of this label.
    pub fn add_all(&mut self, label: L, more: u64) {
        let count = self.0.entry(label).or_default();
        *count = count.saturating_add(more);
    }

    /// How many there are of a label.
    #[must_use]
    pub fn of(&self, label: &L) -> u64 {
        self.0.get(label).copied().unwrap_or(0)
    }

    /// How many there are in all.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl<L: Ord> FromIterator<L> for Counts<L> {
    fn from_iter<T: IntoIterator<Item = L>>(labels: T) -> Self {
        let mut counts = Self::default();
        labels.into_iter().for_each(|label| counts.add(label));
        counts
    }
}

/// The figures at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Since when the core decides.
    pub started_at: UnixMillis,
    /// The number of the last event.
    pub position: JournalPosition,
    /// Jobs that the server knows.
    pub jobs: Counts<JobStatus>,
    /// Trials of these jobs.
    pub trials: Counts<TrialStatus>,
    /// Enrolled hosts.
    pub hosts: Counts<HostStatus>,
    /// Hosts that are in contact and get nothing, by why.
    pub without_work: Counts<NoWorkReason>,
    /// Slots of the hosts in contact.
    pub slots: SlotFigures,
    /// Live leases, and provisional ones.
    pub leases: Counts<(UnitKind, LeaseStage)>,
    /// Live leases that duplicate another one.
    pub speculative_leases: u64,
    /// Units that could be granted now, of jobs that aren't paused.
    pub ready_units: u64,
    /// The assimilators' queue.
    pub assimilation: AssimilationCounts,
    /// Blobs in the store.
    pub blobs: u64,
    /// Blobs that are referred to and that the store has lost.
    pub lost_blobs: u64,
    /// The cost of all bought machines.
    pub spent: MicroUsd,
    /// Jobs that run, at most [`MAX_JOB_FIGURES`].
    pub running_jobs: Vec<JobFigures>,
    /// Counts since the core began.
    pub totals: Totals,
    /// Plans that the core has asked for, and what became of them.
    pub plans: PlanCounts,
}

/// Slots of the hosts in contact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotFigures {
    /// Slots with a unit that runs.
    pub busy: u64,
    /// The others.
    pub idle: u64,
    /// Floating-point operations per second of all of them in training, as measured or estimated.
    pub flops: u64,
}

/// How much there is to assimilate, as [`sojourn_protocol::assimilation::AssimilationsView`] has it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the view says it")]
pub struct AssimilationCounts {
    pub waiting: u64,
    pub behind: u64,
    pub taken: u64,
    pub lag: Millis,
    pub ended: u64,
    pub per_second: f64,
}

/// A job that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFigures {
    /// The job.
    pub job: JobId,
    /// Live leases.
    pub leases: u64,
    /// Hops that its trials have.
    pub hops: u64,
    /// Hops that they are expected to have in the end.
    pub expected_hops: u64,
    /// The amount that may be spent on the job, where that is bounded.
    pub budget: Option<MicroUsd>,
    /// The job's cost on bought machines.
    pub spent: MicroUsd,
}
