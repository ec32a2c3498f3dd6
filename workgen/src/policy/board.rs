//! What a policy sees when an idle place is to be given a hop of one job.

use crate::chain::Chain;
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    unit::shard_index,
};

/// The moment of a decision, as one place sees it. Nothing is looked up before it is asked for.
pub trait Board {
    /// Trials whose next hop the place may have, the most work left first, ties by id.
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_>;
    /// The job's shards as the place has them.
    fn shards(&self) -> Shards<'_>;
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

/// A job's shards as a place has them: plain tables, for a decision looks at each of them for many trials.
#[derive(Debug, Clone, Copy)]
pub struct Shards<'a> {
    /// Those that are for the place to train, in order, where they aren't all.
    pub own: Option<&'a [ShardId]>,
    /// By shard: is it in the place's cache?
    pub cached: &'a [bool],
    /// By shard: visits that it still gets, from all trials.
    pub load: &'a [u64],
}

impl Shards<'_> {
    /// How the place stands to a shard.
    #[must_use]
    pub fn standing(&self, shard: ShardId) -> DataLocality {
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

    /// Does the place hold any of them?
    #[must_use]
    pub fn holds_any(&self) -> bool {
        self.cached.contains(&true)
    }

    /// Shards that a trial may visit next and the place may train, in order, and whether it holds them.
    pub fn open(&self, chain: &Chain) -> impl Iterator<Item = (ShardId, bool)> {
        let own = self.own.into_iter().flatten().copied();
        let own = own.filter(|shard| chain.next(*shard).is_some());
        let all = if self.own.is_none() { Some(chain.open()) } else { None };
        own.chain(all.into_iter().flatten()).map(|shard| (shard, self.is_cached(shard)))
    }

    fn is_cached(&self, shard: ShardId) -> bool {
        self.cached.get(shard_index(shard)).is_some_and(|cached| *cached)
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
pub enum DataLocality {
    /// In its cache.
    Local,
    /// It would have to fetch it.
    Remote,
    /// It is for others to train.
    Excluded,
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
        // Nearly always it fits, and a decision asks this of hundreds of trials.
        if let Some(scaled) = work.checked_mul(self.unit) {
            return scaled / speed.max(1);
        }
        let micros = u128::from(work) * u128::from(self.unit) / u128::from(speed.max(1));
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}
