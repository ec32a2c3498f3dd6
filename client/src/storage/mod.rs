//! The contents of the data folder: cached blobs, results that aren't delivered yet, and measurements.

pub(crate) mod cache;
pub(crate) mod folder;
pub(crate) mod measurements;
pub(crate) mod outbox;
