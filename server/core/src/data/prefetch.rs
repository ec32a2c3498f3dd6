//! The caches of hosts: shards to fetch ahead of their first use, and blobs to drop that nobody will need.

use super::handler::PlacementHandler;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::HostId,
    quantity::to_usize,
    time::Millis,
};
use sojourn_scheduling::waiters::Wake;
use sojourn_state::{Job, Trial};
use std::{cmp::Reverse, collections::BTreeSet};

/// Shards that a host fetches ahead at a time.
const MAX_PREFETCHES: usize = 2;
/// The data of a job that has ended stays in caches for so long: the job may be extended, or evaluated.
const ENDED_DATA_KEPT: Millis = Millis::from_secs(24 * 3600);

impl PlacementHandler<'_> {
    /// Shards for a host to fetch that had nothing to do for as long as it waited: those that most trials have yet to
    /// visit. None while it still has some to fetch.
    pub(crate) fn prefetch(&mut self, host: HostId) -> Vec<BlobRef> {
        let Some(session) = self.hosts.session(host) else { return Vec::new() };
        let is_fetching = self.data.is_fetching(host, |blob| session.has_blob(blob));
        if is_fetching || self.hosts.cooldown(host).is_some() {
            return Vec::new();
        }
        let state = &*self.ledger.state;
        let eligibility = self.eligibility();
        let jobs = state.jobs.values().filter(|job| job.is_running() && job.is_open());
        let mut shards = Vec::new();
        for job in jobs.filter(|job| eligibility.could_train(job, host)) {
            let with_load = job.data.train.iter().map(|shard| shard.blob).zip(&job.load);
            let fixed = self.data.has_replicas(job.id);
            let own = fixed.then(|| eligibility.missing_replicas(job, host));
            let missing = with_load.filter(|(blob, load)| {
                own.as_ref().is_none_or(|own| own.contains(blob))
                    && **load > 0
                    && !session.has_blob(&blob.sha256)
                    && !state.blobs.is_lost(&blob.sha256)
            });
            shards.extend(missing);
        }
        // Among equally wanted shards, each host begins with another one.
        let first = to_usize(host.0).checked_rem(shards.len()).unwrap_or(0);
        shards.rotate_left(first);
        shards.sort_by_key(|(_, load)| Reverse(**load));
        let shards: Vec<BlobRef> =
            shards.iter().take(MAX_PREFETCHES).map(|(blob, _)| *blob).collect();
        let blobs = shards.iter().map(|blob| blob.sha256).collect();
        self.data.set_prefetches(host, blobs);
        shards
    }

    /// Finds cached blobs of jobs that ended long ago, and such as belong to no job: their hosts are to drop them.
    pub(crate) fn find_unneeded_blobs(&mut self) {
        let now = self.ledger.clock.now();
        let lives = |job: &&Job| {
            let ended = job.end.map(|(_, at)| at);
            ended.is_none_or(|at| at + ENDED_DATA_KEPT > now) || job.has_open_extras()
        };
        let jobs = self.ledger.state.jobs.values().filter(lives);
        let data = jobs.clone().flat_map(Job::blobs);
        let checkpoints = jobs.flat_map(|job| &job.trials).flat_map(Trial::blobs);
        let needed: BTreeSet<Digest> = data.chain(checkpoints).map(|blob| blob.sha256).collect();
        for (host, session) in self.hosts.sessions() {
            let unneeded: Vec<Digest> = session.cached.difference(&needed).copied().collect();
            if !unneeded.is_empty() {
                self.data.evict(host, unneeded);
                self.ledger.waiters.wake(Wake::Host(host));
            }
        }
        self.data.keep_prefetches(&needed);
    }
}
