//! A journal in Redis, in a program that was built without it.

use crate::cli::serve::open_error::OpenError;
use sojourn_server::journal::{Durability, OpenJournal};
use std::{path::Path, sync::Arc};

/// Why every URL is refused.
const NOT_BUILT: &str = "this program was built without Redis; `make build` builds the whole";

/// Refuses a URL.
pub(super) fn check(_: &str) -> Result<(), String> {
    Err(NOT_BUILT.to_owned())
}

/// Refuses a URL.
pub(super) fn connect(_: &str, _: Durability, _: &Path) -> Result<Arc<dyn OpenJournal>, OpenError> {
    Err(OpenError::Other(NOT_BUILT.to_owned()))
}
