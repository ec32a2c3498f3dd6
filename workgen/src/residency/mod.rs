//! On which host a trial stays, and when it moves to another one.
//!
//! Where every host has a job's data, a trial needn't hop: it lives on one host until it ends, or moves. SpeCon guesses from how a trial's
//! loss falls that it has converged, and moves it to a host where it is in nobody's way, so that those that still learn have more
//! of their processor. It is from Y. Mao, W. Yan, Y. Song, Y. Zeng, M. Chen, L. Cheng, Q. Liu, "Speculative Container Scheduling
//! for Deep Learning Applications in a Kubernetes Cluster" (2022).
//!
//! | file | holds |
//! |---|---|
//! | `convergence.rs` | the category of a trial, by looks at its loss (algorithm 3) |
//! | `load.rs` | hosts' scores, and to which a converged trial goes (algorithm 4) |
//! | `rebalance.rs` | what moves when all have converged (algorithm 5) |
//!
//! Everything here is pure: looks and hosts come in, moves go out. The parameters are a job's: `sojourn_protocol::spec::SpeCon`.

mod convergence;
mod load;
mod rebalance;

pub use convergence::{Convergence, Look};
pub use load::{Destination, HostLoad, destination};
pub use rebalance::{Balance, Rebalancing, Resident, Transfer};
pub use sojourn_protocol::{
    residency::Category,
    spec::{Growth, Listing, Scope, SpeCon},
};
