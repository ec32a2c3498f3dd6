//! Screening of returned checkpoints, and the rules that make versions of them. Pure: bytes in,
//! verdicts and bytes out; who fetches and stores is the assimilator's business.
//!
//! In hop order [`replace`] makes the returned checkpoint the next version. Where several shards of a trial train at
//! once, a [`Merger`] makes it from three checkpoints and the rule's state (docs/internals/merging.md):
//!
//! ```text
//! base, current, returned, state  ->  MergeRule: one Pass of scalars  ->  kernels  ->  next checkpoint, next state
//! ```
//!
//! A rule is for parameters. What else is in a checkpoint is treated so, with `k` at most 1, and less only where the
//! change of the parameters is clipped to `k` of its length:
//!
//! | what | type | in the merged version |
//! |---|---|---|
//! | running means and variances of batch norm | `F32` | `W + k p (W_c - W)`, with `p` the rule's own share for `vc-asgd`, `1 / C` for the others: between the two, so no variance becomes negative |
//! | optimiser state, `average` | `F32` | as the running statistics |
//! | optimiser state, `reset` | `F32` | zeros |
//! | optimiser state, `last` | `F32` | the returned one's |
//! | optimiser state, `discount`, first moments | `F32` | the returned one's over `1 + t` |
//! | optimiser state, `discount`, second moments | `F32` | as the running statistics |
//! | lineage: position | `I64` | what the caller says; its step is the trial's, which is also Adam's step count |
//! | lineage: trial, seed of the hop | `I64` | those of the hop that came: version 0 says no trial |
//!
//! There are no boolean tensors. A flush, at the end of an epoch and of merging, is no version of its own: the rule's
//! step comes early, with the result after which no more are waited for.
//!
//! ```
//! use sojourn_rules::Norms;
//!
//! // A change that is four times as long as the median of those before is clipped to twice the median.
//! let norms = Norms::new([1.0; 5]);
//! assert_eq!(norms.scale(1.5), 1.0);
//! assert_eq!(norms.scale(4.0), 0.5);
//! ```

mod arrival;
mod canary;
mod clip;
mod error;
mod kernel;
mod merge;
mod merger;
mod overlap;
mod pass;
mod refusal;
mod rule;
mod screen;
mod state;

pub use arrival::{Arrival, weight};
pub use canary::check_canary;
pub use clip::{Norms, WINDOW};
pub use error::{Fit, MergeError};
pub use kernel::{Element, Lengths, Slices, norm, products};
pub use merge::{Next, replace};
pub use merger::{
    ByteSpan, Decided, Decision, Made, Merged, Merger, Pieces, SpanOutput, Spare, Update, Whole,
};
pub use overlap::{Overlap, Products};
pub use pass::{Momentum, Pass, Step};
pub use refusal::Refusal;
pub use rule::{
    Adasum, DcAsgd, DelayedNesterov, Delta, Easgd, Fedbuff, MergeRule, Slot, VcAsgd, rule_of,
};
pub use screen::{Checked, screen};
pub use state::{COUNTERS, Counters, StateError};
