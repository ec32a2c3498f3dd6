//! Bounds of the reading of one job's data: Stop, the disk's reserve, and the bytes that files may become.

use super::{DataUpload, DataUploads};
use crate::{
    prepare_job::{DataBounds, DataStep, ReaderLimits},
    storage_watch::{Coming, StorageWatch},
};
use parking_lot::Mutex;
use sojourn_blobs::UploadName;
use sojourn_protocol::digest::Digest;
use std::sync::Arc;

/// Any blob, where only the floor counts that the disk has for blobs.
pub(crate) const ANY_BLOB: UploadName = UploadName::Blob(Digest([0; 32]));
/// Files may unpack to so many times the bytes that are taken at most, over all passes, and so may their rows in memory.
const UNPACKED_TIMES: u64 = 8;

/// Bounds of one job's reading.
#[derive(Debug)]
pub(crate) struct ReadingBounds {
    uploads: DataUploads,
    upload: Arc<DataUpload>,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    unpacked: u64,
    decoded: u64,
    written: u64,
    /// The free bytes at the disk's last look, and the bytes that were written since.
    seen: u64,
    since_look: u64,
    /// Why reading ends. Once there is a reason, it stays.
    why: Option<String>,
}

impl ReadingBounds {
    pub(crate) fn new(uploads: DataUploads, upload: Arc<DataUpload>) -> Self {
        Self { uploads, upload, counted: Mutex::default() }
    }

    /// The limits of the process that reads.
    pub(crate) fn reader_limits(&self) -> ReaderLimits {
        self.uploads.reader_limits(&self.upload)
    }

    /// Why the reading was ended, if it was.
    pub(crate) fn why(&self) -> Option<String> {
        self.counted.lock().why.clone()
    }
}

impl DataBounds for ReadingBounds {
    fn admit(&self, step: DataStep) -> Result<(), String> {
        let mut counted = self.counted.lock();
        if counted.why.is_none() {
            counted.why = if self.upload.is_aborted() {
                Some("it was ended".to_owned())
            } else {
                counted.add(step, self.uploads.limit(), self.uploads.storage()).err()
            };
        }
        counted.why.clone().map_or(Ok(()), Err)
    }

    fn admits_url(&self, url: &str) -> bool {
        self.uploads.urls().iter().any(|of| of.admits(url))
    }
}

impl Counted {
    fn add(&mut self, step: DataStep, limit: u64, storage: &StorageWatch) -> Result<(), String> {
        let many = limit.saturating_mul(UNPACKED_TIMES);
        let (count, bytes, most, what) = match step {
            DataStep::Read(_) => (&mut self.unpacked, 0, many, ""),
            DataStep::Unpacked(bytes) => (&mut self.unpacked, bytes, many, "its files unpack to"),
            DataStep::Decoded(bytes) => (&mut self.decoded, bytes, many, "its rows take"),
            DataStep::Written(bytes) => (&mut self.written, bytes, limit, "its shards take"),
        };
        let after = count.saturating_add(bytes);
        if after > most {
            return Err(format!(
                "{what} more than {most} bytes, which follows from `--max-data-uploads`: `sojourn submit` reads larger data"
            ));
        }
        *count = after;
        let coming = match step {
            DataStep::Written(bytes) => bytes,
            _ => 0,
        };
        let free = storage.seen().free;
        if free != std::mem::replace(&mut self.seen, free) {
            self.since_look = 0;
        }
        self.since_look = self.since_look.saturating_add(coming);
        let coming = Coming { spooled: self.since_look, stored: 0 };
        storage.admit(ANY_BLOB, coming).map_err(|refused| refused.message)
    }
}
