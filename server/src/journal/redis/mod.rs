//! The journal in Redis. Several servers may share it: one is active, by a lease; the others stand by.

mod connection;
mod durability;
mod keys;
mod lease;
mod open;
mod storage;
mod url;

pub use durability::{Disk, Durability, DurabilityError};
pub use open::{RedisJournals, RedisSettings};
pub use url::{RedisUrl, RedisUrlError};
