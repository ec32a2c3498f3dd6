//! Commands of the machine that serves: the server itself, its journal and its store.

pub(crate) mod command;
pub(crate) mod gc;
pub(crate) mod journal_url;
pub(crate) mod keep_jobs;
pub(crate) mod migrate;
pub(crate) mod prepare;
