//! Why a state can't be gone on from.

use sojourn_protocol::ids::Version;

/// Why a state doesn't belong to the rule and the version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The state's counters aren't what this version of Sojourn writes.
    #[error("it has no counters that this version of Sojourn can read")]
    Format,
    /// Another rule's.
    #[error("it is of the rule `{actual}`, the trial's is `{expected}`")]
    Rule {
        /// The trial's rule.
        expected: &'static str,
        /// The state's.
        actual: &'static str,
    },
    /// Another version's.
    #[error("it belongs to version {actual}, the model is version {expected}")]
    Version {
        /// The model's.
        expected: Version,
        /// The state's.
        actual: Version,
    },
    /// Numbers that no merge leaves.
    #[error("its counters hold what no merge leaves")]
    Counters,
}
