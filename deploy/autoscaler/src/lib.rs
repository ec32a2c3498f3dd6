//! Buys preemptible machines while there is work for them, as cheaply as budget and deadline allow, and gives them back.
//!
//! The planner is in `sojourn-fleet`; this package asks server and cloud, and carries plans out. Clouds are known to it by the traits
//! of `sojourn-clouds` alone: `main.rs` lists them.
//!
//! ```text
//!   file --config--> driver <--demand, costs, leader--> server
//!                      |  ^--machines, offers, orders--> clouds
//!                      '--> planner (pure), round (pure)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | the file of a fleet |
//! | [`clouds`] | the cloud that a file names, among those of the program |
//! | [`server`] | what is asked of the server |
//! | [`boot`] | what machines are told at their first start |
//! | `leader` | the lease by which one process acts; pure |
//! | `round` | what the server is told of machines; pure |
//! | [`driver`] | one round: asks, plans, carries out |
//! | [`metrics`] | figures for Prometheus |
//! | [`cli`] | the commands |

pub mod boot;
pub mod cli;
pub mod clouds;
pub mod config;
pub mod driver;
mod leader;
pub mod metrics;
mod round;
pub mod server;
