//! `[server]`: what decides, and how long it waits.

use crate::fleet::{
    policy::{Policies, Policy},
    quantity::{Auto, Span},
};
use serde::Deserialize;

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// The policies to compare.
    pub policy: Policies,
    /// After how long silence a host's units go to others.
    pub lease_term: Auto<Span>,
    /// How often hosts show that they live.
    pub heartbeat: Auto<Span>,
    /// How long a host's ask is held open.
    pub longest_wait: Auto<Span>,
    /// Hops of one trial that go to a host under one lease, at most.
    pub most_hops: Option<u32>,
    /// Per cent of a job's work that second copies of running hops may add to it, at most.
    pub most_copied: Option<u32>,
    /// Hosts ask all together, once nobody has anything left to do.
    pub rounds: bool,
    /// The time that it takes to check a checkpoint and make it the next version.
    pub assimilation: Span,
    /// The number of results that are assimilated at a time; results of one trial wait for each other.
    pub assimilators: u32,
    /// Real time for one plan of `milp`.
    pub milp_limit: Span,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            policy: Policies(vec![Policy::default()]),
            lease_term: Auto::Auto,
            heartbeat: Auto::Auto,
            longest_wait: Auto::Auto,
            most_hops: None,
            most_copied: None,
            rounds: false,
            assimilation: Span(0),
            assimilators: 1,
            milp_limit: Span(1_000_000),
        }
    }
}
