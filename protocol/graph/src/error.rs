//! Why bytes are no graph.

use sojourn_codec::CodecError;
use sojourn_model::ModelError;

/// Why a file is no graph, or none that may be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum GraphError {
    #[error("the graph's file can't be read")]
    File(#[from] CodecError),
    #[error("the graph's tensors can't be trained")]
    Tensors(#[from] ModelError),
    #[error("a graph may have {limit} {what} at most")]
    TooMany { what: &'static str, limit: u64 },
    #[error("the graph isn't written as graphs are: {0}")]
    Json(String),
    #[error("this is a graph of version {0}, and version 1 can be read")]
    Version(u64),
    #[error("{part} {fault}")]
    Part { part: String, fault: String },
    #[error("node {node} of `{list}` (`{op}`) {fault}")]
    Node { list: String, node: usize, op: String, fault: String },
}

/// At most this much of a foreign name is said again.
const SAID: usize = 60;

/// The beginning of a foreign name.
pub(crate) fn said(name: &str) -> String {
    name.chars().take(SAID).collect()
}

impl GraphError {
    pub(crate) fn part(part: impl Into<String>, fault: impl Into<String>) -> Self {
        GraphError::Part { part: part.into(), fault: fault.into() }
    }
}
