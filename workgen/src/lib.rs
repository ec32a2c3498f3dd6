//! From a job to its work, pure: trials from the search space, the hop chain of a trial, and the
//! policies that choose which hop a host gets.
//!
//! | module | holds |
//! |---|---|
//! | [`search`] | job spec -> trials (grid, random) |
//! | [`chain`] | one trial's way over its shards, epoch after epoch, with positions |
//! | [`plan`] | whole schedules, made ahead on estimates |
//! | [`policy`] | which trial and shard an asking host gets, and why |
//! | [`shards`] | how many shards, and how large |
//!
//! Nothing here asks the time, the machine or chance: streams of chance come in as arguments or
//! follow from the job's seed.

pub mod chain;
pub mod plan;
pub mod policy;
pub mod search;
pub mod shards;

pub use chain::{Advance, Chain, ChainError, Through};
pub use policy::{
    Candidate, Choice, DataLocality, Decision, EarlierFinish, Forecast, Policy, PolicyName,
    PolicyReason, PolicyView, Shards, locality_text,
};
pub use search::{SearchError, Trial, trials};
