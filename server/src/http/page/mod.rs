//! The web page: signing in, and the addresses of pages. Each asks the core what it shows, as a request of `/v1` would, and has
//! `sojourn-page` write it.
//!
//! | file | holds |
//! |---|---|
//! | `sessions.rs` | who has signed in with a browser, and for how long |
//! | `sign_in.rs` | signing in and out, and being sent there |
//! | `pages.rs` | the pages of all jobs and hosts |
//! | `job.rs`, `job_events.rs` | the pages of a job and of a trial; the events of a job |
//! | `new_job.rs` | a new job over the data of an earlier one |
//! | `new_data.rs` | a new job over files of data that the browser sends |
//! | `host.rs` | a host's page and its buttons; what went wrong on all hosts |
//! | `find.rs` | jobs, trials, hosts and settings by words |
//! | `shared.rs` | the page of a job for whoever has a link to it |
//! | `recent_events.rs` | the last events of the jobs that are shown |
//! | `timeline.rs` | the leases of a job in time |
//! | `actions.rs` | what buttons do |
//! | `answer.rs` | HTML as an answer, also for errors |
//! | `relative.rs` | relative links, where a proxy is before the server |

pub(super) mod actions;
mod answer;
pub(super) mod find;
pub(super) mod host;
pub(super) mod job;
mod job_events;
pub(super) mod new_data;
pub(super) mod new_job;
pub(super) mod pages;
mod recent_events;
mod relative;
mod sessions;
pub(super) mod shared;
pub(super) mod sign_in;
mod timeline;

pub(super) use answer::{fault, html};
pub(crate) use recent_events::RecentEvents;
pub(crate) use relative::relative_links;
pub(crate) use sessions::Sessions;
pub(super) use sessions::is_of_own_page;

/// Is this the address of a page, and none of programs?
pub(super) fn is_page(path: &str) -> bool {
    !path.starts_with("/v1/") && path != "/metrics"
}
