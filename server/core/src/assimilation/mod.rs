//! Taking results in: the queue of assimilators, their offers, the merge mode of trials.
//!
//! | file | holds |
//! |---|---|
//! | `queue.rs` | results that wait for an assimilator, or that one has claimed |
//! | `unit.rs` | what an assimilator gets to do |
//! | `handler.rs` | claims and offers |
//! | `merge_mode.rs` | whether a trial's results are taken in one by one, or merged |

mod handler;
mod merge_mode;
mod queue;
mod unit;

pub(crate) use handler::AssimilationHandler;
pub(crate) use merge_mode::MergeModeHandler;
pub(crate) use queue::AssimilationQueue;
