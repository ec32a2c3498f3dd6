//! Taking results in: the claims of assimilators, their offers, the merge mode of trials.
//!
//! | file | holds |
//! |---|---|
//! | `unit.rs` | what an assimilator gets to do |
//! | `handler.rs` | claims and offers |
//! | `merge_mode.rs` | whether a trial's results are taken in one by one, or merged |

mod handler;
mod merge_mode;
mod unit;

pub(crate) use handler::AssimilationHandler;
pub(crate) use merge_mode::MergeModeHandler;
