//! Which hosts keep which shard, where a job fixes the number of replicas.

use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, ShardId},
    manifest::Shard,
    quantity::to_usize,
    unit::shard_index,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The hosts that keep a job's shards. Where trials stay within a numeric class, the hosts of each class keep all shards
/// among them. Where they don't, `None` stands for the class of all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaMap {
    by_class: BTreeMap<Option<Digest>, Vec<BTreeSet<HostId>>>,
    /// The same by host.
    by_host: BTreeMap<(HostId, Option<Digest>), Vec<ShardId>>,
}

/// A host that may keep shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaHost {
    /// The host.
    pub host: HostId,
    /// How fast it is.
    pub speed: u64,
    /// Bytes of shards for which its cache has room; none: no limit is known.
    pub room: Option<u64>,
    /// Shards that are in its cache.
    pub cached: BTreeSet<ShardId>,
}

/// The share of the shards that a host has been given.
struct Part<'a> {
    candidate: &'a ReplicaHost,
    shards: usize,
    rows: u64,
    bytes: u64,
}

impl Part<'_> {
    fn fits(&self, shard: &Shard) -> bool {
        self.candidate.room.is_none_or(|room| self.bytes.saturating_add(shard.blob.bytes) <= room)
    }

    fn give(&mut self, shard: &Shard) {
        self.shards += 1;
        self.rows += u64::from(shard.rows);
        self.bytes = self.bytes.saturating_add(shard.blob.bytes);
    }

    /// By which hosts are compared: has it more than `most` shards, and when would it be done with them and this one?
    fn through(&self, shard: &Shard, most: usize) -> (bool, u128, Reverse<u64>, HostId) {
        let speed = self.candidate.speed.max(1);
        let rows = u128::from(self.rows + u64::from(shard.rows)) << 32;
        (self.shards >= most, rows / u128::from(speed), Reverse(speed), self.candidate.host)
    }
}

impl ReplicaMap {
    /// Assigns every shard to `count` of these hosts, or to fewer where there are fewer hosts or caches are too small.
    ///
    /// Every host keeps about as many shards. Larger shards go to faster hosts, so that all would be done with theirs at
    /// about the same time. A further replica goes first to the shards whose hosts are slow, so that every shard has a
    /// fast host as far as there are enough. A shard stays where it is cached, or where it was, as far as that leaves no
    /// host with more than its share.
    pub fn assign(
        &mut self,
        class: Option<Digest>,
        shards: &[Shard],
        count: u32,
        hosts: &[ReplicaHost],
    ) {
        let before = self.by_class.remove(&class).unwrap_or_default();
        self.by_host.retain(|(_, of), _| *of != class);
        let count = to_usize(count).min(hosts.len());
        if count == 0 {
            return;
        }
        let most = (shards.len() * count).div_ceil(hosts.len());
        let mut replicas = vec![BTreeSet::new(); shards.len()];
        let mut speeds = vec![0; shards.len()];
        let part = |candidate| Part { candidate, shards: 0, rows: 0, bytes: 0 };
        let mut parts: Vec<Part<'_>> = hosts.iter().map(part).collect();
        let is_equal = shards
            .iter()
            .all(|shard| shards.first().is_some_and(|first| first.rows.abs_diff(shard.rows) <= 1));
        let mut give = |may: &dyn Fn(usize, &Part<'_>) -> bool| {
            // Every shard has one replica before any has two.
            for wanted in 1..=count {
                for n in slowest_first(shards, &speeds) {
                    let (Some(replicas), Some(shard)) = (replicas.get_mut(n), shards.get(n)) else {
                        continue;
                    };
                    if replicas.len() >= wanted {
                        continue;
                    }
                    let free = parts.iter_mut().filter(|part| {
                        part.fits(shard) && !replicas.contains(&part.candidate.host) && may(n, part)
                    });
                    if let Some(part) = free.min_by_key(|part| part.through(shard, most)) {
                        replicas.insert(part.candidate.host);
                        if let Some(speed) = speeds.get_mut(n) {
                            *speed += u128::from(part.candidate.speed);
                        }
                        part.give(shard);
                    }
                }
            }
        };
        let is_cached = |n: usize, part: &Part<'_>| {
            u32::try_from(n).is_ok_and(|n| part.candidate.cached.contains(&ShardId(n)))
        };
        let was_there = |n: usize, part: &Part<'_>| {
            before.get(n).is_some_and(|replicas| replicas.contains(&part.candidate.host))
        };
        give(&|n, part| part.shards < most && is_cached(n, part));
        // Where sizes differ, a shard that no host has yet goes to the host that fits it best.
        if is_equal {
            give(&|n, part| part.shards < most && was_there(n, part));
        }
        give(&|_, _| true);
        for (shard, replicas) in (0u32..).map(ShardId).zip(&replicas) {
            for host in replicas {
                self.by_host.entry((*host, class)).or_default().push(shard);
            }
        }
        self.by_class.insert(class, replicas);
    }

    /// The first shard that no host keeps for a class, if the class has hosts.
    #[must_use]
    pub fn unplaced_shard(&self, class: Option<Digest>) -> Option<ShardId> {
        let replicas = self.by_class.get(&class)?;
        let n = replicas.iter().position(BTreeSet::is_empty)?;
        u32::try_from(n).ok().map(ShardId)
    }

    /// Forgets all classes but these.
    pub fn keep(&mut self, classes: &BTreeSet<Option<Digest>>) {
        self.by_class.retain(|class, _| classes.contains(class));
        self.by_host.retain(|(_, class), _| classes.contains(class));
    }

    /// Does a host keep a shard, for its class?
    #[must_use]
    pub fn keeps(&self, class: Option<Digest>, shard: ShardId, host: HostId) -> bool {
        let replicas = self.by_class.get(&class).and_then(|all| all.get(shard_index(shard)));
        replicas.is_some_and(|replicas| replicas.contains(&host))
    }

    /// Shards that a host keeps for its class, in order.
    pub fn of(&self, class: Option<Digest>, host: HostId) -> &[ShardId] {
        self.by_host.get(&(host, class)).map_or(&[], Vec::as_slice)
    }

    /// Shards that a host keeps for any class; one that it keeps for two stands twice.
    pub fn all_of(&self, host: HostId) -> impl Iterator<Item = ShardId> {
        let classes = (host, None)..=(host, Some(Digest([u8::MAX; 32])));
        self.by_host.range(classes).flat_map(|(_, shards)| shards).copied()
    }

    /// The first of the classes.
    pub fn first_class(&self) -> Option<Digest> {
        self.by_class.keys().next().copied().flatten()
    }

    /// Hosts that keep a shard, for any class.
    pub fn all(&self, shard: ShardId) -> impl Iterator<Item = HostId> {
        let of_class = self.by_class.values().filter_map(move |all| all.get(shard_index(shard)));
        of_class.flatten().copied()
    }
}

