//! How a job's shards stand to a place: a policy asks for many of them, so what says it is looked up once.

use super::{fit::Place, house::group};
use crate::{contact::Contact, core::Core, state::Job};
use sojourn_protocol::{ids::ShardId, unit::shard_index};
use sojourn_workgen::{DataLocality, Shards};

/// A job's shards as a place's host has them.
pub(crate) struct Shelf<'a> {
    job: &'a Job,
    /// The shards that the host keeps, in order, where the job fixes its replicas; elsewhere it may have any.
    kept: Option<&'a [ShardId]>,
    contact: Option<&'a Contact>,
    /// By shard, what is in its cache, where that is worked out.
    cached: Option<&'a [bool]>,
}

impl Core {
    /// A job's shards as a place has them.
    pub(crate) fn shelf<'a>(&'a self, job: &'a Job, place: Place<'_>) -> Shelf<'a> {
        let homes = self.soft.schedule.homes.get(&job.id);
        let contact = self.soft.contacts.get(&place.host);
        Shelf {
            job,
            kept: homes.map(|homes| homes.of(group(job, place.class()), place.host)),
            contact,
            cached: contact.and_then(|contact| contact.shards_of(job.id)),
        }
    }
}

impl<'a> Shelf<'a> {
    /// The same as plain tables, of a host whose cache has been looked through.
    pub(crate) fn shards(&self) -> Shards<'a> {
        let Self { job, kept, cached, .. } = *self;
        Shards { own: kept, cached: cached.unwrap_or_default(), load: &job.load }
    }

    /// How one shard stands to the place, whether its cache has been looked through or not.
    pub(crate) fn standing(&self, shard: ShardId) -> DataLocality {
        match self.shards().standing(shard) {
            DataLocality::Remote if self.cached.is_none() && self.has_blob_of(shard) => {
                DataLocality::Local
            }
            standing => standing,
        }
    }

    fn has_blob_of(&self, shard: ShardId) -> bool {
        let blob = self.job.data.train.get(shard_index(shard)).map(|shard| &shard.blob.sha256);
        self.contact.zip(blob).is_some_and(|(contact, blob)| contact.has_blob(blob))
    }
}
