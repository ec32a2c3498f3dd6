//! The merge rules: what each does with a result, in scalars. One file per rule.

mod adasum;
mod dc_asgd;
mod delayed_nesterov;
mod delta;
mod easgd;
mod fedbuff;
mod vc_asgd;

pub use adasum::Adasum;
pub use dc_asgd::DcAsgd;
pub use delayed_nesterov::DelayedNesterov;
pub use delta::Delta;
pub use easgd::Easgd;
pub use fedbuff::Fedbuff;
pub use vc_asgd::VcAsgd;

use crate::{arrival::Arrival, overlap::Overlap, pass::Pass, state::Counters};
use sojourn_protocol::spec::{RuleSpec, Staleness};
use std::fmt;

/// A merge rule: a pure function of what it has counted and of what arrives.
pub trait MergeRule: fmt::Debug + Send + Sync {
    /// The slots that it keeps for each parameter, in the order of [`Slot`], which is that of the state's file.
    fn slots(&self) -> &'static [Slot];

    /// The pass that the rule makes of a result. At the end of an epoch and when a trial drains, no more results
    /// come for now ([`Arrival::flush`]): the pass then takes in all that the rule has gathered. Of the counters it may ask
    /// for [`Counters::gathered`] alone: a merge by ranges knows no others.
    ///
    /// `overlap` is that of the change with what others have made; [`Overlap::default`] where the rule doesn't
    /// [need it](Self::needs_overlap).
    fn pass(&self, counters: &Counters, arrival: Arrival, overlap: Overlap) -> Pass;

    /// Does it depend on what others have changed since the result's base? That takes another look at all numbers.
    fn needs_overlap(&self) -> bool {
        false
    }

    /// The returned model's share, in `[0, 1]`, where numbers that aren't trained are blended: `1 / C`.
    fn share(&self, arrival: Arrival) -> f64 {
        1.0 / f64::from(arrival.concurrency())
    }
}

/// A number that a rule keeps for each parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The running mean of the changes' squares.
    MeanSquare,
    /// `m` of a step.
    Momentum,
    /// The sum of changes.
    Sum,
}

impl Slot {
    /// The prefix of its tensors' names; the parameter's name follows.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::MeanSquare => "merge.mean_square.",
            Self::Momentum => "merge.momentum.",
            Self::Sum => "merge.sum.",
        }
    }
}

/// The rule that these parameters make.
#[must_use]
pub fn rule_of(spec: &RuleSpec) -> Box<dyn MergeRule> {
    match *spec {
        RuleSpec::VcAsgd { alpha, staleness } => Box::new(VcAsgd { alpha, staleness }),
        RuleSpec::Delta { gain, staleness } => Box::new(Delta { gain, staleness }),
        RuleSpec::Fedbuff { arrivals, outer, staleness } => {
            Box::new(Fedbuff { arrivals, outer, staleness })
        }
        RuleSpec::Adasum { staleness } => Box::new(Adasum { staleness }),
        RuleSpec::DelayedNesterov { period, rate, momentum } => {
            Box::new(DelayedNesterov { period, rate, momentum })
        }
        RuleSpec::Easgd { moving_rate } => Box::new(Easgd { moving_rate }),
        RuleSpec::Downpour { rate } => {
            Box::new(Delta { gain: Some(rate), staleness: Staleness::Constant })
        }
        RuleSpec::DcAsgd { lambda, decay } => Box::new(DcAsgd { lambda, decay }),
    }
}

/// One over a count that is at least 1.
fn one_over(count: u32) -> f64 {
    1.0 / f64::from(count.max(1))
}
