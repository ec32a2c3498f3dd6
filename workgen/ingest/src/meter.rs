//! How far reading is, over all passes.

use crate::{
    bounds::{RowCount, SharedBounds},
    error::IngestError,
    progress::Progress,
};

/// Bytes between two reports of progress.
const REPORT_INTERVAL: u64 = 4 << 20;

/// Counts the bytes read over all passes, and reports them now and then. Asks whether reading may go on.
pub(crate) struct Meter {
    of: u64,
    /// Bytes of the tables that are done.
    done: u64,
    reported: u64,
    rows: RowCount,
}

impl Meter {
    /// Nothing is read of so many bytes.
    pub(crate) const fn new(of: u64, bounds: SharedBounds) -> Self {
        Self { of, done: 0, reported: 0, rows: RowCount::new(bounds) }
    }

    /// One of another reading, of so many bytes, within the same bounds.
    pub(crate) fn another(&self, of: u64) -> Self {
        Self::new(of, self.rows.bounds())
    }

    /// Reports how far the pass over one table is, after a row of so many bytes.
    pub(crate) fn report(
        &mut self,
        read: u64,
        row: u64,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), IngestError> {
        let bytes = self.done.saturating_add(read);
        if bytes.saturating_sub(self.reported) >= REPORT_INTERVAL {
            self.reported = bytes;
            progress(Progress::Reading { bytes, of: self.of });
        }
        self.rows.add(row)
    }

    /// One table is done.
    pub(crate) fn end(&mut self, bytes: u64, progress: &mut dyn FnMut(Progress<'_>)) {
        self.done = self.done.saturating_add(bytes);
        self.reported = self.done;
        progress(Progress::Reading { bytes: self.done, of: self.of });
    }
}
