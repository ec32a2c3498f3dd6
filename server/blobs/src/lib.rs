//! Content-addressed blobs over object_store.
