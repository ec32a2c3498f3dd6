//! The terminal and the process, which all programs share, with the server to talk to and the exit code
//! of each library's errors.

pub(crate) mod causes;
pub(crate) mod confirm;
pub(crate) mod connection;
pub(crate) mod simple;

#[cfg(feature = "screen")]
pub(crate) use sojourn_programs::screen;
pub(crate) use sojourn_programs::{columns, exit, local, log, output, secrets, signals, trust};
