//! Real training in virtual time: what hops really give, while how long they take stays the cost model's.
//!
//! ```text
//!   a unit ends (virtual time) --> Trains::run --> trainer: checkpoint, metrics --> report to the core
//!   its result is taken in     --> Trains::screen, Trains::merge --> the trial's merge rule: checkpoint, state
//!                                                                    --> offer to the core
//! ```
//!
//! A unit is trained when it has ended in virtual time, as far as it came: what is lost isn't trained at all.

use crate::Corruption;
use serde::Serialize;
use sojourn_core::AssimilationUnit;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{JobId, TrialId},
    manifest::DataManifest,
    report::Outcome,
    spec::JobSpec,
    unit::{Merge, Unit},
};
use sojourn_workgen::shards::ShardHost;

/// An implementation that really trains.
pub trait Trains {
    /// Makes shards of the data of a job file: as many as it says, or, where it leaves that open, as suit these
    /// hosts. `file`: its path, as the scenario has it. `skew`: rows are shared out by their labels
    /// ([`super::shared_out`]), not by chance.
    ///
    /// # Errors
    /// What is wrong with the data.
    fn ingest(
        &mut self,
        file: &str,
        spec: &JobSpec,
        hosts: &[ShardHost],
        skew: Option<f64>,
    ) -> Result<DataManifest, String>;

    /// Does a unit; a hop ends before batch `until` of its last shard. Blobs that it needs came from
    /// [`Trains::ingest`] or from units before.
    ///
    /// # Errors
    /// Why there is nobody who could do it; a unit that fails is an outcome.
    fn run(&mut self, unit: &Unit, until: Option<u32>) -> Result<Outcome, String>;

    /// The lie that a host reports instead of the outcome of [`Trains::run`].
    ///
    /// # Errors
    /// Why there is no such lie.
    fn lie(&mut self, lie: Corruption, unit: &Unit, outcome: Outcome) -> Result<Outcome, String>;

    /// Looks at a result as an assimilator does: why it is refused, where it is.
    ///
    /// # Errors
    /// Why nobody could.
    fn screen(&mut self, unit: &AssimilationUnit) -> Result<Option<String>, String>;

    /// Merges a result of [`Trains::run`] into its trial's version.
    ///
    /// # Errors
    /// Why nobody could; a result that a rule refuses is [`Merged::Refused`].
    fn merge(&mut self, unit: &AssimilationUnit, merge: &Merge) -> Result<Merged, String>;
}

/// The outcome of merging a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A version.
    Made {
        /// The version's checkpoint.
        checkpoint: BlobRef,
        /// The rule's state.
        state: BlobRef,
    },
    /// Nothing, for this reason.
    Refused(String),
}

impl Merged {
    /// A version that nobody has made: blobs of the sizes and names that others could have.
    pub(crate) fn made_up(unit: &AssimilationUnit) -> Self {
        let blob = |what: &str| {
            let sha256 = Digest::of(format!("{what} of lease {}", unit.lease.0).as_bytes());
            BlobRef { sha256, bytes: unit.trained.checkpoint.bytes }
        };
        Merged::Made { checkpoint: blob("merged result"), state: blob("merge state") }
    }
}

/// A metric's value after an epoch of a trial that was really trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// When it was known, in seconds after the first submission.
    pub at: f64,
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// The epoch.
    pub epoch: u32,
    /// The job's metric.
    pub value: f64,
}

/// A metric's value after so many results of a trial that was really trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// When the last of them was assimilated, in seconds after the first submission.
    pub at: f64,
    /// The job.
    pub job: JobId,
    /// The trial.
    pub trial: TrialId,
    /// Results, which is the number of the version.
    pub results: u32,
    /// The job's metric, on the validation rows.
    pub value: f64,
    /// The same on the test rows, where the job file has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<f64>,
}
