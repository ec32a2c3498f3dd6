//! Calls of the crate that decodes: its panics are errors of the file.

use parquet::errors::ParquetError;
use sojourn_protocol::text::plain_line;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Most characters of a reason.
const MAX_REASON: usize = 200;

/// What `run` returns; the reason where it fails or panics. What it worked on must not be used any more then.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    let reason = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => said(panic.as_ref()),
    };
    Err(plain_line(&reason, MAX_REASON).to_string())
}

fn said(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no reason is known".to_owned(),
    }
}
