//! Which hosts keep which data: replicas of shards, shards to fetch ahead, blobs to evict.
//!
//! | file | holds |
//! |---|---|
//! | `replicas.rs` | which hosts keep which shard, where a job fixes the number of replicas |

mod replicas;

pub use replicas::{ReplicaHost, ReplicaMap};

use crate::memo::Memo;
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId},
};
use sojourn_state::Job;
use std::collections::{BTreeMap, BTreeSet};

/// Where data is kept, and what hosts are to fetch or drop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataPlacement {
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
    pub fn replicas(&self, job: JobId) -> Option<&ReplicaMap> {
        self.replicas.get(&job)
    }

    /// Does the job fix where its shards are kept?
    pub fn has_replicas(&self, job: JobId) -> bool {
        self.replicas.contains_key(&job)
    }

    /// The replicas of all jobs that fix them.
    pub fn all_replicas(&self) -> impl Iterator<Item = (JobId, &ReplicaMap)> {
        self.replicas.iter().map(|(job, replicas)| (*job, replicas))
    }

    /// Has all replicas assigned anew: caches or memory are other than they were.
    pub fn invalidate(&mut self) {
        self.looked_at.invalidate();
        self.assigned_for.invalidate();
    }

    /// Has a job's replicas assigned anew.
    pub fn forget_job(&mut self, job: JobId) {
        self.looked_at.invalidate();
        self.replicas.remove(&job);
    }

    /// Has a job's replicas assigned anew, as far as may be where they are: other hosts may be capable of its trials now.
    pub fn outdate_replicas(&mut self, job: JobId) {
        self.looked_at.invalidate();
        self.outdated.insert(job);
    }

    /// Were replicas assigned since waiting hosts were last told?
    pub fn was_reassigned(&self) -> bool {
        self.changed
    }

    /// Was the host told to fetch that blob ahead?
    pub fn is_prefetch(&self, host: HostId, blob: Digest) -> bool {
        self.prefetches.get(&host).is_some_and(|prefetches| prefetches.contains(&blob))
    }

    /// Takes out the blobs that a host is to drop from its cache.
    pub fn take_evictions(&mut self, host: HostId) -> Vec<Digest> {
        self.evictions.remove(&host).unwrap_or_default()
    }

    /// Forgets what hosts were to fetch and drop that were silent for long.
    pub fn forget_hosts(&mut self, hosts: &BTreeSet<HostId>) {
        for host in hosts {
            self.prefetches.remove(host);
            self.evictions.remove(host);
        }
    }

    /// The replicas that are to be assigned anew since it was last looked; `None` where nothing has changed. `versions`: of the fleet, of the
    /// cool-downs and of the jobs with work.
    pub fn outdated(
        &mut self,
        versions: [u64; 3],
        cooling: impl FnOnce() -> Vec<HostId>,
    ) -> Option<OutdatedReplicas> {
        if !self.looked_at.changed(versions) {
            return None;
        }
        let [fleet, ..] = versions;
        let all = self.assigned_for.changed((fleet, cooling()));
        Some(OutdatedReplicas { all, jobs: std::mem::take(&mut self.outdated) })
    }

    /// Takes a job's replicas out, to assign them anew.
    pub fn take_replicas(&mut self, job: JobId) -> ReplicaMap {
        self.replicas.remove(&job).unwrap_or_default()
    }

    /// A job's replicas were assigned.
    pub fn set_replicas(&mut self, job: JobId, replicas: ReplicaMap) {
        self.replicas.insert(job, replicas);
        self.changed = true;
    }

    /// Keeps the replicas of these jobs alone.
    pub fn keep_jobs(&mut self, is_kept: impl Fn(JobId) -> bool) {
        self.replicas.retain(|job, _| is_kept(*job));
    }

    /// Were replicas assigned since waiting hosts were last told? They are told now.
    pub fn take_reassigned(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Has a host yet to fetch what it was told to fetch ahead? `has`: whether it has a blob.
    pub fn is_fetching(&mut self, host: HostId, has: impl Fn(&Digest) -> bool) -> bool {
        let due = self.prefetches.entry(host).or_default();
        due.retain(|blob| !has(blob));
        !due.is_empty()
    }

    /// Has a host fetch these blobs ahead.
    pub fn set_prefetches(&mut self, host: HostId, blobs: BTreeSet<Digest>) {
        self.prefetches.insert(host, blobs);
    }

    /// Has a host drop these blobs.
    pub fn evict(&mut self, host: HostId, blobs: Vec<Digest>) {
        self.evictions.insert(host, blobs);
    }

    /// Has no host fetch other blobs than these.
    pub fn keep_prefetches(&mut self, needed: &BTreeSet<Digest>) {
        for prefetches in self.prefetches.values_mut() {
            prefetches.retain(|blob| needed.contains(blob));
        }
    }
}

/// The replicas that are to be assigned anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutdatedReplicas {
    /// The replicas of all jobs: the hosts are other ones.
    pub all: bool,
    /// Jobs whose replicas are assigned anew whatever the hosts are.
    pub jobs: BTreeSet<JobId>,
}

/// The numeric class whose hosts keep all shards of a job among them; `None` where that is all hosts.
pub fn replica_class(job: &Job, class: Digest) -> Option<Digest> {
    job.spec.placement.reproducible.then_some(class)
}
