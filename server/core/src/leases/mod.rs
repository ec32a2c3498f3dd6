//! Live leases from their grant to their end.
//!
//! | file | holds |
//! |---|---|
//! | `handler.rs` | the handler, and the views that it reads |
//! | `heartbeat.rs` | presence and progress |
//! | `release.rs`, `close.rs` | ends without a report |
//! | `access.rs` | what a host may upload and read |
//! | `confirm.rs` | how a provisional lease becomes a granted one |

mod access;
mod close;
mod confirm;
mod handler;
mod heartbeat;
mod release;

pub(crate) use handler::LeaseHandler;
pub(crate) use release::FREE_RELEASES;
