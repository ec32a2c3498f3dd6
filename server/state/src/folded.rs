//! The state behind its only door.

use crate::{Changes, FoldError, Job, Record, State};
use sojourn_protocol::time::Millis;
use std::ops::Deref;

/// The state that events have made. Everybody may read it; [`Folded::fold`] alone changes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded(State);

impl Folded {
    /// The state before the first event. Leases that ended are remembered for `remember`.
    #[must_use]
    pub fn new(remember: Millis) -> Self {
        Self(State::new(remember))
    }

    /// The state of a snapshot. Indexes, which a snapshot doesn't hold, are computed.
    #[must_use]
    pub fn of_snapshot(mut state: State) -> Self {
        state.index();
        Self(state)
    }

    /// Folds one event in, which must be the one after [`State::position`], and says what has changed.
    ///
    /// # Errors
    /// [`FoldError`] where the event doesn't fit the state, which is unchanged then.
    pub fn fold(&mut self, record: &Record) -> Result<Changes, FoldError> {
        self.0.fold(record, None)
    }

    /// Folds a job's submission in, with the job as it was made before: it is used where the event says the same job.
    ///
    /// # Errors
    /// As [`Folded::fold`].
    pub fn fold_submitted(
        &mut self,
        record: &Record,
        made: Box<Job>,
    ) -> Result<Changes, FoldError> {
        self.0.fold(record, Some(made))
    }
}

impl Deref for Folded {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}
