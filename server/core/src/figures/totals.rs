//! Counts of events since the core began. They aren't durable: after a restart they begin at 0, which monitoring expects of
//! counters. Sums over the jobs would get smaller whenever a job is deleted, and monitoring would take that for a restart.

use super::{Counts, LeaseEndReason, ResultEnd, UnitKind};
use sojourn_protocol::report::Outcome;
use sojourn_state::{Event, Fault, LeaseEnd};

/// Counts since the core began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Leases that were granted.
    pub granted: Counts<UnitKind>,
    /// Those among them that duplicate another one.
    pub granted_speculative: u64,
    /// Leases that ended without a report.
    pub ended: Counts<LeaseEndReason>,
    /// Reports that were acknowledged.
    pub reports: u64,
    /// What became of them.
    pub results: Counts<ResultEnd>,
    /// Rows of training data in acknowledged results, as hosts report them.
    pub trained_rows: u64,
    /// Microseconds in which slots trained or evaluated for acknowledged results, as hosts report them.
    pub slot_micros: u64,
}

impl Totals {
    /// Counts an event that was just decided.
    pub(crate) fn count(&mut self, event: &Event) {
        match event {
            Event::LeaseGranted { unit, speculative_for, .. } => {
                self.granted.add(UnitKind::of(unit));
                self.granted_speculative += u64::from(speculative_for.is_some());
            }
            Event::LeaseEnded { end, .. } => self.ended.add(match end {
                LeaseEnd::Silent => LeaseEndReason::Silent,
                LeaseEnd::Overdue => LeaseEndReason::Overdue,
                LeaseEnd::GivenBack { .. } => LeaseEndReason::Returned,
                LeaseEnd::Revoked => LeaseEndReason::Revoked,
            }),
            Event::ReportAcknowledged { report, .. } => self.reported(&report.outcome),
            Event::Assimilated { .. } | Event::Evaluated { .. } | Event::ExtraEvaluated { .. } => {
                self.results.add(ResultEnd::Taken);
            }
            Event::Rejected { fault: Fault::Host, .. } => self.results.add(ResultEnd::Rejected),
            Event::Rejected { fault: Fault::Server, .. } => self.results.add(ResultEnd::Lost),
            Event::Superseded { .. } => self.results.add(ResultEnd::Superseded),
            Event::UnitFailed { .. } => self.results.add(ResultEnd::Failed),
            _ => {}
        }
    }

    fn reported(&mut self, outcome: &Outcome) {
        self.reports += 1;
        let micros = match outcome {
            Outcome::Trained(trained) => {
                // A host may say any number.
                self.trained_rows = self.trained_rows.saturating_add(trained.sums.rows);
                trained.train_micros
            }
            Outcome::Evaluated(evaluated) => evaluated.train_micros,
            Outcome::Failed(_) => 0,
        };
        self.slot_micros = self.slot_micros.saturating_add(micros);
    }
}
