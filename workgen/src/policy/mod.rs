//! Which hop a host gets. A policy is a pure function of what is runnable, what the host holds, and
//! a stream of chance; it says why it chose.

mod ltrp;
mod randomized;

pub use ltrp::Ltrp;
pub use randomized::Randomized;

use crate::chain::Chain;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sojourn_protocol::ids::{ShardId, TrialId};

/// A trial that could take its next hop now.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The trial.
    pub trial: TrialId,
    /// Its way so far.
    pub chain: &'a Chain,
    /// Estimated microseconds of all that it has left, on a middling host.
    pub remaining: u64,
}

/// What the policy may know of a job's shards and of the asking host.
pub trait HostCache {
    /// Does the host hold this shard?
    fn holds(&self, shard: ShardId) -> bool;
    /// Visits that the shard still gets, from all trials.
    fn load(&self, shard: ShardId) -> u64;
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The trial.
    pub trial: TrialId,
    /// The shard to train it on.
    pub shard: ShardId,
    /// Why, for people.
    pub why: String,
}

/// A schedule policy. Candidates come in the order of their ids, each with an open shard.
pub trait Policy: std::fmt::Debug + Send {
    /// The hop that the host gets; `None` only without candidates.
    fn choose(
        &self,
        candidates: &[Candidate<'_>],
        host: &dyn HostCache,
        chance: &mut ChaCha8Rng,
    ) -> Option<Choice>;
}

/// A policy by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// [`Randomized`].
    Randomized,
    /// [`Ltrp`].
    #[default]
    Ltrp,
}

impl PolicyName {
    /// The policy.
    #[must_use]
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Randomized => Box::new(Randomized),
            PolicyName::Ltrp => Box::new(Ltrp),
        }
    }
}