/// Shards in the order in which they get a further replica. Those without any come first, the largest before the others;
/// then those that their hosts together take longest for. Ties by number. `speeds`: of each shard's hosts together.
fn slowest_first(shards: &[Shard], speeds: &[u128]) -> Vec<usize> {
    let takes = |(shard, speed): (&Shard, &u128)| {
        let rows = u128::from(shard.rows);
        (Reverse(*speed == 0), Reverse((rows << 64) / (*speed).max(1)))
    };
    let mut order: Vec<_> = shards.iter().zip(speeds).map(takes).zip(0..).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, n)| n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_protocol::digest::BlobRef;

    fn replica_host(host: u64, speed: u64) -> ReplicaHost {
        ReplicaHost { host: HostId(host), speed, room: None, cached: BTreeSet::new() }
    }

    /// Of so many rows, and ten times as many bytes.
    fn sized<const N: usize>(rows: [u32; N]) -> [Shard; N] {
        rows.map(|rows| Shard {
            blob: BlobRef { sha256: Digest([0; 32]), bytes: u64::from(rows) * 10 },
            rows,
        })
    }

    fn of(replicas: &ReplicaMap, host: u64) -> Vec<u32> {
        replicas.of(None, HostId(host)).iter().map(|shard| shard.0).collect()
    }

    #[test]
    fn each_host_keeps_its_part_and_the_largest_shard_goes_to_the_fastest() {
        let mut replicas = ReplicaMap::default();
        replicas.assign(
            None,
            &sized([10, 30, 20]),
            1,
            &[replica_host(1, 5), replica_host(2, 9), replica_host(3, 7)],
        );
        assert_eq!(
            (of(&replicas, 1), of(&replicas, 2), of(&replicas, 3)),
            (vec![0], vec![1], vec![2])
        );
    }

    #[test]
    fn every_shard_has_a_fast_host_where_there_are_enough() {
        let hosts: Vec<ReplicaHost> = (1..=8)
            .zip([12, 6, 11, 19].repeat(2))
            .map(|(n, speed)| replica_host(n, speed))
            .collect();
        let mut replicas = ReplicaMap::default();
        replicas.assign(None, &sized([10; 8]), 3, &hosts);
        let keeps = |shard, of: &&ReplicaHost| replicas.keeps(None, ShardId(shard), of.host);
        let speeds = (0..8)
            .map(|shard| hosts.iter().filter(|of| keeps(shard, of)).map(|of| of.speed).collect());
        let speeds: Vec<Vec<u64>> = speeds.collect();
        let fast = speeds.iter().filter(|of| of.contains(&19)).count();
        assert_eq!(fast, 6, "two hosts, three shards each: {speeds:?}");
        let sums = speeds.iter().map(|of| of.iter().sum::<u64>());
        assert!(sums.clone().min() >= Some(34), "36 are a mean share: {speeds:?}");
    }

    #[test]
    fn a_host_that_leaves_is_replaced_and_the_others_keep_what_they_have() {
        let mut replicas = ReplicaMap::default();
        let hosts: Vec<ReplicaHost> = (1..=4).map(|host| replica_host(host, 1)).collect();
        replicas.assign(None, &sized([1; 8]), 2, &hosts);
        let before: Vec<Vec<u32>> = (1..=4).map(|host| of(&replicas, host)).collect();
        assert!(before.iter().all(|shards| shards.len() == 4), "{before:?}");
        replicas.assign(None, &sized([1; 8]), 2, &hosts[1..]);
        for host in 2..=4 {
            let (was, is) = (&before[host - 1], of(&replicas, host as u64));
            assert!(was.iter().all(|shard| is.contains(shard)), "{was:?} {is:?}");
            assert!(is.len() <= 6, "no more than its part: {is:?}");
        }
        replicas.assign(None, &sized([1; 8]), 2, &hosts);
        let part = of(&replicas, 1).len();
        assert!((3..=4).contains(&part), "it gets its part again: {part}");
    }

    #[test]
    fn what_is_cached_stays_where_it_is() {
        let mut replicas = ReplicaMap::default();
        let cached = |host, shards: [u32; 2]| ReplicaHost {
            cached: shards.map(ShardId).into_iter().collect(),
            ..replica_host(host, 1)
        };
        replicas.assign(None, &sized([1; 4]), 1, &[cached(1, [3, 1]), cached(2, [0, 1])]);
        assert_eq!((of(&replicas, 1), of(&replicas, 2)), (vec![1, 3], vec![0, 2]));
        replicas.assign(None, &sized([1; 4]), 9, &[replica_host(7, 1)]);
        assert_eq!(of(&replicas, 7), [0, 1, 2, 3], "fewer hosts than replicas");
        replicas.keep(&BTreeSet::new());
        assert!(of(&replicas, 7).is_empty());
    }

    #[test]
    fn sizes_that_go_by_speed_find_their_hosts_in_whatever_order_these_come() {
        let shards = sized([20, 20, 10, 10]);
        let (fast, slow) = (replica_host(1, 2), replica_host(2, 1));
        let mut replicas = ReplicaMap::default();
        replicas.assign(None, &shards, 1, std::slice::from_ref(&slow));
        assert_eq!(of(&replicas, 2), [0, 1, 2, 3]);
        replicas.assign(None, &shards, 1, &[fast, slow]);
        assert_eq!((of(&replicas, 1), of(&replicas, 2)), (vec![0, 1], vec![2, 3]));
    }

    #[test]
    fn caches_bound_replicas_and_one_for_each_shard_goes_before_two_for_some() {
        let room = |host, bytes| ReplicaHost { room: Some(bytes), ..replica_host(host, 1) };
        let mut replicas = ReplicaMap::default();
        replicas.assign(None, &sized([1; 4]), 2, &[room(1, 10), room(2, 25), room(3, 20)]);
        let kept = [1, 2, 3].map(|host| of(&replicas, host).len());
        assert_eq!((kept, replicas.unplaced_shard(None)), ([1, 2, 2], None));
        replicas.assign(None, &sized([1; 4]), 1, &[room(1, 15), replica_host(2, 1)]);
        assert_eq!((of(&replicas, 1).len(), of(&replicas, 2).len()), (1, 3), "more than its part");
        replicas.assign(None, &sized([2, 1, 1]), 1, &[room(1, 20)]);
        assert_eq!(replicas.unplaced_shard(None), Some(ShardId(1)));
    }

    proptest! {
        #[test]
        fn no_replica_is_too_large_and_every_shard_has_one_that_fits_a_free_host(
            rows in proptest::collection::vec(1u32..50, 1..20),
            hosts in proptest::collection::vec((1u64..20, proptest::option::of(0u64..2000)), 1..8),
            count in 1u32..4,
        ) {
            let shards: Vec<Shard> = rows.iter().map(|rows| sized([*rows])[0]).collect();
            let candidates: Vec<ReplicaHost> = (1u64..).zip(&hosts).map(|(host, (speed, room))| ReplicaHost {
                room: *room,
                ..replica_host(host, *speed)
            }).collect();
            let mut replicas = ReplicaMap::default();
            replicas.assign(None, &shards, count, &candidates);
            let bytes = |shard: u32| shards[shard as usize].blob.bytes;
            for candidate in &candidates {
                let kept: u64 = of(&replicas, candidate.host.0).into_iter().map(bytes).sum();
                prop_assert!(candidate.room.is_none_or(|room| kept <= room));
            }
            let wanted = count;
            let most = (count as usize).min(candidates.len());
            for shard in (0u32..).take(shards.len()) {
                let count = replicas.all(ShardId(shard)).count();
                prop_assert!(count <= most);
                let unlimited = hosts.iter().filter(|(_, room)| room.is_none()).count();
                prop_assert!(count >= unlimited.min(most), "an unlimited host keeps any");
            }
            let again = replicas.clone();
            replicas.assign(None, &shards, wanted, &candidates);
            let equal = shards.iter().all(|shard| shard.rows == shards[0].rows);
            prop_assert!(equal || replicas == again, "the same again");
        }
    }
}
