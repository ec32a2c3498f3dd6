//! Screening of returned checkpoints, and the rules that make versions of them. Pure: bytes in,
//! verdicts and bytes out; who fetches and stores is the assimilator's business.
//!
//! In hop order [`replace`] makes the returned checkpoint the next version. Where several shards of a trial train at
//! once, a [`MergeRule`] says in scalars what a result does to the parameters (DESIGN section 7), and its [`Pass`] does
//! it to slices.

mod arrival;
mod clip;
mod kernel;
mod merge;
mod pass;
mod refusal;
mod rule;
mod screen;
mod state;

pub use arrival::{Arrival, Bound, weight};
pub use clip::{Norms, WINDOW};
pub use kernel::{Element, Lengths, Slices, norm};
pub use merge::{Next, replace};
pub use pass::{Momentum, Pass, Step};
pub use refusal::Refusal;
pub use rule::{DelayedNesterov, Delta, Fedbuff, MergeRule, Slot, VcAsgd, rule_of};
pub use screen::{Checked, screen};
pub use state::Counters;
