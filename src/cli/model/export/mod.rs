//! `sojourn export`: all that users take out of a job. A model as a file, or what the server knows of the trials as tables, as
//! TensorBoard's event files, or in a tracking server of MLflow.
//!
//! ```text
//! checkpoint ------------------------------------------> FILE.safetensors
//!
//! answers (of /v1) --> tables: trials, hops, metrics --> CSV, Parquet, JSON
//!    |---------------------------------------------> mlflow: a run for each trial in a tracking server
//!    '-- journal: when leases were granted, ... '------> tensorboard: a run folder for each trial
//!
//! the core's answers --> live: the event files of all jobs, which `sojourn serve` keeps itself
//! ```

pub(in crate::cli::model) mod answers;
mod checkpoint;
mod command;
mod download;
pub(in crate::cli::model) mod journal;
pub(crate) mod live;
mod mlflow;
#[cfg(test)]
pub(in crate::cli::model) mod samples;
mod tables;
mod tensorboard;
mod trained_rows;

pub(crate) use command::{Args, run};
