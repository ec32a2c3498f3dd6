//! One suite for every journal, and what each of them can suffer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod contract;
mod failover;
mod memory;
mod redis;
#[path = "../support/redis.rs"]
mod redis_server;
#[path = "../support/replicas.rs"]
mod replicas;
mod shared_note;
mod sqlite;
mod stored;
