//! Reports for leases, and their outcomes.

use crate::{
    digest::{BlobRef, Digest},
    ids::{LeaseId, Version},
    metrics::ByClass,
    position::Position,
    spec::SearchSpec,
    sum_array::SumArray,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::sums::{MAX_NAMED_SUMS, Sums};

/// The end of a lease, as its host saw it. Idempotent: the same report again gets the same answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Report {
    /// The lease.
    pub lease: LeaseId,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A hop was trained; its checkpoint has been uploaded under the lease.
    Trained(Trained),
    /// A checkpoint was evaluated.
    Evaluated(Evaluated),
    /// The trainer could not do it.
    Failed(Failure),
}

/// A trained hop, or several in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Trained {
    /// The version that training started from.
    pub base: Version,
    /// The uploaded checkpoint.
    pub checkpoint: BlobRef,
    /// Where it stands: after the last batch of the unit's last shard, unless it was stopped earlier. The
    /// shards before that of the position are whole.
    pub end: Position,
    /// Loss and accuracy while training, over all batches of the result.
    pub sums: Sums,
    /// Microseconds of training alone.
    pub train_micros: u64,
}

/// An evaluated checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Evaluated {
    /// The version that was evaluated.
    pub version: Version,
    /// One entry per shard, in the order of the unit's shards.
    pub shards: Vec<Sums>,
    /// Over all shards, by class; as much as the unit asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_class: Option<ByClass>,
    /// The arrays that a user's own model adds up, over all shards, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrays: BTreeMap<String, SumArray>,
    /// Microseconds of evaluating alone.
    pub train_micros: u64,
}

impl Evaluated {
    /// Over all shards.
    #[must_use]
    pub fn sums(&self) -> Sums {
        self.shards.iter().fold(Sums::default(), |all, sums| all.plus(sums))
    }

    /// The value of a search's metric.
    #[must_use]
    pub fn value(&self, search: &SearchSpec) -> f64 {
        let f1 = self.by_class.as_ref().map(ByClass::macro_f1);
        search.value(&self.sums(), f1, &search.of_arrays(&self.arrays))
    }

    /// Names what was evaluated and counted, and nothing of how long that took: hosts of one numeric class come to the same.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let counted = Self { train_micros: 0, ..self.clone() };
        // Plain numbers are always written.
        Digest::of(&serde_json::to_vec(&counted).unwrap_or_default())
    }
}

/// Why a trainer could not do a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Failure {
    /// The class of the error.
    pub kind: FailureKind,
    /// The error, for people; the end of the trainer's log where it died.
    pub message: String,
}

/// Between what went wrong and the end of the trainer's log, in the message of a failure.
const LOG_MARK: &str = "; the end of its log:\n";

impl Failure {
    /// The same with the end of the trainer's log, where that has said anything.
    #[must_use]
    pub fn with_log(mut self, tail: &str) -> Self {
        if !tail.is_empty() {
            self.message.push_str(LOG_MARK);
            self.message.push_str(tail);
        }
        self
    }

    /// The same without the end of the trainer's log.
    #[must_use]
    pub fn without_log(mut self) -> Self {
        if let Some(at) = self.message.find(LOG_MARK) {
            self.message.truncate(at);
        }
        self
    }

    /// The error, and the end of the trainer's log, where the message has it.
    #[must_use]
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.message.split_once(LOG_MARK) {
            Some((error, log)) => (error, Some(log)),
            None => (&self.message, None),
        }
    }
}

/// Classes of trainer errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Loss or weights became infinite or NaN.
    NonFinite,
    /// The trainer refused the unit or its input.
    Trainer,
    /// The trainer process died, or found no device, or can't read or write its files.
    Died,
    /// The memory that the host's owner lends, or all of it, wasn't enough.
    OutOfMemory,
    /// The trainer came to a standstill, and was ended.
    Stalled,
    /// A blob's file on the host isn't what its digest says. The client fetches it again and doesn't
    /// report this.
    Damaged,
    /// The engine can't do units like this one: it doesn't know the model, or something else that the unit asks for. Said
    /// before anything is trained, and only to servers with the feature
    /// [`UNSUPPORTED_UNITS`](crate::api::UNSUPPORTED_UNITS); others hear of [`FailureKind::Trainer`].
    Unsupported,
    /// The unit is wrong: its graph, its settings or its data contradict themselves, so every engine refuses it. Said only to
    /// servers with the feature [`WRONG_UNITS`](crate::api::WRONG_UNITS); others hear of [`FailureKind::Trainer`].
    WrongUnit,
}

impl FailureKind {
    /// Could the host be to blame? Else it is the unit that asks for too much of it, or that diverges.
    #[must_use]
    pub const fn blames_host(self) -> bool {
        match self {
            FailureKind::NonFinite | FailureKind::OutOfMemory | FailureKind::Unsupported => false,
            // A host may say so of anything: others show whether it is so.
            FailureKind::WrongUnit
            | FailureKind::Trainer
            | FailureKind::Died
            | FailureKind::Stalled
            | FailureKind::Damaged => true,
        }
    }
}

/// The one end of an acknowledged report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReportEnd {
    /// The result made this version, or its metrics were taken.
    Assimilated {
        /// The trial's version with this result in it.
        version: Version,
    },
    /// The result was refused.
    Rejected {
        /// Why, for people.
        reason: String,
    },
    /// Another result had ended the unit, or the trial has ended.
    Superseded,
}

/// The state of a lease that its host has reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReportState {
    /// Journalled; keep the result until it has ended.
    Acknowledged,
    /// Ended; the result may be dropped.
    Ended(ReportEnd),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_can_be_added_to_a_failure_and_taken_away() {
        let said = Failure { kind: FailureKind::Trainer, message: "the loss is NaN".to_owned() };
        let with = said.clone().with_log("epoch 2\nbatch 31");
        assert_eq!(with.message, "the loss is NaN; the end of its log:\nepoch 2\nbatch 31");
        assert_eq!(with.parts(), ("the loss is NaN", Some("epoch 2\nbatch 31")));
        assert_eq!(with.without_log(), said);
        assert_eq!(said.parts(), ("the loss is NaN", None));
        assert_eq!(said.clone().with_log(""), said);
        assert_eq!(said.clone().without_log(), said);
    }
}
