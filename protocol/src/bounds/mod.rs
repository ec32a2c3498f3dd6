//! Bounds of everything that a server takes from outside: characters of texts, entries of lists, ranges of numbers.
//!
//! ```text
//!   JSON --> T --> Bounded<T> --> handler
//!                  `-- each field of T against its line in the table (`table.rs`), in whatever other type it lies
//! ```
//!
//! A request is read as a [`Bounded`], which can't be made of a value past its bounds. So no handler checks any of them. The
//! same table is shown in the document that describes the API. Journals are read without it: they may hold what an earlier
//! server took, and what a server took once isn't refused later.
//!
//! ```
//! use sojourn_protocol::{api::EnrolRequest, bounds::{Bounded, MAX_GIVEN_NAME_CHARS}};
//!
//! let enrol = |name: String| Bounded::new(EnrolRequest { name });
//! assert_eq!(enrol("lab-7".into()).unwrap().name, "lab-7");
//! let error = enrol("x".repeat(MAX_GIVEN_NAME_CHARS + 1)).unwrap_err();
//! assert_eq!(error.to_string(), "`name` has 1025 characters; at most 1024 are taken");
//! ```

mod table;
mod walk;

pub use table::{
    BOUNDS, Bound, Leaf, MAX_AMOUNT, MAX_BLOB_BYTES, MAX_CACHED_BLOBS, MAX_CHOICES, MAX_CLASSES,
    MAX_DEVICES, MAX_DIMENSIONS, MAX_ENGINE_MODELS, MAX_ENGINES, MAX_FEATURES, MAX_FLOPS,
    MAX_GIVEN_NAME_CHARS, MAX_GRAPH_FLOPS, MAX_GRAPH_TENSORS, MAX_GRAPH_WIDTH, MAX_GRAPHS,
    MAX_JOB_BLOBS, MAX_LAYERS, MAX_LEASES, MAX_LINEAGE, MAX_MEASURED, MAX_MESSAGE_CHARS,
    MAX_MODELS, MAX_NANOS_PER_ROW, MAX_NUMERIC_CLASSES, MAX_OTHER_ENTRIES, MAX_PLACE_CHARS,
    MAX_RANGES, MAX_RULE_SLOTS, MAX_SHARDS, MAX_SLOTS, MAX_SQUARES, MAX_TIME, MAX_TRAIN_MICROS,
};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::ops::Deref;

/// A value each of whose texts, lists and numbers is within its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Bounded<T>(T);

impl<T: Serialize> Bounded<T> {
    /// Checks a value.
    ///
    /// # Errors
    /// The first of its fields that is past its bound.
    pub fn new(value: T) -> Result<Self, OutOfBounds> {
        walk::check(&value)?;
        Ok(Self(value))
    }
}

impl<T> Bounded<T> {
    /// The value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Bounded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(T::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A field is past its bound. `at` is its path, such as `inventory.devices[2].name`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum OutOfBounds {
    #[error("`{at}` has {is} entries; at most {most} are taken")]
    Entries { at: String, is: usize, most: usize },
    #[error("`{at}` has {is} characters; at most {most} are taken")]
    Characters { at: String, is: usize, most: usize },
    #[error("`{at}`, which begins with `{begins}`, isn't one line of at most {most} characters")]
    Line { at: String, begins: String, most: usize },
    #[error(
        "`{at}`, which begins with `{begins}`, has characters that nobody sees, or spaces at its ends"
    )]
    Name { at: String, begins: String },
    #[error("`{at}` is {is}; at most {most} is taken")]
    Whole { at: String, is: u64, most: u64 },
    #[error("`{at}` is {is}; {least} to {most} is taken")]
    Between { at: String, is: i128, least: i64, most: u64 },
    #[error("`{at}` is {is}; {least} to {most} is taken")]
    Real { at: String, is: f64, least: f64, most: f64 },
    /// A type can't be written at all: a fault of the program.
    #[error("`{at}`: {why}")]
    Unwritten { at: String, why: String },
}

#[cfg(test)]
mod tests;
