//! Screening of returned checkpoints, and the rule that makes versions of them. Pure: bytes in,
//! verdicts out; who fetches and stores is the assimilator's business.

mod merge;
mod refusal;
mod screen;

pub use merge::{Next, replace};
pub use refusal::Refusal;
pub use screen::{Checked, screen};
