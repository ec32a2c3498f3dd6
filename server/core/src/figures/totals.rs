//! Counts of events since the core began. They aren't durable: after a restart they begin at 0, which monitoring expects of
//! counters. Sums over the jobs would get smaller whenever a job is deleted, and monitoring would take that for a restart.

use super::{Counts, UnitKind};
use sojourn_protocol::report::Outcome;
use sojourn_state::{Change, LeaseEndReason, PastState, ResultEnd, State};

/// Counts since the core began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Leases that were granted.
    pub granted: Counts<UnitKind>,
    /// Leases among them that duplicate another one.
    pub granted_speculative: u64,
    /// Leases that ended without a report.
    pub ended: Counts<LeaseEndReason>,
    /// Reports that were acknowledged.
    pub reports: u64,
    /// How many of their results came to each end.
    pub results: Counts<ResultEnd>,
    /// Rows of training data in acknowledged results, as hosts report them.
    pub trained_rows: u64,
    /// Microseconds in which slots trained or evaluated for acknowledged results, as hosts report them.
    pub slot_micros: u64,
}

impl Totals {
    /// Counts a change. `state`: as the change has left it.
    pub(crate) fn count(&mut self, change: Change, state: &State) {
        match change {
            Change::LeaseGranted(lease) => {
                if let Some(lease) = state.leases.get(&lease) {
                    self.granted.add(UnitKind::of(&lease.unit));
                    self.granted_speculative += u64::from(lease.speculative_for.is_some());
                }
            }
            Change::LeaseEnded { end, .. } => self.ended.add(end),
            Change::Reported(lease) => {
                let past = state.past.get(&lease).map(|past| &past.state);
                if let Some(PastState::Acknowledged(outcome)) = past {
                    self.reported(outcome);
                }
            }
            Change::ResultSettled { end, .. } => self.results.add(end),
            Change::Work { .. }
            | Change::Runnable(_)
            | Change::NothingFollows(_)
            | Change::Job(_)
            | Change::WallTime => {}
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
