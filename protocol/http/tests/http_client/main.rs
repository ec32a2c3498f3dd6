//! The client against servers of this process, on ports that the system chooses: busy ones, proxies, endless bodies,
//! and certificates that nobody trusts.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod calls;
mod number;
mod server;
mod tls;
mod uploads;
