//! The JSON lines between a slot and its trainer child: requests on its stdin, answers on its stdout,
//! one at a time; progress lines come in between, and a pace, a file or a request to stop may. stderr is the
//! trainer's log. End of stdin ends it.

pub use crate::instructions::InstructionSet;

use crate::{
    digest::Digest,
    engine::Engine,
    position::Position,
    quantity::{Bytes, Micros},
    report::{Evaluated, Failure, Trained},
    time::Millis,
    unit::{TrialContext, Unit},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// The version of these lines; a slot refuses a trainer of another.
pub const TRAINER_PROTOCOL: u32 = 7;

/// The name of the trainer program; it is looked for beside the `sojourn` program.
pub const TRAINER_PROGRAM: &str = "sojourn-trainer";

/// Threads with which a machine's numeric class is measured, whatever a job pins.
pub const CLASS_THREADS: u32 = 1;

/// A request to the trainer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainerRequest {
    /// Do this unit.
    Run(Box<RunUnit>),
    /// Put these rows through a model.
    Predict(Box<Predict>),
    /// End the running hop after the batch that it is at, with a partial checkpoint. Said of anything else,
    /// and of a hop that has ended meanwhile, it does nothing; it has no answer of its own.
    Stop,
    /// Compute for that share of the time from now on, this unit and those after it. At 0 a unit stands still
    /// after the batch that it is at, until another pace or [`TrainerRequest::Stop`] comes. It changes when
    /// bytes are made, never which, and has no answer of its own.
    Pace(Pace),
    /// A shard of [`RunUnit::pending`] has arrived. For a unit that has ended meanwhile it does nothing; it has no
    /// answer of its own.
    #[serde(rename = "here")]
    ShardArrived(ShardArrived),
}

/// A shard of [`RunUnit::pending`] that has arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardArrived {
    /// The digest of the shard's blob.
    pub blob: Digest,
    /// Where it lies, verified.
    pub path: PathBuf,
}

/// The share of the time in which a trainer computes, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Pace(u8);

impl Pace {
    /// All of the time.
    pub const FULL: Self = Self(100);
    /// None of it.
    pub const PAUSED: Self = Self(0);

    /// A share of at most 100 percent; more is none.
    #[must_use]
    pub const fn percent(percent: u8) -> Option<Self> {
        if percent > 100 { None } else { Some(Self(percent)) }
    }

    /// The share in percent.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Pace {
    type Error = String;
    fn try_from(percent: u8) -> Result<Self, String> {
        Self::percent(percent).ok_or_else(|| format!("a pace of {percent} percent"))
    }
}

impl From<Pace> for u8 {
    fn from(pace: Pace) -> Self {
        pace.0
    }
}

/// Rows, and the model that they go through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predict {
    /// The model, and how its rows are scaled.
    pub context: TrialContext,
    /// A checkpoint of that context.
    pub checkpoint: Digest,
    /// Where the checkpoint and the scaling lie, verified.
    pub files: BTreeMap<Digest, PathBuf>,
    /// A canonical file with `x`, `F32 [rows, features]`, unscaled; or a shard with those columns of the context that the
    /// model predicts by.
    pub rows: PathBuf,
    /// Where to write the canonical file with `outputs`, `F32 [rows, outputs]`, before any softmax, in the
    /// units of labels that are numbers; a file there is replaced.
    pub output: PathBuf,
}

/// A unit with its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunUnit {
    /// The work to do.
    pub unit: Unit,
    /// Where each blob of [`Unit::blobs`] lies, verified, but for the pending ones.
    pub files: BTreeMap<Digest, PathBuf>,
    /// Shards of later hops of the batch that are still being fetched. [`TrainerRequest::ShardArrived`] names each
    /// when it is there; the unit waits at the first shard that it needs and doesn't have.
    #[serde(default, rename = "coming", skip_serializing_if = "BTreeSet::is_empty")]
    pub pending: BTreeSet<Digest>,
    /// Where to write the checkpoint; a file there is replaced. Unused by evaluations.
    pub output: PathBuf,
    /// Stop a hop, of several the last one, before this batch, with a partial checkpoint; at its end where
    /// none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
    /// Keep a partial checkpoint of a hop so often, but more rarely where that takes more than a fiftieth of
    /// the time; never where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_every: Option<Millis>,
}

impl RunUnit {
    /// Where the checkpoint is kept of a hop that has come to `end`.
    #[must_use]
    pub fn part(&self, end: Position) -> PathBuf {
        self.output.with_extension(format!("{}.part", end.step))
    }
}

/// A line from the trainer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainerLine {
    /// First, once, after start.
    Hello(Hello),
    /// News of the running unit.
    #[serde(rename = "told")]
    Update(TrainerUpdate),
    /// The unit is trained, or the part of it that was asked for or stopped at, and its checkpoint written
    /// and closed.
    Trained(Trained),
    /// The unit is evaluated.
    Evaluated(Evaluated),
    /// The rows have gone through and the outputs are written.
    Predicted(Predicted),
    /// The unit could not be done; the trainer is ready for the next.
    Failed(Failure),
}

/// News of a unit that is running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainerUpdate {
    /// Batches are done; at most a few times a second.
    Progress(Progress),
    /// A partial checkpoint of the hop is written to [`RunUnit::part`], and closed.
    #[serde(rename = "kept")]
    PartSaved(Trained),
    /// A partial checkpoint could not be written, for this reason.
    #[serde(rename = "not_kept")]
    PartNotSaved(String),
    /// The unit waits for this shard, until [`TrainerRequest::ShardArrived`] names it or the unit is to stop.
    #[serde(rename = "waits")]
    ShardNeeded(Digest),
    /// At the end: the most bytes of its device's memory that the unit took.
    #[serde(rename = "peak")]
    PeakMemory(u64),
    /// The unit's use of the machine since the last sample or its beginning; at most once a second.
    Usage(UsageSample),
}

/// A running unit's use of the machine in a time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageSample {
    /// How long that was, without pauses at pace 0.
    pub span: Micros,
    /// Processor time of all its threads.
    pub busy: Micros,
    /// The mean loss over the rows of the batches that ended in it; none of an evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Memory in use at its end.
    pub memory: Bytes,
    /// Read from disks.
    pub read: Bytes,
    /// Written to disks.
    pub written: Bytes,
}

/// The first message of a trainer: its properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`TRAINER_PROTOCOL`].
    pub protocol: u32,
    /// The engine that trains here, and the models that it trains.
    pub engine: Engine,
    /// Threads that each operation uses.
    pub threads: u32,
    /// The digest of the calibration training: equal digests, bit-identical arithmetic.
    pub numeric_class: Digest,
    /// Measured floating-point operations per second of that training.
    pub flops: f64,
    /// The trainer's device: `cpu` or `cuda:N`.
    #[serde(default = "cpu")]
    pub device: String,
}

fn cpu() -> String {
    "cpu".to_owned()
}

/// Rows that went through a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// How many.
    pub rows: u64,
}

/// How far the running unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Batches done, of this unit.
    pub done: u32,
    /// Batches of this unit, over all its shards.
    pub of: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_ratio() {
        let said = |text: &str| serde_json::from_str::<TrainerRequest>(text);
        let half = TrainerRequest::Pace(Pace::percent(50).unwrap());
        assert_eq!(said("{\"pace\":50}").unwrap(), half);
        assert_eq!(serde_json::to_string(&half).unwrap(), "{\"pace\":50}");
        for wrong in ["{\"pace\":101}", "{\"pace\":-1}", "{\"pace\":0.5}"] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Pace::percent(101), None);
    }
}
