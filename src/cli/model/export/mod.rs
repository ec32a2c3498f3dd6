//! `sojourn export`: all that users take out of a job. A model as a file, or what the server knows of the trials as tables or as
//! TensorBoard's event files.
//!
//! ```text
//! checkpoint ------------------------------------------> FILE.safetensors
//!
//! answers (of /v1) --> tables: trials, hops, metrics --> CSV, Parquet, JSON
//!    '-- journal: when leases were granted, ... '------> tensorboard: a run folder for each trial
//! ```

pub(in crate::cli::model) mod answers;
mod checkpoint;
mod command;
pub(in crate::cli::model) mod journal;
#[cfg(test)]
pub(in crate::cli::model) mod samples;
mod tables;
mod tensorboard;

pub(crate) use command::{Args, run};
