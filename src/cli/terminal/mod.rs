//! The terminal and the process, which the daemon's own binary shares, with the server to talk to and the exit code
//! of each library's errors.

pub(crate) mod causes;
pub(crate) mod confirm;
pub(crate) mod connection;
pub(crate) mod simple;

pub(crate) use sojourn_daemon::terminal::{
    exit, local, log, output, screen, secrets, signals, trust,
};
