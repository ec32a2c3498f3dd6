//! `sojourn report`: what came of a job, as one HTML file.
//!
//! ```text
//! answers (of /v1) --> efficiencies --> rows --.
//!    '----------------------------------------> sojourn_page::report --> FILE.html
//! replays (on this machine) -------------------'
//! ```

mod command;
mod efficiencies;
mod rows;

pub(crate) use command::{Args, run};
