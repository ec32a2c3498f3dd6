//! Merging a history's results again, by the rules that the assimilator has.

use crate::cli::terminal::{causes::model_failure, exit::Failure};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::to_u64,
    unit::Base,
    view::{HopRecord, MergeRecord, TrialHistory},
};
use sojourn_rules::{Arrival, Merger, Update};

/// Merges results in the order of a history.
pub(super) struct Merging {
    /// None where nothing was merged.
    merger: Option<Merger>,
    /// The rule's state of the version that was made last; none where that came from hop order.
    state: Option<(BlobRef, Vec<u8>)>,
}

/// The result of a merge.
pub(super) struct Made {
    pub(super) checkpoint: Vec<u8>,
    pub(super) state: BlobRef,
}

impl Merging {
    pub(super) fn new(history: &TrialHistory) -> Result<Self, Failure> {
        let merger = |spec| {
            let layout = CheckpointLayout::of(&history.context).map_err(model_failure)?;
            Merger::new(&spec, layout).map_err(|error| Failure::work(error.to_string()))
        };
        Ok(Self { merger: history.merge.map(merger).transpose()?, state: None })
    }

    /// A result has replaced the version: no state goes with it.
    pub(super) fn replaced(&mut self) {
        self.state = None;
    }

    /// Merges a record's result into the version before it; `files` are the result's base, that version and the
    /// result.
    pub(super) fn merge(
        &mut self,
        record: &HopRecord,
        merged: &MergeRecord,
        current: Base,
        [base, version, result]: [&[u8]; 3],
    ) -> Result<Made, Failure> {
        let of = record.version;
        let Some(merger) = &self.merger else {
            return Err(Failure::work(format!(
                "the history doesn't say how version {of} was merged"
            )));
        };
        // A merge without one begins anew, whatever there is.
        let state = match (merged.from, &self.state) {
            (None, _) => None,
            (Some(from), Some((blob, bytes))) if from == *blob => Some(bytes.as_slice()),
            (Some(from), _) => {
                let state = from.sha256.short();
                let text = "which the version before it didn't leave";
                return Err(Failure::work(format!(
                    "version {of} was merged with the state {state}, {text}"
                )));
            }
        };
        let update = Update {
            base,
            current: version,
            returned: result,
            state,
            version: current.version(),
            arrival: Arrival {
                staleness: merged.staleness,
                epoch: record.epoch().0.saturating_add(1),
                in_flight: merged.in_flight,
                flush: merged.flush,
            },
            position: record.end,
        };
        let made = merger.merge(&update).map_err(|error| {
            Failure::work(format!("version {of} can't be merged again: {error}"))
        })?;
        let bytes = made.made.state;
        let length = to_u64(bytes.len());
        let state = BlobRef { sha256: Digest::of(&bytes), bytes: length };
        self.state = Some((state, bytes));
        Ok(Made { checkpoint: made.made.checkpoint, state })
    }
}

#[cfg(test)]
#[path = "merging_tests.rs"]
mod tests;
