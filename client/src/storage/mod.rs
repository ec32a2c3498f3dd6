//! The contents of the data folder: cached blobs, results that aren't delivered yet, measurements, and the stores that the
//! server named.

pub(crate) mod cache;
pub(crate) mod folder;
pub(crate) mod machine;
pub(crate) mod measurements;
pub(crate) mod outbox;
pub(crate) mod stores;
