//! HDF5, in a program that was built without it: recognised, and refused.

use super::Array;
use crate::{
    error::{IngestError, Problem},
    source::{Finder, SourceFile},
};

/// A file's datasets, of which there are none.
pub(super) enum Datasets {}

impl Datasets {
    /// Refuses a file.
    pub(super) fn open(_: &mut Finder<'_>, file: SourceFile) -> Result<Self, IngestError> {
        Err(file.refuse(Problem::NotBuilt("HDF5")))
    }

    /// The names of its datasets.
    pub(super) fn names(&self) -> &[String] {
        match *self {}
    }

    /// An array.
    pub(super) fn array(
        &self,
        _: &mut Finder<'_>,
        _: &'static str,
        _: &str,
    ) -> Result<Array, IngestError> {
        match *self {}
    }

    /// An array without its bytes.
    pub(super) fn described(&self, _: &'static str, _: &str) -> Result<(Array, ()), IngestError> {
        match *self {}
    }
}
