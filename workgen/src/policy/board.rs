//! What a policy sees when an idle place is to be given a hop of one job.

use crate::chain::Chain;
use sojourn_protocol::ids::{ShardId, TrialId};

/// The moment of a decision, as one place sees it. Nothing is looked up before it is asked for.
pub trait Board {
    /// Trials whose next hop the place may have, the most work left first, ties by id.
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_>;
    /// The shards that are for the place to train, where those aren't all of them.
    fn own(&self) -> Option<&[ShardId]>;
    /// How the place stands to a shard.
    fn standing(&self, shard: ShardId) -> Standing;
    /// Visits that a shard still gets, from all trials.
    fn load(&self, shard: ShardId) -> u64;
    /// What is expected of the whole job.
    fn outlook(&self) -> Outlook;
    /// Microseconds until the place would have fetched a shard that it doesn't hold: more where another that it
    /// needs again would have to go for it.
    fn fetch(&self, shard: ShardId) -> u64 {
        let _ = shard;
        0
    }
    /// Other places, at least as fast, that hold a shard which the trial may visit next, and would be through with so
    /// much work within so many microseconds from now; no more are looked for than `enough`.
    fn sooner(&self, trial: TrialId, work: u64, within: u64, enough: u32) -> Option<Sooner> {
        let _ = (trial, work, within, enough);
        None
    }
}

/// Places that would be through with a hop sooner than the one that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sooner {
    /// How many.
    pub places: u32,
    /// Microseconds until the first of them is free.
    pub free_in: u64,
}

/// A trial that could take its next hop now.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The trial.
    pub trial: TrialId,
    /// Its way so far.
    pub chain: &'a Chain,
    /// Estimated microseconds of all that it has left, at the reference speed.
    pub work: u64,
    /// Microseconds that its next hop has been open.
    pub waited: u64,
    /// Microseconds that its checkpoint takes to the place and on from there; 0 where that is next to nothing, or no
    /// place is planned for it.
    pub way: u64,
}

/// How a place stands to a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In its cache.
    Cached,
    /// It would have to fetch it.
    ToFetch,
    /// It is for others to train.
    Elsewhere,
}

/// What is expected of a job's end. Speeds are multiples of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// The place's speed.
    pub speed: u64,
    /// The speed of the fastest place that could have any of these hops instead.
    pub fastest: u64,
    /// The unit: the speed at which work takes what is said.
    pub unit: u64,
    /// Microseconds until the job could be done: what is left over all speeds, or the longest trial at the
    /// fastest place, whichever is more.
    pub ends_in: u64,
}

impl Outlook {
    /// Microseconds for work at a speed.
    #[must_use]
    pub fn takes(&self, work: u64, speed: u64) -> u64 {
        let micros = u128::from(work) * u128::from(self.unit) / u128::from(speed.max(1));
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}
