//! Bounds of the reading of data that somebody else has sent. Readers, decoders and writers ask at each step, so that a few packed
//! bytes can't become more than is allowed. A download asks by time as well, once a second.
//!
//! ```text
//!   file --Read--> unpacked --Unpacked--> rows --Decoded--> shards --Written--> disk
//! ```

use crate::error::IngestError;
pub use crate::error::Refusal;
use std::{fmt, io, sync::Arc};

/// Bytes of decoded rows between two questions.
const DECODED_INTERVAL: u64 = 1 << 20;
/// Least bytes that a decoded row counts for: a row without numbers takes time too.
const MIN_ROW_BYTES: u64 = 16;

/// A step of reading, in bytes. No step is larger than about a megabyte, but for one page of a Parquet file and one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bytes of files as they are.
    Read(u64),
    /// Bytes that came out of a compressed file, page or image.
    Unpacked(u64),
    /// Bytes of rows in memory.
    Decoded(u64),
    /// Bytes that are about to be written: copies of remote or packed files, and shards.
    Written(u64),
}

/// Bounds of one reading.
pub trait Bounds: fmt::Debug + Send + Sync {
    /// Counts a step, and lets reading go on.
    ///
    /// # Errors
    /// Why reading is to end. The caller ends it at once.
    fn admit(&self, step: Step) -> Result<(), Refusal>;

    /// May this URL be fetched? Every hop of a redirect is asked about, as the first address is.
    fn admits_url(&self, url: &str) -> bool;
}

/// No bounds, for people who read their own data on their own machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unbounded;

impl Bounds for Unbounded {
    fn admit(&self, _: Step) -> Result<(), Refusal> {
        Ok(())
    }

    fn admits_url(&self, _: &str) -> bool {
        true
    }
}

/// Bounds as readers hold them.
pub(crate) type SharedBounds = Arc<dyn Bounds>;

/// No bounds.
pub(crate) fn unbounded() -> SharedBounds {
    Arc::new(Unbounded)
}

/// Counts bytes that came out of a decoder, for a reader.
pub(crate) fn admit_unpacked(bounds: &SharedBounds, bytes: u64) -> io::Result<()> {
    bounds.admit(Step::Unpacked(bytes)).map_err(io::Error::other)
}

/// The refusal that an error of a reader holds; or the error.
pub(crate) fn refusal(error: io::Error) -> Result<IngestError, io::Error> {
    error.downcast::<Refusal>().map(IngestError::Refused)
}

/// Counts decoded rows, and asks about them now and then.
#[derive(Debug)]
pub(crate) struct RowCount {
    bounds: SharedBounds,
    bytes: u64,
}

impl RowCount {
    pub(crate) const fn new(bounds: SharedBounds) -> Self {
        Self { bounds, bytes: 0 }
    }

    /// The bounds that it asks.
    pub(crate) fn bounds(&self) -> SharedBounds {
        SharedBounds::clone(&self.bounds)
    }

    /// Counts a row of so many bytes.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), IngestError> {
        self.bytes = self.bytes.saturating_add(bytes.max(MIN_ROW_BYTES));
        if self.bytes < DECODED_INTERVAL {
            return Ok(());
        }
        Ok(self.bounds.admit(Step::Decoded(std::mem::take(&mut self.bytes)))?)
    }
}
