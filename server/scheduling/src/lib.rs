//! Which host gets which unit.
//!
//! Parts hold what is known beside the durable state: hosts in contact, leases, data on hosts, requests that wait, estimates and plans.
//! All of it is soft: it comes back by itself after a restart. Views read the parts and decide; they change nothing. Handlers of
//! `sojourn-core` change the parts and the durable state.
//!
//! ```text
//!   State, parts --> Cost --> Occupancy --> Eligibility --> Locality --> Scheduler --> the unit that a slot gets
//!                    how      when running  which hosts     what a       Depth, Homes, Priorities, Evaluations,
//!                    long     work ends     may do a unit   fetch costs  Verifiers, PlanProblems
//! ```
//!
//! Each view has the parts that it reads, and the views below it, as fields.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | settings that an operator may choose |
//! | [`hosts`], [`leases`], [`data`], [`waiters`] | parts: hosts in contact, live leases, data on hosts, requests that wait |
//! | [`index`] | a part: facts about the durable state, kept up to date with each event |
//! | [`cost`] | how long things take |
//! | [`schedule`] | the choice of units, and the plans that it follows |

pub mod config;
pub mod cost;
pub mod data;
pub mod hosts;
pub mod index;
pub mod leases;
pub mod memo;
pub mod schedule;
pub mod waiters;
