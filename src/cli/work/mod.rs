//! Commands of a machine that works for a server: the client, its service, and a process that assimilates.

pub(crate) mod assimilate;
pub(crate) mod client;
pub(crate) mod ctl;
pub(crate) mod service;
