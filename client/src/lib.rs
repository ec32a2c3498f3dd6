//! The daemon of a host: asks for work, fetches blobs, runs trainers, sends results. It decides nothing about training.
//! It outlives every fault that passes, and ends when its owner wants that, when its token is revoked, or when its
//! trainers aren't there or aren't what they were.
//!
//! ```text
//!  limits, notices, control socket ──events──> driver ──events──> sojourn-client-core (decides)
//!                                              │    ^                    │
//!                                              │    └──────actions───────┘
//!                                              v
//!                                   executors: calls, fetch, run, deliver
//!                                              │ use
//!                             server API, cache and outbox, trainers, owner's limits
//! ```
//!
//! Decisions about leases are made in `sojourn-client-core`, which the simulations use too. The driver owns its agent.
//! Each action starts an executor, and each executor ends with one message to the driver.
//!
//! ```
//! use sojourn_client::{
//!     CacheFor, ClientConfig, GpuChoice, Rates, Timing, limits::Allowance, log::LogChoice,
//! };
//!
//! let config = ClientConfig {
//!     server: "https://sojourn.example:7070".into(),
//!     ca: None,
//!     token: Some("enrolment token".into()),
//!     name: "machine 7".into(),
//!     data: "/var/lib/sojourn".into(),
//!     slots: Some(2),
//!     cpu_slots: 0,
//!     gpus: GpuChoice::Off,
//!     cache_bytes: 10 << 30,
//!     cache_for: CacheFor::default(),
//!     rates: Rates::default(),
//!     allowance: Allowance::default(),
//!     log: LogChoice::Off,
//!     trainer: None,
//!     metadata: None,
//!     send_log: true,
//!     timing: Timing::default(),
//! };
//! // `sojourn_client::run(config, shutdown)` then works until `shutdown` ends.
//! assert!(config.validate().is_ok());
//! assert!(ClientConfig { slots: Some(0), ..config }.validate().is_err());
//! ```

mod api;
mod config;
mod contact;
mod context;
pub mod control;
mod core_use;
mod daemon;
mod driver;
mod error;
mod executors;
mod forgotten;
mod identity;
pub mod limits;
pub mod log;
mod message;
mod meter;
mod preemption;
mod run;
mod storage;
mod trainers;
mod transfer;

pub use config::{CacheFor, ClientConfig, METADATA, Timing};
pub use daemon::run_with;
pub use error::ClientError;
pub use run::run;
pub use trainers::gpus::{GpuChoice, GpuError, gpu_slot};
pub use trainers::runner::{RunnerDevice, RunnerError, UnitRunner};
pub use transfer::Rates;
