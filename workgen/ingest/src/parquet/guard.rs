//! Calls of the crate that decodes: its errors and its panics are errors of the file.

use crate::guard::{self, MAX_REASON};
use parquet::errors::ParquetError;
use sojourn_protocol::text::plain_line;

/// Returns what `run` returns; the reason where it fails or panics. What it worked on must not be used any more then.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    guard::guarded(run)?.map_err(|error| plain_line(&error.to_string(), MAX_REASON))
}
