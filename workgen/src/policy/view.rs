//! The view of a job that a policy decides on when an idle slot is to be given a hop.

use crate::chain::Chain;
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    quantity::{Micros, Speed, Work},
    unit::shard_index,
};

/// One job at the moment of a decision, as the asking machine sees it. Nothing is computed before it is asked for.
pub trait PolicyView {
    /// Trials whose next hop the machine may have, the most work left first, ties by id.
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_>;
    /// The job's shards as the machine has them.
    fn shards(&self) -> Shards<'_>;
    /// The forecast of the whole job.
    fn forecast(&self) -> Forecast;

    /// The speed of the fastest machine that could have a hop over a shard instead.
    fn fastest_for(&self, _shard: ShardId) -> Speed {
        self.forecast().fastest
    }
    /// The time until the machine would have fetched a shard that it doesn't hold. It is longer where another shard
    /// that the machine needs again would be evicted for it.
    fn fetch_time(&self, shard: ShardId) -> Micros {
        let _ = shard;
        Micros::ZERO
    }
    /// Other machines, at least as fast, that hold a shard which the trial may visit next and would end so much work
    /// within this time. The search stops after `enough` of them.
    fn earlier_finish(
        &self,
        trial: TrialId,
        work: Work,
        within: Micros,
        enough: u32,
    ) -> Option<EarlierFinish> {
        let _ = (trial, work, within, enough);
        None
    }
}

/// A job's shards as a machine has them. They are plain tables, because a decision looks at each of them for many
/// trials.
#[derive(Debug, Clone, Copy)]
pub struct Shards<'a> {
    /// The shards that the machine may train, in order, where they aren't all; none where it may train all.
    pub own: Option<&'a [ShardId]>,
    /// By shard: is it in the machine's cache?
    pub cached: &'a [bool],
    /// By shard: visits that it still gets, from all trials.
    pub load: &'a [u64],
}

impl Shards<'_> {
    /// Where a shard lies, as the machine sees it.
    #[must_use]
    pub fn locality(&self, shard: ShardId) -> DataLocality {
        if self.own.is_some_and(|own| own.binary_search(&shard).is_err()) {
            DataLocality::Excluded
        } else if self.is_cached(shard) {
            DataLocality::Local
        } else {
            DataLocality::Remote
        }
    }

    /// Visits that a shard still gets, from all trials.
    #[must_use]
    pub fn load(&self, shard: ShardId) -> u64 {
        self.load.get(shard_index(shard)).copied().unwrap_or(0)
    }

    /// Does the machine hold any of them?
    #[must_use]
    pub fn holds_any(&self) -> bool {
        self.cached.contains(&true)
    }

    /// Shards that a trial may visit next and the machine may train, in order, and whether it holds them.
    pub fn open(&self, chain: &Chain) -> impl Iterator<Item = (ShardId, bool)> {
        let own = self.own.into_iter().flatten().copied();
        let own = own.filter(|shard| chain.next(*shard).is_some());
        let all = if self.own.is_none() { Some(chain.next_shards()) } else { None };
        own.chain(all.into_iter().flatten()).map(|shard| (shard, self.is_cached(shard)))
    }

    fn is_cached(&self, shard: ShardId) -> bool {
        self.cached.get(shard_index(shard)).is_some_and(|cached| *cached)
    }
}

/// Other machines that would end a hop earlier than the one that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierFinish {
    /// How many slots they have for it.
    pub slots: u32,
    /// The time until the first of them is free.
    pub free_in: Micros,
}

/// A trial that could take its next hop now.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The trial.
    pub trial: TrialId,
    /// The hops that it has done and has left.
    pub chain: &'a Chain,
    /// Estimated work of all that it has left.
    pub work: Work,
    /// How long its next hop has been open.
    pub waited: Micros,
    /// The time to move its checkpoint to the machine and on from there. It is 0 where the time is too short to plan
    /// for, or no machine is planned for the trial.
    pub transfer_time: Micros,
}

/// Where a shard lies, as a machine sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataLocality {
    /// In the machine's cache.
    Local,
    /// Elsewhere: the machine would have to fetch it.
    Remote,
    /// Other machines are to train it.
    Excluded,
}

/// The forecast of a job's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The speed of the machine that asks.
    pub speed: Speed,
    /// The speed of the fastest machine.
    pub fastest: Speed,
    /// The time until the job could be done: all work over all speeds, or the longest trial on the fastest machine,
    /// whichever is longer.
    pub ends_in: Micros,
}
