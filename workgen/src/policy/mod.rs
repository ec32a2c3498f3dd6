//! Policies: which hop an idle slot gets. A policy is a pure function of a [`PolicyView`] and of a stream of random
//! numbers; it gives its reason.

mod ltrp;
mod randomized;
mod reason;
mod view;

pub use ltrp::Ltrp;
pub use randomized::Randomized;
pub use reason::{NEXT_BY_ORDER, PolicyReason, locality_text};
pub use view::{Candidate, DataLocality, EarlierFinish, Forecast, PolicyView, Shards};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    quantity::Micros,
};

/// A chosen hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The trial.
    pub trial: TrialId,
    /// The shard to train it on.
    pub shard: ShardId,
    /// Why it was chosen.
    pub reason: PolicyReason,
}

/// The decision of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The slot gets this hop.
    Assign(Choice),
    /// There are hops for it, but they are left to other machines for this time.
    Defer(Micros),
    /// There is no hop for it.
    Nothing,
}

impl Decision {
    /// The hop that the slot gets, if any.
    #[must_use]
    pub fn choice(self) -> Option<Choice> {
        match self {
            Decision::Assign(choice) => Some(choice),
            Decision::Defer(_) | Decision::Nothing => None,
        }
    }
}

/// A schedule policy.
pub trait Policy: std::fmt::Debug + Send {
    /// The hop that the slot gets.
    fn choose(&self, view: &dyn PolicyView, rng: &mut ChaCha8Rng) -> Decision;
}

/// A policy by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// [`Randomized`].
    Randomized,
    /// [`Ltrp`].
    Ltrp,
    /// [`Ltrp`], but a hop that [`crate::plan`] has planned goes first.
    #[default]
    Rollout,
}

impl PolicyName {
    /// All of them, in the order in which texts name them.
    pub const ALL: [PolicyName; 3] =
        [PolicyName::Randomized, PolicyName::Ltrp, PolicyName::Rollout];

    /// The name that commands and scenarios use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PolicyName::Randomized => "randomized",
            PolicyName::Ltrp => "ltrp",
            PolicyName::Rollout => "rollout",
        }
    }

    /// The policy that decides where no plan does.
    #[must_use]
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Randomized => Box::new(Randomized),
            PolicyName::Ltrp | PolicyName::Rollout => Box::new(Ltrp),
        }
    }

    /// Are whole plans made ahead?
    #[must_use]
    pub const fn plans(self) -> bool {
        matches!(self, PolicyName::Rollout)
    }
}
