//! The problems of a row in libsvm's format.

use super::line;

/// Why a line is no row: a label, and pairs of an index and a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum SparseProblem {
    #[error("the row begins with `{text}`, and a label is wanted there, such as `1 {text}`", text = line(.0))]
    NoLabel(String),
    #[error("the row has several labels, `{text}`; one is wanted", text = line(.0))]
    SeveralLabels(String),
    #[error("`{text}` is no pair of an index and a value, such as `3:0.5`", text = line(.0))]
    NoPair(String),
    #[error("`{text}` is no index, a whole number from 0", text = line(.0))]
    NoIndex(String),
    #[error("the index of `{pair}` is too large; rows are made dense, and {limit} is the most", pair = line(.pair))]
    LargeIndex { pair: String, limit: usize },
    #[error("the index {0} is there twice")]
    Twice(usize),
    #[error("the index {index} comes behind {last}; indices must grow from left to right")]
    Order { index: usize, last: usize },
    /// Of other data than the training data, whose first and last index these are.
    #[error(
        "the index {index} isn't among those of the training data, {first} to {last}; to make room for it, end a row of the training \
         data with ` {index}:0`"
    )]
    OtherIndex { index: usize, first: usize, last: usize },
}

impl SparseProblem {
    /// The text that is wrong.
    pub(super) fn value(&self) -> String {
        match self {
            SparseProblem::NoLabel(text)
            | SparseProblem::SeveralLabels(text)
            | SparseProblem::NoPair(text)
            | SparseProblem::NoIndex(text)
            | SparseProblem::LargeIndex { pair: text, .. } => text.clone(),
            SparseProblem::Twice(index)
            | SparseProblem::Order { index, .. }
            | SparseProblem::OtherIndex { index, .. } => format!("{index}:"),
        }
    }
}
