//! The command line of the daemon, for its own small binary and for the command `sojourn`.
//!
//! | module | holds |
//! |---|---|
//! | `client` | `sojourn client`: flags, environment and `client.toml`, and the run of the daemon |
//! | `ctl` | `sojourn client ctl`: status, pause, limits, log of the client that runs on this machine |
//! | `service` | `sojourn service`: the client as a service of systemd |
//!
//! The daemon itself is in `sojourn-client`; what all programs share is in `sojourn-programs`. Nothing here decides about training.

#![cfg_attr(not(feature = "screen"), expect(dead_code, reason = "the screen shows it"))]

pub mod client;
mod ctl;
pub mod service;
