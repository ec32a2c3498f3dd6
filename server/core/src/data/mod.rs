//! Which hosts keep which data: replicas of shards, shards to fetch ahead, blobs to evict.
//!
//! | file | holds |
//! |---|---|
//! | `replicas.rs` | which hosts keep which shard, where a job fixes the number of replicas |
//! | `placement.rs` | when replicas are assigned, and to whom |
//! | `preferred.rs` | which numeric class each job prefers, where devices offer several |
//! | `prefetch.rs` | shards that idle hosts fetch ahead, and blobs that nobody will need |

mod placement;
mod preferred;
mod prefetch;
mod replicas;

pub(crate) use placement::PlacementHandler;

pub(crate) use placement::replica_class;
pub(crate) use replicas::ReplicaMap;

use crate::memo::Memo;
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId},
};
use std::collections::{BTreeMap, BTreeSet};

/// Where data is kept, and what hosts are to fetch or drop.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DataPlacement {
    /// By job, of those that fix their replicas.
    replicas: BTreeMap<JobId, ReplicaMap>,
    /// The versions of the fleet, of the cool-downs and of the jobs with work when it was last looked whether replicas are
    /// to be assigned. While they are the same, there is nothing to assign.
    looked_at: Memo<[u64; 3]>,
    /// The fleet that replicas were assigned for, and the hosts that were cooling down.
    assigned_for: Memo<(u64, Vec<HostId>)>,
    /// Jobs whose replicas are to be assigned anew, near where they are.
    outdated: BTreeSet<JobId>,
    /// Replicas were assigned since waiting hosts were last told.
    changed: bool,
    /// Blobs that hosts are to fetch ahead, and may read.
    prefetches: BTreeMap<HostId, BTreeSet<Digest>>,
    /// Cached blobs that hosts are to drop.
    evictions: BTreeMap<HostId, Vec<Digest>>,
}

impl DataPlacement {
    /// Where a job's shards are kept, where it fixes its replicas.
    pub(crate) fn replicas(&self, job: JobId) -> Option<&ReplicaMap> {
        self.replicas.get(&job)
    }

    /// Does the job fix where its shards are kept?
    pub(crate) fn has_replicas(&self, job: JobId) -> bool {
        self.replicas.contains_key(&job)
    }

    /// The replicas of all jobs that fix them.
    pub(crate) fn all_replicas(&self) -> impl Iterator<Item = (JobId, &ReplicaMap)> {
        self.replicas.iter().map(|(job, replicas)| (*job, replicas))
    }

    /// Has all replicas assigned anew: caches or memory are other than they were.
    pub(crate) fn invalidate(&mut self) {
        self.looked_at.invalidate();
        self.assigned_for.invalidate();
    }

    /// Has a job's replicas assigned anew.
    pub(crate) fn forget_job(&mut self, job: JobId) {
        self.looked_at.invalidate();
        self.replicas.remove(&job);
    }

    /// Has a job's replicas assigned anew, as far as may be where they are: other hosts may be capable of its trials now.
    pub(crate) fn outdate_replicas(&mut self, job: JobId) {
        self.looked_at.invalidate();
        self.outdated.insert(job);
    }

    /// Were replicas assigned since waiting hosts were last told?
    pub(crate) fn was_reassigned(&self) -> bool {
        self.changed
    }

    /// Was the host told to fetch that blob ahead?
    pub(crate) fn is_prefetch(&self, host: HostId, blob: Digest) -> bool {
        self.prefetches.get(&host).is_some_and(|prefetches| prefetches.contains(&blob))
    }

    /// Takes out the blobs that a host is to drop from its cache.
    pub(crate) fn take_evictions(&mut self, host: HostId) -> Vec<Digest> {
        self.evictions.remove(&host).unwrap_or_default()
    }

    /// Forgets what hosts were to fetch and drop that were silent for long.
    pub(crate) fn forget_hosts(&mut self, hosts: &BTreeSet<HostId>) {
        for host in hosts {
            self.prefetches.remove(host);
            self.evictions.remove(host);
        }
    }
}
