//! Commands that ask a server about its jobs and hosts, or change them.

pub(crate) mod backlog;
pub(crate) mod cancel;
pub(crate) mod costs;
pub(crate) mod delete;
pub(crate) mod evaluate;
pub(crate) mod events;
pub(crate) mod extend;
pub(crate) mod host_changes;
pub(crate) mod hosts;
pub(crate) mod job_args;
pub(crate) mod job_ref;
pub(crate) mod list;
pub(crate) mod page_link;
pub(crate) mod pause;
pub(crate) mod resume;
pub(crate) mod rollback;
pub(crate) mod search;
pub(crate) mod set;
pub(crate) mod status;
#[cfg_attr(not(feature = "screen"), path = "top/absent.rs")]
pub(crate) mod top;
pub(crate) mod traffic;
pub(crate) mod trials;
pub(crate) mod trials_change;
mod trials_csv;
