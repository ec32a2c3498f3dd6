//! Screening of returned checkpoints, and the rules that merge them. Pure: bytes and numbers in,
//! verdicts and numbers out; who fetches and stores is the assimilator's business.

mod merge;
mod norm;
mod refusal;
mod screen;

pub use merge::{Arrival, MergeError, MergeRule, Replace};
pub use norm::delta_norm;
pub use refusal::Refusal;
pub use screen::{Checked, screen};
