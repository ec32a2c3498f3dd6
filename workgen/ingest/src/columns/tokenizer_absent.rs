//! Tokenizers, in a program that was built without them.

use crate::{
    error::{IngestError, Problem},
    source::SourceFile,
};
use sojourn_protocol::dtype::Dtype;

/// The tokenizer of a file: there is none.
pub(super) enum Tokenizer {}

impl Tokenizer {
    /// Refuses the file.
    pub(super) fn open(file: &SourceFile) -> Result<Self, IngestError> {
        Err(file.refuse(Problem::NotBuilt("tokenizers")))
    }

    pub(super) fn dtype(&self) -> Dtype {
        match *self {}
    }

    pub(super) fn values(&self) -> u64 {
        match *self {}
    }

    pub(super) fn longest_line(&self) -> u64 {
        match *self {}
    }

    pub(super) fn encode(&self, _: &str, _: &mut Vec<u8>) -> Result<(), Problem> {
        match *self {}
    }
}
