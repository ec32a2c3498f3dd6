//! The web page: HTML of [`sojourn_protocol::view`]s, and the scripts and styles beside it. It asks nobody and changes nothing: the
//! server's handlers bring the views, and send what comes of them.
//!
//! ```text
//!   views ---> jobs, job, hosts, events ---> frame ---> a whole page
//!                        '--> a part of a page, when its script asks for it again
//! ```
//!
//! A part that changes has an address (`data-live`). When the server says that something has changed, `assets/live.js` fetches
//! the parts that are in sight, and puts in what is new.
//!
//! | file | holds |
//! |---|---|
//! | `frame.rs`, `keys.rs`, `address.rs` | what all pages have; keys; addresses of pages and their parts |
//! | `sign_in.rs`, `fault.rs` | the page before the first one, and the one for errors |
//! | `jobs.rs` | the list of jobs |
//! | `job/` | a job with its tabs, and a trial |
//! | `compare.rs` | jobs side by side |
//! | `page_link.rs`, `shared.rs` | links to a job's page, and that page for whoever has one |
//! | `new_job.rs` | a new job over the data of an earlier one |
//! | `hosts.rs`, `host.rs` | all hosts, and one |
//! | `failures.rs` | what went wrong on hosts |
//! | `find.rs` | jobs, trials, hosts and settings by words |
//! | `events.rs` | a job's events by hour and kind, with filters |
//! | `report/` | a job as one file, which loads nothing |
//! | `api.rs` | the document that describes `/v1` |
//! | `assets.rs` | scripts and styles by name |

pub mod address;
pub mod api;
pub mod assets;
pub mod compare;
pub mod events;
pub mod failures;
mod fault;
pub mod find;
mod frame;
pub mod host;
pub mod hosts;
pub mod job;
pub mod jobs;
mod keys;
pub mod new_job;
pub mod page_link;
pub mod report;
pub mod shared;
mod sign_in;
mod words;

pub use fault::fault;
pub use frame::{CONTENT_SECURITY_POLICY, Viewer};
pub use maud::Markup;
pub use sign_in::{again, sign_in};
