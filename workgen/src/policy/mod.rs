//! Which hop an idle place gets. A policy is a pure function of what it sees on its [`Board`] and of a
//! stream of chance; it says why it chose.

mod board;
mod ltrp;
mod randomized;
mod why;

pub use board::{Board, Candidate, DataLocality, Outlook, Shards, Sooner};
pub use ltrp::Ltrp;
pub use randomized::Randomized;
pub use why::{Time, Why, shard as shard_words};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sojourn_protocol::ids::{ShardId, TrialId};

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The trial.
    pub trial: TrialId,
    /// The shard to train it on.
    pub shard: ShardId,
    /// Why.
    pub why: Why,
}

/// What a policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The place gets this hop.
    Take(Choice),
    /// There are hops for it, but it had better leave them to others for so many microseconds.
    Wait(u64),
    /// There is no hop for it.
    Nothing,
}

impl Decision {
    /// What the place gets, if anything.
    #[must_use]
    pub fn choice(self) -> Option<Choice> {
        match self {
            Decision::Take(choice) => Some(choice),
            Decision::Wait(_) | Decision::Nothing => None,
        }
    }
}

/// A schedule policy.
pub trait Policy: std::fmt::Debug + Send {
    /// The hop that the place gets.
    fn choose(&self, board: &dyn Board, chance: &mut ChaCha8Rng) -> Decision;
}

/// A policy by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// [`Randomized`].
    Randomized,
    /// [`Ltrp`].
    Ltrp,
    /// [`Ltrp`], and what [`crate::plan`] works out ahead goes before it.
    #[default]
    Rollout,
}

impl PolicyName {
    /// All of them, in the order in which texts name them.
    pub const ALL: [PolicyName; 3] =
        [PolicyName::Randomized, PolicyName::Ltrp, PolicyName::Rollout];

    /// The word that commands and scenarios use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PolicyName::Randomized => "randomized",
            PolicyName::Ltrp => "ltrp",
            PolicyName::Rollout => "rollout",
        }
    }

    /// The policy that decides at once, where no plan does.
    #[must_use]
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Randomized => Box::new(Randomized),
            PolicyName::Ltrp | PolicyName::Rollout => Box::new(Ltrp),
        }
    }

    /// Are whole plans worked out ahead?
    #[must_use]
    pub const fn plans(self) -> bool {
        matches!(self, PolicyName::Rollout)
    }
}
