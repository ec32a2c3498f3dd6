//! The daemon: asks for work, fetches blobs, drives trainers, uploads, reports. Decides nothing about
//! training, and outlives everything but its owner's word, a revoked token and a missing trainer.
//!
//! ```text
//!  work ──leases──> unit (a task per lease) ──> seats ──> runner ──> trainer child
//!   ^  drop, ended    │ fetch: transfer + cache    │ result
//!   │                 │                            v
//!  heartbeat          └──────────────> outbox ──> delivery ──> server
//! ```
//!
//! `table` is the one place that knows every lease; each loop follows its changes, so that nothing polls.

mod ahead;
mod api;
mod cache;
mod coming;
mod config;
mod contact;
pub mod control;
mod daemon;
mod delivery;
mod devices;
mod error;
mod failure;
mod farewell;
mod folder;
mod gpus;
mod heartbeat;
mod host;
mod identity;
pub mod limits;
pub mod log;
mod measured;
mod meter;
mod notice;
mod outbox;
mod part;
mod rest;
mod run;
mod runner;
mod seats;
mod slot_runner;
mod table;
mod transfer;
mod trouble;
mod unit;
mod watchdog;
mod work;

pub use config::{ClientConfig, METADATA, Timing};
pub use daemon::run_with;
pub use error::ClientError;
pub use gpus::{GpuChoice, GpuError, gpu_slot};
pub use run::run;
pub use runner::{RunnerDevice, RunnerError, UnitRunner};
pub use transfer::Rates;
