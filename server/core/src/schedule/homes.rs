//! Which hosts keep which shard, where a job fixes the number of replicas.

use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, ShardId},
    unit::shard_index,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The homes of a job's shards. Hosts of each numeric class keep all shards among them where trials are kept
/// within a class; `None` is the class of all hosts where they aren't.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Homes {
    by_class: BTreeMap<Option<Digest>, Vec<BTreeSet<HostId>>>,
    /// The same by host.
    by_host: BTreeMap<(HostId, Option<Digest>), Vec<ShardId>>,
}

/// A host that may keep shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keeper {
    pub(crate) host: HostId,
    /// How fast it is.
    pub(crate) speed: u64,
    /// Shards that are in its cache.
    pub(crate) cached: BTreeSet<ShardId>,
}

impl Homes {
    /// Gives every shard (rows of each) to `copies` of these hosts, or to all where they are fewer. Every host
    /// keeps about as many; larger shards go to faster hosts; a shard stays where it was, or where it is cached,
    /// as far as that leaves no host with more than its part.
    pub(crate) fn assign(
        &mut self,
        class: Option<Digest>,
        rows: &[u32],
        copies: u32,
        keepers: &[Keeper],
    ) {
        let before = self.by_class.remove(&class).unwrap_or_default();
        self.by_host.retain(|(_, of), _| *of != class);
        let copies = usize::try_from(copies).unwrap_or(usize::MAX).min(keepers.len());
        if copies == 0 {
            return;
        }
        let part = (rows.len() * copies).div_ceil(keepers.len());
        let mut homes = vec![BTreeSet::new(); rows.len()];
        let mut kept: BTreeMap<HostId, usize> = BTreeMap::new();
        let stays = |shard: usize, host: HostId| {
            before.get(shard).is_some_and(|homes| homes.contains(&host))
        };
        for is_kept in [true, false] {
            for (shard, homes) in homes.iter_mut().enumerate() {
                let id = ShardId(u32::try_from(shard).unwrap_or(u32::MAX));
                for keeper in keepers {
                    let wanted = if is_kept {
                        stays(shard, keeper.host)
                    } else {
                        keeper.cached.contains(&id)
                    };
                    let has = kept.entry(keeper.host).or_default();
                    if wanted && homes.len() < copies && *has < part && homes.insert(keeper.host) {
                        *has += 1;
                    }
                }
            }
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|shard| (Reverse(rows.get(*shard)), *shard));
        let mut by_load: BTreeSet<(usize, Reverse<u64>, HostId)> = keepers
            .iter()
            .map(|of| (kept.get(&of.host).copied().unwrap_or(0), Reverse(of.speed), of.host))
            .collect();
        for shard in order {
            let Some(homes) = homes.get_mut(shard) else { continue };
            while homes.len() < copies {
                let next = by_load.iter().find(|(_, _, host)| !homes.contains(host)).copied();
                let Some(next) = next else { break };
                by_load.remove(&next);
                let (has, speed, host) = next;
                homes.insert(host);
                by_load.insert((has + 1, speed, host));
            }
        }
        for (shard, homes) in (0u32..).map(ShardId).zip(&homes) {
            for host in homes {
                self.by_host.entry((*host, class)).or_default().push(shard);
            }
        }
        self.by_class.insert(class, homes);
    }

    /// Forgets the classes that aren't among these.
    pub(crate) fn keep(&mut self, classes: &BTreeSet<Option<Digest>>) {
        self.by_class.retain(|class, _| classes.contains(class));
        self.by_host.retain(|(_, class), _| classes.contains(class));
    }

    /// Does a host keep a shard, for its class?
    #[must_use]
    pub(crate) fn keeps(&self, class: Option<Digest>, shard: ShardId, host: HostId) -> bool {
        let homes = self.by_class.get(&class).and_then(|all| all.get(shard_index(shard)));
        homes.is_some_and(|homes| homes.contains(&host))
    }

    /// Shards that a host keeps for its class, in order.
    pub(crate) fn of(&self, class: Option<Digest>, host: HostId) -> impl Iterator<Item = ShardId> {
        self.by_host.get(&(host, class)).into_iter().flatten().copied()
    }

    /// Hosts that keep a shard, for any class.
    pub(crate) fn all(&self, shard: ShardId) -> impl Iterator<Item = HostId> {
        let of_class = self.by_class.values().filter_map(move |all| all.get(shard_index(shard)));
        of_class.flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(host: u64, speed: u64) -> Keeper {
        Keeper { host: HostId(host), speed, cached: BTreeSet::new() }
    }

    fn of(homes: &Homes, host: u64) -> Vec<u32> {
        homes.of(None, HostId(host)).map(|shard| shard.0).collect()
    }

    #[test]
    fn each_host_keeps_its_part_and_the_largest_shard_goes_to_the_fastest() {
        let mut homes = Homes::default();
        homes.assign(None, &[10, 30, 20], 1, &[keeper(1, 5), keeper(2, 9), keeper(3, 7)]);
        assert_eq!((of(&homes, 1), of(&homes, 2), of(&homes, 3)), (vec![0], vec![1], vec![2]));
    }

    #[test]
    fn a_host_that_leaves_is_replaced_and_the_others_keep_what_they_have() {
        let mut homes = Homes::default();
        let hosts: Vec<Keeper> = (1..=4).map(|host| keeper(host, 1)).collect();
        homes.assign(None, &[1; 8], 2, &hosts);
        let before: Vec<Vec<u32>> = (1..=4).map(|host| of(&homes, host)).collect();
        assert!(before.iter().all(|shards| shards.len() == 4), "{before:?}");
        homes.assign(None, &[1; 8], 2, &hosts[1..]);
        for host in 2..=4 {
            let (was, is) = (&before[host - 1], of(&homes, host as u64));
            assert!(was.iter().all(|shard| is.contains(shard)), "{was:?} {is:?}");
            assert!(is.len() <= 6, "no more than its part: {is:?}");
        }
        homes.assign(None, &[1; 8], 2, &hosts);
        let part = of(&homes, 1).len();
        assert!((3..=4).contains(&part), "it gets its part again: {part}");
    }

    #[test]
    fn what_is_cached_stays_where_it_is() {
        let mut homes = Homes::default();
        let cached = |host, shards: [u32; 2]| Keeper {
            cached: shards.map(ShardId).into_iter().collect(),
            ..keeper(host, 1)
        };
        homes.assign(None, &[1; 4], 1, &[cached(1, [3, 1]), cached(2, [0, 1])]);
        assert_eq!((of(&homes, 1), of(&homes, 2)), (vec![1, 3], vec![0, 2]));
        homes.assign(None, &[1; 4], 9, &[keeper(7, 1)]);
        assert_eq!(of(&homes, 7), [0, 1, 2, 3], "fewer hosts than copies");
        homes.keep(&BTreeSet::new());
        assert!(of(&homes, 7).is_empty());
    }
}
