//! The terminal and the process: exit codes, output, log, signals, local folders, and the server to talk to.

pub(crate) mod causes;
pub(crate) mod connection;
pub(crate) mod exit;
pub(crate) mod local;
pub(crate) mod log;
pub(crate) mod output;
pub(crate) mod signals;
pub(crate) mod stderr;
pub(crate) mod trust;
