//! How many hops of a trial go to a host under one lease, and over which shards.

use super::{device_shards::DeviceShards, locality::Locality, scheduler::Scheduler};
use crate::hosts::{DeviceKey, DeviceRef};
use sojourn_protocol::{ids::ShardId, quantity::to_usize};
use sojourn_state::{Job, Trial};
use sojourn_workgen::{Chain, DataLocality};

/// Hops of one lease, where their number follows from how long they and the checkpoint's transfers take.
const MAX_HOPS: u32 = 1024;

/// How far one lease of a trial goes on a device.
pub(super) struct LeaseExtent<'a> {
    local: &'a Locality<'a>,
    job: &'a Job,
    at: DeviceRef<'a>,
    /// Hops of the lease, at the most.
    pub(super) hops: u32,
    /// Microseconds that a further hop saves: the checkpoint's way to the server and back, and the fetch of its shard while the hop
    /// before is trained.
    saves: u64,
}

impl LeaseExtent<'_> {
    /// Where a shard lies for a lease that has a hop of the trial already. One is left out whose fetch takes longer than it saves.
    pub(super) fn standing(&self, shards: &DeviceShards<'_>, shard: ShardId) -> DataLocality {
        let standing = shards.standing(shard);
        if standing != DataLocality::Remote {
            return standing;
        }
        let fetch = self.local.fetch_cost(self.job, self.at.host, shard);
        if fetch > self.saves { DataLocality::Excluded } else { standing }
    }
}

impl Scheduler<'_> {
    /// How far a lease goes that begins with a trial's hop over a shard.
    pub(super) fn lease_extent<'a>(
        &'a self,
        job: &'a Job,
        trial: &Trial,
        first: ShardId,
        at: DeviceRef<'a>,
    ) -> LeaseExtent<'a> {
        let (key, estimates) = (self.key_for(job, trial, at), self.cost.estimates);
        let hop = self.hop_time(job, trial, first, at);
        let workload = estimates.workload_of(job.id, trial.id);
        let is_measured = workload.is_some_and(|of| estimates.measured_nanos(key, of).is_some());
        let transfer = self.cost.transfer_time(trial, at.host);
        let most = || transfer.hops(hop, is_measured, MAX_HOPS);
        let hops = self.config.most_hops.unwrap_or_else(most);
        let saves = transfer.both_ways().saturating_add(hop);
        LeaseExtent { local: &self.local, job, at, hops, saves }
    }

    /// Microseconds of a whole hop on a device.
    pub(super) fn hop_time(
        &self,
        job: &Job,
        trial: &Trial,
        shard: ShardId,
        at: DeviceRef<'_>,
    ) -> u64 {
        let key = self.key_for(job, trial, at);
        self.cost.estimates.micros(key, job.id, trial.id, job.rows_of_hop(shard))
    }

    /// A device, in the class in which it would train a trial.
    fn key_for<'a>(&self, job: &Job, trial: &Trial, at: DeviceRef<'a>) -> DeviceKey<'a> {
        let required = self.state.required_class(job, trial);
        at.key(required.unwrap_or_else(|| self.cost.class_for(job, &at.slots.classes)))
    }
}

/// The shards whose hops follow that over `first`, in order: of those that the trial hasn't begun in this
/// epoch and the host may have, first what is in its cache, then the others; where the order of visits is fixed, in
/// that order, up to the first that the host may not have. With the first no more than `most`.
pub(super) fn batch_hops(
    chain: &Chain,
    first: ShardId,
    locality: impl Fn(ShardId) -> DataLocality,
    most: u32,
) -> Vec<ShardId> {
    let further = to_usize(most.saturating_sub(1));
    if further == 0 {
        return Vec::new();
    }
    // A shard that was begun goes on where it ended, under a lease of its own.
    let others = chain.open().filter(|shard| *shard != first && chain.is_untouched(*shard));
    if chain.has_fixed_visits() {
        let may_have = |shard: &ShardId| locality(*shard) != DataLocality::Excluded;
        return others.take_while(may_have).take(further).collect();
    }
    let with_standing = others.map(|shard| (locality(shard), shard));
    let (held, to_fetch): (Vec<_>, Vec<_>) = with_standing
        .filter(|(locality, _)| *locality != DataLocality::Excluded)
        .partition(|(locality, _)| *locality == DataLocality::Local);
    held.into_iter().chain(to_fetch).map(|(_, shard)| shard).take(further).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        digest::{BlobRef, Digest},
        ids::TrialId,
        manifest::Shard,
        minibatches::Minibatches,
        position::Position,
    };

    /// Of a host that holds the last two of five shards.
    fn last(shard: ShardId) -> DataLocality {
        if shard >= ShardId(3) { DataLocality::Local } else { DataLocality::Remote }
    }

    #[test]
    fn fixed_visits_stay_in_their_order() {
        let shard = Shard { blob: BlobRef { sha256: Digest::of(b""), bytes: 0 }, rows: 16 };
        let chain =
            Chain::new(2, Minibatches::new(8, 1), &[shard; 5]).with_fixed_visits(3, TrialId(1));
        let order: Vec<ShardId> = chain.open().collect();
        assert_eq!(batch_hops(&chain, order[0], last, 9), order[1..], "held or not");
        assert_eq!(batch_hops(&chain, order[0], last, 3), order[1..3]);
        let but_one = |shard| {
            if shard == order[2] { DataLocality::Excluded } else { DataLocality::Local }
        };
        assert_eq!(batch_hops(&chain, order[0], but_one, 9), order[1..2]);
    }

    #[test]
    fn what_the_host_has_goes_first_and_what_was_begun_not_at_all() {
        let shard = Shard { blob: BlobRef { sha256: Digest::of(b""), bytes: 0 }, rows: 16 };
        let mut chain = Chain::new(2, Minibatches::new(8, 1), &[shard; 5]);
        let of = |chain: &Chain, first, most| -> Vec<u32> {
            batch_hops(chain, ShardId(first), last, most).into_iter().map(|shard| shard.0).collect()
        };
        assert_eq!(of(&chain, 0, 0), Vec::<u32>::new());
        assert_eq!(of(&chain, 0, 1), Vec::<u32>::new());
        assert_eq!(of(&chain, 1, 3), [3, 4]);
        assert_eq!(of(&chain, 3, 9), [4, 0, 1, 2]);
        let start = chain.next(ShardId(4)).unwrap();
        let part = Position { batch: 1, step: 1, ..start };
        chain.advance(start, part).unwrap();
        assert_eq!(of(&chain, 3, 9), [0, 1, 2]);
        assert_eq!(of(&chain, 4, 3), [3, 0], "the rest of it may be the first");
    }
}
