//! The journal in Redis. Several servers may share it: one is active, by a lease; the others stand by.

mod configured;
mod connection;
mod keys;
mod lease;
mod open;
mod storage;
mod url;

pub use open::{RedisJournals, RedisSettings};
pub use url::{RedisUrl, RedisUrlError};
