//! What crosses the wire between server, clients, trainers and the command line.
//!
//! Plain data with its encodings and its checks, and nothing else: no I/O, no clock, no randomness
//! that isn't derived from a seed. Everything here is serialised somewhere (journal, HTTP, the
//! trainer's standard streams), so a field is never renamed or given another meaning without a new
//! version beside the old one.
//!
//! | module | holds |
//! |---|---|
//! | [`ids`], [`time`], [`digest`], [`position`] | the small words that everything is said in |
//! | [`quantity`], [`reason`] | numbers with their unit; why leases come back and work waits |
//! | [`spec`] | the job as the user wrote it, and one trial's configuration |
//! | [`jobfile`] | `job.toml` to [`spec::JobSpec`], with messages that name line and key |
//! | [`manifest`] | what ingest made of the data: shards, classes, scaling |
//! | [`inventory`] | what a host has, and what it could do with |
//! | [`unit`], [`report`] | work that is handed out, and what comes back |
//! | [`metrics`] | what follows from the counts of an evaluation |
//! | [`api`], [`view`], [`error`] | requests, answers, what reading commands see, and errors over HTTP |
//! | [`assimilation`] | the same for assimilators: units to take, what is offered for them, how many wait |
//! | [`ranges`] | how the merge of a large model is shared out among assimilators |
//! | [`trainer`] | the JSON lines between a slot and its trainer child |
//! | [`seeds`] | every seed and permutation, derived from the job's seed |

pub mod api;
pub mod assimilation;
mod context;
pub mod digest;
pub mod direct;
pub mod error;
mod hop;
pub mod ids;
pub mod inventory;
pub mod jobfile;
pub mod manifest;
pub mod metrics;
pub mod position;
pub mod quantity;
pub mod ranges;
pub mod reason;
pub mod report;
pub mod seeds;
pub mod spec;
mod sums;
pub mod time;
pub mod trainer;
pub mod unit;
pub mod view;

/// The version of the wire format; sent with every request and answer in [`PROTOCOL_HEADER`].
pub const PROTOCOL_VERSION: u32 = 3;
/// The header that carries [`PROTOCOL_VERSION`].
pub const PROTOCOL_HEADER: &str = "sojourn-protocol";
