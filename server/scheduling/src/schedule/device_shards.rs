//! How a job's shards stand to a device: kept, cached, or to be fetched.
//!
//! A policy asks for many shards at a time, so what the answer rests on is looked up once.

use super::locality::Locality;
use crate::{
    data::{ReplicaMap, replica_class},
    hosts::{DeviceClasses, DeviceRef, Session},
};
use sojourn_protocol::{
    ids::{HostId, ShardId},
    unit::shard_index,
};
use sojourn_state::Job;
use sojourn_workgen::{DataLocality, Shards};
use std::{borrow::Cow, collections::BTreeSet};

/// A job's shards as a device's host has them.
pub struct DeviceShards<'a> {
    job: &'a Job,
    /// The shards that the host keeps for the device's classes, in order, where the job fixes its replicas; elsewhere it may have any.
    kept: Option<Cow<'a, [ShardId]>>,
    session: Option<&'a Session>,
    /// By shard, is it in the cache? Where the cache is indexed.
    cached: Option<&'a [bool]>,
}

impl<'a> Locality<'a> {
    /// A job's shards as a device has them.
    pub fn device_shards(&self, job: &'a Job, at: DeviceRef<'_>) -> DeviceShards<'a> {
        let replicas = self.data.replicas(job.id);
        let session = self.hosts.session(at.host);
        DeviceShards {
            job,
            kept: replicas.map(|of| kept_for(job, of, &at.slots.classes, at.host)),
            session,
            cached: session.and_then(|session| session.shards_of(job.id)),
        }
    }
}

impl DeviceShards<'_> {
    /// The same as plain tables, of a host whose cache is indexed.
    pub fn shards(&self) -> Shards<'_> {
        let cached = self.cached.unwrap_or_default();
        Shards { own: self.kept.as_deref(), cached, load: &self.job.load }
    }

    /// How one shard stands to the device, whether the host's cache is indexed or not.
    pub fn standing(&self, shard: ShardId) -> DataLocality {
        match self.shards().locality(shard) {
            DataLocality::Remote if self.cached.is_none() && self.has_blob_of(shard) => {
                DataLocality::Local
            }
            standing => standing,
        }
    }

    fn has_blob_of(&self, shard: ShardId) -> bool {
        let blob = self.job.data.train.get(shard_index(shard)).map(|shard| &shard.blob.sha256);
        self.session.zip(blob).is_some_and(|(session, blob)| session.has_blob(blob))
    }
}

/// The shards that a host keeps for any class of a device, in order. A trial may be in another class than new ones would be.
fn kept_for<'a>(
    job: &Job,
    replicas: &'a ReplicaMap,
    classes: &DeviceClasses,
    host: HostId,
) -> Cow<'a, [ShardId]> {
    let of = |class| replicas.of(replica_class(job, class), host);
    if !classes.is_choice() {
        return Cow::Borrowed(of(classes.fastest().class));
    }
    let kept: BTreeSet<ShardId> = classes.iter().flat_map(|each| of(each.class)).copied().collect();
    Cow::Owned(kept.into_iter().collect())
}
