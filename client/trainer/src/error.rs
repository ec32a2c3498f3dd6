//! Why a unit could not be done, and how the slot hears of it.

use sojourn_codec::CodecError;
use sojourn_graph::GraphError;
use sojourn_model::ModelError;
use sojourn_protocol::{
    digest::Digest,
    error::error_chain,
    report::{Failure, FailureKind},
};
use std::{io, path::PathBuf};
use tch::TchError;

/// Why a unit failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrainError {
    /// The model's fault, or its learning rate's: the numbers left the finite.
    #[error("{0}")]
    NonFinite(String),
    /// The unit asks for something that its own data or files contradict.
    #[error("{0}")]
    Unit(String),
    #[error("no file was given for blob `{0}`")]
    NoFile(Digest),
    #[error("the file of blob `{0}` has been altered or deleted")]
    Damaged(Digest),
    /// A file can't be read or written.
    #[error("can't {verb} `{}`", path.display())]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    #[error("`{what}` can't be read")]
    Blob { what: &'static str, source: CodecError },
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// libtorch refused.
    #[error("libtorch: {}", first_line(.0))]
    Torch(#[from] TchError),
    /// There is no such GPU, or no library that could use it.
    #[error("{0}")]
    Device(String),
    /// The file of a graph is none.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// An operator of a graph can't be called.
    #[error("node {node} (`{op}`) of the graph: {fault}")]
    Node { node: usize, op: &'static str, fault: Box<TrainError> },
    #[error("a size doesn't fit: {0}")]
    Size(#[from] std::num::TryFromIntError),
}

impl TrainError {
    /// The answer to the slot.
    pub(crate) fn to_failure(&self) -> Failure {
        Failure { kind: self.kind(), message: error_chain(self) }
    }

    fn kind(&self) -> FailureKind {
        match self {
            TrainError::NonFinite(_) => FailureKind::NonFinite,
            TrainError::Damaged(_) => FailureKind::Damaged,
            // Nothing is wrong with the unit.
            TrainError::File { .. } | TrainError::Device(_) => FailureKind::Died,
            TrainError::Torch(error) => kind_of(&error.to_string()),
            TrainError::Node { fault, .. } => fault.kind(),
            // The blobs are those of the unit, as their digests say: it is wrong wherever it is tried.
            TrainError::Unit(_)
            | TrainError::Blob { .. }
            | TrainError::Model(_)
            | TrainError::Graph(_)
            | TrainError::Size(_) => FailureKind::WrongUnit,
            TrainError::NoFile(_) => FailureKind::Trainer,
        }
    }
}

/// How libtorch's allocators, and the libraries below it, say that there is no memory left. It has an exception
/// for that, which its C interface passes on as text alone.
const NO_MEMORY: &[&str] =
    &["out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED"];

/// The kind of an error of libtorch.
pub(crate) fn kind_of(message: &str) -> FailureKind {
    let no_memory = NO_MEMORY.iter().any(|words| message.contains(words));
    if no_memory { FailureKind::OutOfMemory } else { FailureKind::Trainer }
}

/// libtorch's messages go on with a stack of C++ frames.
fn first_line(error: &TchError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A unit that can't be done, for this reason.
pub(crate) fn unit(message: impl Into<String>) -> TrainError {
    TrainError::Unit(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_wrong_is_told_from_a_host_that_is() {
        let digest = Digest::of(b"blob");
        let node = |fault| TrainError::Node { node: 3, op: "aten.linear.default", fault };
        let wrong = [
            unit("the shard has class 9, the model has 2 outputs"),
            TrainError::Graph(GraphError::Version(9)),
            TrainError::Blob { what: "shard", source: CodecError::Truncated { bytes: 3 } },
            node(Box::new(unit("an axis is outside"))),
        ];
        for error in wrong {
            assert_eq!(error.to_failure().kind, FailureKind::WrongUnit, "{error}");
        }
        let hosts = [
            (TrainError::NoFile(digest), FailureKind::Trainer),
            (TrainError::Damaged(digest), FailureKind::Damaged),
            (TrainError::Device("no such GPU".into()), FailureKind::Died),
            (TrainError::NonFinite("the loss is NaN".into()), FailureKind::NonFinite),
        ];
        for (error, kind) in hosts {
            assert_eq!(error.to_failure().kind, kind, "{error}");
        }
    }
}
