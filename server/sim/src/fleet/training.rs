//! Real training in virtual time: what hops really give, while how long they take stays the cost model's.
//!
//! ```text
//!   a unit ends (virtual time) --> Trains::run --> trainer: checkpoint, metrics --> report to the core
//! ```
//!
//! A unit is trained when it has ended in virtual time, as far as it came: what is lost isn't trained at all.

use super::{fate::Training, host::Around, job::SimJob};
use serde::Serialize;
use sojourn_protocol::{
    ids::{JobId, TrialId},
    manifest::DataManifest,
    report::Outcome,
    spec::{Goal, JobSpec},
    unit::{Lease, Unit},
};
use sojourn_workgen::shards::ShardHost;

/// Whoever really trains.
pub trait Trains {
    /// Makes shards of the data of a job file: as many as it says, or, where it leaves that open, as suit these
    /// hosts. `file`: its path, as the scenario has it.
    ///
    /// # Errors
    /// What is wrong with the data.
    fn ingest(
        &mut self,
        file: &str,
        spec: &JobSpec,
        hosts: &[ShardHost],
    ) -> Result<DataManifest, String>;

    /// Does a unit; a hop ends before batch `until` of its last shard. Blobs that it needs came from
    /// [`Trains::ingest`] or from units before.
    ///
    /// # Errors
    /// Why there is nobody who could do it; a unit that fails is an outcome.
    fn run(&mut self, unit: &Unit, until: Option<u32>) -> Result<Outcome, String>;
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

impl Around<'_> {
    /// What a unit that has ended really gives; nothing where its job isn't really trained.
    pub(crate) fn train(&mut self, lease: &Lease, training: &Training) -> Option<Outcome> {
        let job = super::host::job_index(lease);
        let trains = self.trains.as_mut()?;
        if training.fails() || !self.plan.jobs.get(job).is_some_and(|job| job.is_trained) {
            return None;
        }
        let (unit, until) = cut(&lease.unit, training.until());
        match trains.run(&unit, until) {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                *self.broken = Some(error);
                None
            }
        }
    }
}

/// A unit as far as it came: shards that it didn't begin are no part of it.
fn cut(unit: &Unit, batches: u32) -> (Unit, Option<u32>) {
    let Unit::Train(hop) = unit else { return (unit.clone(), None) };
    let end = hop.position_after(batches);
    let reached = hop.stretches().position(|stretch| stretch.position_at(end.batch) == Some(end));
    let mut hop = hop.clone();
    hop.then.truncate(reached.unwrap_or(usize::MAX));
    (Unit::Train(hop), Some(end.batch))
}

/// The best value of what was really trained first, where anything was.
pub(crate) fn best(scores: &[Score], jobs: &[SimJob]) -> Option<f64> {
    let first = scores.first()?.job;
    let of = jobs.iter().zip(1..).find(|(_, id)| first == JobId(*id));
    let goal = of.map_or(Goal::Min, |(job, _)| job.spec.search.goal);
    let values = scores.iter().filter(|score| score.job == first).map(|score| score.value);
    values.reduce(match goal {
        Goal::Min => f64::min,
        Goal::Max => f64::max,
    })
}
