//! `[placement]`: on which machines a job trains, in which order, and how it stands to other jobs.
//!
//! What was added later is left out of what is stored and sent where it has its default: a job that
//! doesn't use it is the same job, byte for byte, as before.

use super::dimension::is_default;
use serde::{Deserialize, Serialize};

/// The highest [`PlacementSpec::priority`]; the lowest is its negative.
pub const HIGHEST_PRIORITY: i32 = 100;
/// The largest [`PlacementSpec::share`].
pub const LARGEST_SHARE: u32 = 1000;
/// The most [`PlacementSpec::replicas`].
pub const MOST_REPLICAS: u32 = 1000;

/// `[placement]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// How trials and machines meet.
    pub order: OrderChoice,
    /// Pinned threads and ISA, and each trial within one numeric class (DESIGN section 8).
    pub reproducible: bool,
    /// Threads of one unit where `reproducible`, at least 1; otherwise the slot decides.
    pub threads: u32,
    /// Where training shards lie.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replicas: Replicas,
    /// Units of a job are handed out before those of jobs with a lower one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// Among jobs of one priority that want more than there is, each gets slot time in proportion to it; at
    /// least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub share: u32,
    /// The most hosts that work for the job at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hosts: Option<u32>,
}

impl PlacementSpec {
    /// What holds where a job file says nothing but these.
    #[must_use]
    pub fn new(order: OrderChoice, reproducible: bool, threads: u32) -> Self {
        Self {
            order,
            reproducible,
            threads,
            replicas: Replicas::default(),
            priority: 0,
            share: 1,
            max_hosts: None,
        }
    }
}

/// `placement.order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OrderChoice {
    /// Hop order (MOP): sequential SGD semantics.
    Hop,
    /// Let the server choose; hop order is what it has.
    Auto,
}

/// `placement.replicas`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Replicas {
    /// Any host fetches what it is to train on, within its owner's limits.
    #[default]
    Demand,
    /// Each shard lies on this many hosts, at least 1, and is trained there alone; when one of them leaves,
    /// another takes its place.
    Fixed(u32),
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}
