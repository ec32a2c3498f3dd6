//! Checking and submitting a job: job file, data, shards, initial weights, and the wait for its end.

pub(crate) mod columns;
pub(crate) mod command;
pub(crate) mod graphs;
mod history;
pub(crate) mod init;
pub(crate) mod init_weights;
pub(crate) mod jobfile;
pub(crate) mod prices;
pub(crate) mod reading;
pub(crate) mod sharding;
pub(crate) mod validate;
pub(crate) mod wait;
mod warnings;
pub(crate) mod workspace;
