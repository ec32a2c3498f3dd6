//! Why a scenario has no result.

/// Why there is no result: a whole sentence, with the line or the key where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The file, or one that it names, asks for what can't be run.
    #[error("{0}")]
    Wrong(String),
    /// The scenario was run, and came to no end.
    #[error("{0}")]
    Endless(String),
}

/// A file that asks for what can't be run, in these words.
pub(super) fn wrong<T>(message: &str) -> Result<T, ScenarioError> {
    Err(ScenarioError::Wrong(message.to_owned()))
}
