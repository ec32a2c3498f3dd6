//! Wire and journal types of server, clients, trainers and the command line.
//!
//! Plain data with its encodings and its checks: no I/O, no clock, no randomness that isn't derived from a seed.
//! Everything here is serialised somewhere (journal, HTTP, the trainer's standard streams). So a serialised name never
//! changes and never gets another meaning without a new version beside the old one.
//!
//! | module | holds |
//! |---|---|
//! | [`ids`], [`time`], [`digest`], [`position`] | ids, times, names of blobs, positions in a trial |
//! | [`money`], [`machines`], [`demand`] | amounts of money, machines that are bought, and the work that there is for them |
//! | [`names`] | names that people give to owners and tokens, of bounded length |
//! | [`decimal`] | numbers of 64 bits, as readers of JSON that keep 53 get them |
//! | [`bounds`], [`text`] | bounds of all that a server takes; text that a terminal doesn't obey |
//! | [`quantity`] | numbers with their unit, and conversions of integers |
//! | [`reason`] | why leases are released, and why work waits |
//! | [`spec`] | the job as the user wrote it, and one trial's configuration |
//! | [`jobfile`] | `job.toml` to [`spec::JobSpec`], with messages that name line and key |
//! | [`manifest`], [`column`] | a job's data after ingestion: shards, classes, scaling; columns by name |
//! | [`inventory`], [`engine`] | a host's devices and its demand for work; the programs that train there |
//! | [`mod@unit`], [`report`] | units of work, and the reports about them |
//! | [`metrics`] | metrics of a model, from the counts of an evaluation |
//! | [`api`], [`view`], [`error`] | requests, answers, views and errors over HTTP |
//! | [`tokens`] | tokens that the server issues: what they open, and how they are asked for |
//! | [`assimilation`] | the same for assimilators: claims, offers, the queue |
//! | [`storage`] | the room on the server's disk |
//! | [`trace`] | where a request belongs in a trace |
//! | [`dtype`] | the element types of tensors |
//! | [`ranges`] | how the merge of a large model is divided among assimilators |
//! | [`trainer`] | the JSON lines between a slot and its trainer child |
//! | [`seeds`] | every seed and permutation, derived from the job's seed |
//!
//! ```
//! use sojourn_protocol::{digest::Digest, ids::TrialId, seeds};
//!
//! // A blob is named by the digest of its bytes.
//! let name = Digest::of(b"abc");
//! assert_eq!(name.to_string().parse(), Ok(name));
//! // All seeds follow from the job's seed, so a run can be repeated anywhere.
//! let weights = |trial| seeds::initial_weights(7, TrialId(trial));
//! assert_eq!(weights(0), weights(0));
//! assert_ne!(weights(0), weights(1));
//! ```

pub mod api;
pub mod assimilation;
pub mod backoff;
pub mod bounds;
pub mod classes;
pub mod column;
mod context;
pub mod cpu_shares;
pub mod cross_validation;
pub mod decimal;
pub mod demand;
pub mod digest;
pub mod direct;
pub mod dtype;
pub mod engine;
pub mod error;
mod f1;
pub mod figures;
mod hop;
pub mod ids;
pub mod incarnation;
mod instructions;
pub mod inventory;
pub mod jobfile;
pub mod machines;
pub mod manifest;
pub mod metrics;
pub mod minibatches;
pub mod money;
pub mod names;
pub mod position;
pub mod quantity;
pub mod quotas;
pub mod ranges;
pub mod reason;
pub mod report;
pub mod residency;
pub mod seeds;
pub mod space;
pub mod spec;
pub mod storage;
pub mod sum_array;
mod sums;
pub mod tail_search;
pub mod text;
pub mod time;
pub mod tokens;
pub mod trace;
pub mod trainer;
pub mod trial_name;
pub mod unit;
pub mod usage;
pub mod view;

/// The version of the wire format; sent with every request and answer in [`PROTOCOL_HEADER`].
pub const PROTOCOL_VERSION: u32 = 3;
/// The header that carries [`PROTOCOL_VERSION`].
pub const PROTOCOL_HEADER: &str = "sojourn-protocol";
