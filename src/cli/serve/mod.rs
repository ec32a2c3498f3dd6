//! Commands of the machine that serves: the server itself, its journal and its store.

pub(crate) mod backup;
pub(crate) mod command;
pub(crate) mod gc;
pub(crate) mod journal_url;
pub(crate) mod keep_jobs;
pub(crate) mod migrate;
mod open_error;
pub(crate) mod prepare;
#[cfg_attr(not(feature = "redis"), path = "redis_absent.rs")]
mod redis;
