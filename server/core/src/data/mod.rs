//! Data on hosts: replicas of shards, shards to fetch ahead, blobs to evict.
//!
//! | file | holds |
//! |---|---|
//! | `handler.rs` | when replicas are assigned, and the classes chosen that jobs prefer |
//! | `prefetch.rs` | shards that idle hosts fetch ahead, and blobs that nobody will need |

mod handler;
mod prefetch;

pub(crate) use handler::PlacementHandler;
