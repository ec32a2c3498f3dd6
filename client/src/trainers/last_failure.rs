//! The last unit's failure, for an owner who asks why the machine does nothing.

use parking_lot::Mutex;
use sojourn_protocol::report::Outcome;

/// Characters of an error that are shown.
const MAX_CHARS: usize = 300;

/// The last unit's failure; none where it went well.
#[derive(Debug, Default)]
pub(crate) struct LastFailure(Mutex<Option<String>>);

impl LastFailure {
    /// A unit has ended so.
    pub(crate) fn note(&self, outcome: &Outcome) {
        let failure = match outcome {
            Outcome::Failed(failure) => {
                let line = failure.message.lines().next().unwrap_or_default();
                Some(line.chars().take(MAX_CHARS).collect())
            }
            Outcome::Trained(_) | Outcome::Evaluated(_) => None,
        };
        *self.0.lock() = failure;
    }

    /// The failure's first line.
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }
}
