//! A job in a tracking server of MLflow: an experiment with the job's name, a run for each trial, over the server's REST API.
//!
//! ```text
//! answers --> records (pure): parameters, tags, points --.
//!                                                        '--> push --> tracking (REST)
//! ```
//!
//! A push that comes again finds its runs by a tag, and adds what they lack: nothing is there twice.

mod push;
mod records;
mod tracking;

pub(super) use push::{Pushed, push};
