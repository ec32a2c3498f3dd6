//! The parts of a job's events that tables need: when leases were granted and reported, and when epochs were evaluated.
//!
//! Events are read as JSON, of which only the needed fields are looked at, so that those of a newer server are understood.

use serde::Deserialize;
use sojourn_protocol::{
    ids::{Epoch, LeaseId, TrialId},
    time::UnixMillis,
    view::EventView,
};
use std::{collections::BTreeMap, time::Duration};

/// An event that has another form than this program knows.
#[derive(Debug, thiserror::Error)]
#[error("event {position} (`{kind}`) can't be read")]
pub(in crate::cli::model) struct UnreadableEvent {
    position: u64,
    kind: String,
    source: serde_json::Error,
}

/// A lease in which a trial was trained.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli::model) struct TrainingLease {
    /// When it was granted.
    pub(in crate::cli::model) granted_at: UnixMillis,
    /// The host's device; empty where its client named none.
    pub(in crate::cli::model) device: String,
    /// The lease's result, once it was acknowledged.
    pub(in crate::cli::model) reported: Option<TrainingReport>,
}

/// The result of a lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli::model) struct TrainingReport {
    /// When it was acknowledged.
    pub(in crate::cli::model) at: UnixMillis,
    /// Rows that were trained on.
    pub(in crate::cli::model) rows: u64,
    /// Optimiser steps of the checkpoint: those of its base, and those of the lease.
    pub(in crate::cli::model) last_step: u64,
    /// Training alone, without transfers.
    pub(in crate::cli::model) time: Duration,
}

/// The content of a job's events, as far as they have been read.
#[derive(Debug, Default)]
pub(in crate::cli::model) struct Journal {
    /// The journal position of the last event.
    last: u64,
    training: BTreeMap<LeaseId, TrainingLease>,
    evaluations: BTreeMap<LeaseId, (TrialId, Epoch)>,
    begun: BTreeMap<TrialId, UnixMillis>,
    evaluated: BTreeMap<(TrialId, Epoch), UnixMillis>,
}

#[derive(Deserialize)]
struct Granted {
    lease: LeaseId,
    #[serde(default)]
    device: String,
    unit: Unit,
}

/// The unit of a lease, where that is of one of these kinds.
#[derive(Deserialize)]
struct Unit {
    train: Option<Train>,
    evaluate: Option<Evaluate>,
}

#[derive(Deserialize)]
struct Train {
    trial: TrialId,
}

#[derive(Deserialize)]
struct Evaluate {
    trial: TrialId,
    epoch: Epoch,
}

#[derive(Deserialize)]
struct Acknowledged {
    report: Report,
}

#[derive(Deserialize)]
struct Report {
    lease: LeaseId,
    outcome: Outcome,
}

#[derive(Deserialize)]
struct Outcome {
    trained: Option<Trained>,
}

#[derive(Deserialize)]
struct Trained {
    end: End,
    sums: Rows,
    train_micros: u64,
}

#[derive(Deserialize)]
struct End {
    step: u64,
}

#[derive(Deserialize)]
struct Rows {
    rows: u64,
}

#[derive(Deserialize)]
struct OfLease {
    lease: LeaseId,
}

impl Journal {
    /// The position after which further events are to be read.
    pub(in crate::cli::model) const fn last(&self) -> u64 {
        self.last
    }

    /// The lease, where it was one of training.
    pub(in crate::cli::model) fn training(&self, lease: LeaseId) -> Option<&TrainingLease> {
        self.training.get(&lease)
    }

    /// When the trial's first lease was granted.
    pub(in crate::cli::model) fn begun(&self, trial: TrialId) -> Option<UnixMillis> {
        self.begun.get(&trial).copied()
    }

    /// When the epoch was last evaluated.
    pub(in crate::cli::model) fn evaluated(
        &self,
        trial: TrialId,
        epoch: Epoch,
    ) -> Option<UnixMillis> {
        self.evaluated.get(&(trial, epoch)).copied()
    }

    /// Takes further events, in their order.
    pub(in crate::cli::model) fn take(
        &mut self,
        events: &[EventView],
    ) -> Result<(), UnreadableEvent> {
        for event in events {
            self.take_one(event).map_err(|source| UnreadableEvent {
                position: event.position,
                kind: event.kind.clone(),
                source,
            })?;
            self.last = event.position;
        }
        Ok(())
    }

    fn take_one(&mut self, event: &EventView) -> Result<(), serde_json::Error> {
        match event.kind.as_str() {
            "lease-granted" => self.granted(event.at, Granted::deserialize(&event.event)?),
            "report-acknowledged" => {
                self.acknowledged(event.at, Acknowledged::deserialize(&event.event)?.report);
            }
            "evaluated" => {
                let OfLease { lease } = OfLease::deserialize(&event.event)?;
                if let Some(of) = self.evaluations.get(&lease) {
                    self.evaluated.insert(*of, event.at);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn granted(&mut self, at: UnixMillis, granted: Granted) {
        let Granted { lease, device, unit } = granted;
        if let Some(Train { trial }) = unit.train {
            self.begun.entry(trial).or_insert(at);
            self.training.insert(lease, TrainingLease { granted_at: at, device, reported: None });
        }
        if let Some(Evaluate { trial, epoch }) = unit.evaluate {
            self.evaluations.insert(lease, (trial, epoch));
        }
    }

    fn acknowledged(&mut self, at: UnixMillis, report: Report) {
        if let Some(Trained { end, sums, train_micros }) = report.outcome.trained
            && let Some(lease) = self.training.get_mut(&report.lease)
        {
            let (rows, last_step) = (sums.rows, end.step);
            let time = Duration::from_micros(train_micros);
            lease.reported = Some(TrainingReport { at, rows, last_step, time });
        }
    }
}
