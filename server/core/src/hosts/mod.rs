//! Hosts come, show themselves and go.
//!
//! | file | holds |
//! |---|---|
//! | `handler.rs` | enrolment, revocation, presence |
//! | `machines.rs` | bought machines: what their buyer says of them, and which are given back |

mod handler;
mod machines;

pub(crate) use handler::HostHandler;
