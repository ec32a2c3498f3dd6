//! Whether the visits of a job's trials are fixed, where its job file leaves that open. The command that submits and the one
//! that validates call the same function.
//!
//! Fixed visits make a job's seed decide its models. What they may cost is the wait for shards: a trial needs the next one of
//! its order, where it could else go on with one that its host holds. The estimate compares two makespans of all hops
//! over all slots that can be busy:
//!
//! ```text
//!   free    in the first epoch a hop takes its training or its share of fetches, whichever is longer, where each host
//!           fetches its part of the shards; then its training
//!   fixed   the same, where each host fetches all shards in the first epoch, then those that the cache can't hold
//! ```
//!
//! So one host that can hold all shards waits as long either way. After the first epoch free visits are taken to wait for no
//! shard at all, and fixed ones are found rather too dear than too cheap.

use crate::shards::{Load, SHARDS_PER_CACHE, ShardHost};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, mul_div, to_u64},
    spec::{JobSpec, OrderChoice, PlacementSpec, Replicas, ShardSizes, Visits},
};
use std::fmt;

/// Fixed visits may cost so many thousandths of the makespan.
pub const MAX_COST: u64 = 10;

/// How the visits of a job are to be, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisitsChoice {
    /// Fixed or free.
    pub visits: Visits,
    /// The reason for the choice.
    pub reason: VisitsReason,
}

impl VisitsChoice {
    /// Does the job file leave it open?
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        self.reason != VisitsReason::Given
    }
}

/// Why visits are fixed or free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitsReason {
    /// The job file says it.
    Given,
    /// Each shard lies on some hosts alone, where trials would wait for each other.
    Replicas,
    /// Results are merged as they arrive.
    Merge,
    /// So few trials for so many slots are merged.
    FewTrials {
        /// The number of trials.
        trials: u64,
        /// Slots of all hosts.
        slots: u64,
    },
    /// No host is known that they could cost anything.
    NoHosts,
    /// Some host's cache holds so few of the shards that each visit would fetch one.
    SmallCache,
    /// The cost of fixed visits on the hosts that are known.
    Cost {
        /// Thousandths of the makespan.
        thousandths: u64,
        /// The number of those hosts.
        hosts: u64,
    },
}

/// Chooses, for a job of this load over so many shards and epochs.
#[must_use]
pub fn choose_visits(
    placement: &PlacementSpec,
    load: &Load,
    (shards, epochs): (u32, u32),
    hosts: &[ShardHost],
) -> VisitsChoice {
    let free = |reason| VisitsChoice { visits: Visits::Free, reason };
    if let Some(visits) = placement.visits {
        return VisitsChoice { visits, reason: VisitsReason::Given };
    }
    if placement.replicas != Replicas::Demand {
        return free(VisitsReason::Replicas);
    }
    if placement.order == OrderChoice::Merge {
        return free(VisitsReason::Merge);
    }
    let slots: u64 = hosts.iter().map(|host| u64::from(host.slots)).sum();
    let merges =
        load.trials.saturating_mul(1000) < slots.saturating_mul(u64::from(placement.merge_below));
    if placement.order == OrderChoice::Auto && merges && shards > 1 {
        return free(VisitsReason::FewTrials { trials: load.trials, slots });
    }
    if slots == 0 {
        return VisitsChoice { visits: Visits::Fixed, reason: VisitsReason::NoHosts };
    }
    let shard_bytes = load.bytes / u64::from(shards.max(1));
    let holds_few = |cache: u64| cache < shard_bytes.saturating_mul(SHARDS_PER_CACHE);
    let mut caches = hosts.iter().filter(|host| host.slots > 0).filter_map(|host| host.cache);
    if caches.any(|cache| cache < load.bytes && holds_few(cache)) {
        return free(VisitsReason::SmallCache);
    }
    let thousandths = cost(load, shards, epochs, hosts);
    let hosts = to_u64(hosts.iter().filter(|host| host.slots > 0).count());
    let visits = if thousandths <= MAX_COST { Visits::Fixed } else { Visits::Free };
    VisitsChoice { visits, reason: VisitsReason::Cost { thousandths, hosts } }
}

/// A cause that makes two runs of one job differ, although job file, data and seed are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetDependence {
    /// Visits are free in a job that is otherwise reproducible.
    Visits,
    /// How far trials come in the time that the job has.
    WallTime,
    /// Which trials end early.
    Stopping,
    /// Which combinations are tried.
    Suggestions,
    /// A program of the user's own suggests the combinations.
    Outside,
    /// The sizes of shards.
    ShardSizes,
    /// Threads and instruction sets.
    Arithmetic,
}

/// All that makes two runs of a job differ with these visits.
#[must_use]
pub fn fleet_dependences(spec: &JobSpec, visits: Visits) -> Vec<FleetDependence> {
    let (placement, method) = (&spec.placement, &spec.search.method);
    let alone = placement.replicas == Replicas::Fixed(1);
    let by_speed = match (spec.data.shard_sizes, visits) {
        (Some(ShardSizes::Speed), _) => alone,
        (None, Visits::Free) => alone,
        (None, Visits::Fixed) | (Some(ShardSizes::Equal), _) => false,
    };
    let all = [
        (FleetDependence::Visits, placement.reproducible && visits == Visits::Free),
        (FleetDependence::Arithmetic, !placement.reproducible && visits == Visits::Fixed),
        (FleetDependence::ShardSizes, by_speed),
        (FleetDependence::WallTime, spec.search.wall_time.is_some()),
        (
            FleetDependence::Stopping,
            spec.search.stopping.is_some_and(|rule| rule.depends_on_arrival()),
        ),
        (FleetDependence::Suggestions, method.depends_on_arrival() && !method.is_outside()),
        (FleetDependence::Outside, method.is_outside()),
    ];
    all.into_iter().filter(|(_, is_so)| *is_so).map(|(what, _)| what).collect()
}

impl fmt::Display for FleetDependence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Visits => {
                "another run may end with other models: the order of free visits follows the hosts, and \
                 `reproducible` pins the arithmetic alone"
            }
            Self::WallTime => {
                "another run may end with other models: how far trials come in `wall_time` follows the hosts"
            }
            Self::Stopping => {
                "another run may stop other trials: this rule of early stopping decides as results arrive; `\"sha\"` and \
                 `\"hyperband\"` wait for whole rungs"
            }
            Self::Suggestions => {
                "another run may try other combinations: they are suggested as results arrive; with `batch` they are \
                 suggested when all before have ended"
            }
            Self::Outside => {
                "another run may try other combinations: a program of your own suggests them"
            }
            Self::ShardSizes => {
                "another run may end with other models: the sizes of shards follow the speeds of the hosts; \
                 `shard_sizes = \"equal\"` doesn't"
            }
            Self::Arithmetic => {
                "another run may end with other last digits: with `reproducible = false` threads and instruction sets \
                 are those of the hosts"
            }
        })
    }
}

/// A slot: nanoseconds of a hop, alone, while the first epoch's shards are fetched by free and by fixed visits, and later.
struct Slot {
    train: u64,
    first_free: u64,
    first: u64,
    later: u64,
}

/// By how many thousandths fixed visits make a job longer.
fn cost(load: &Load, shards: u32, epochs: u32, hosts: &[ShardHost]) -> u64 {
    let shards = u64::from(shards.max(1));
    let rows = load.rows / shards;
    let sharers = to_u64(hosts.iter().filter(|host| host.slots > 0).count()).min(shards).max(1);
    let mut slots: Vec<Slot> = Vec::new();
    for host in hosts.iter().filter(|host| host.slots > 0) {
        let count = u64::from(host.slots);
        let speed = (host.flops_or_default() / count).max(1);
        let train = mul_div(load.flops.saturating_mul(rows), NANOS, speed).max(1);
        let rate = host.download_or_default().max(1);
        let fetch = mul_div(load.bytes / shards, NANOS, rate) / count;
        let missing = host.cache.map_or(0, |cache| load.bytes.saturating_sub(cache));
        let refetch = mul_div(fetch, missing, load.bytes.max(1));
        let slot = || Slot {
            train,
            first_free: train.max(fetch / sharers),
            first: train.max(fetch),
            later: train.max(refetch),
        };
        let most = usize::saturating_from(count.min(load.trials));
        slots.extend(std::iter::repeat_with(slot).take(most));
    }
    // More slots than trials stand idle.
    slots.sort_by_key(|slot| slot.train);
    slots.truncate(usize::saturating_from(load.trials.max(1)));
    // Hops in a time that is long beside all of them.
    let rate = |takes: fn(&Slot) -> u64| -> u64 {
        slots.iter().map(|slot| LONG / takes(slot).max(1)).sum::<u64>().max(1)
    };
    let time = |epochs: u32, rate: u64| u64::from(epochs).saturating_mul(LONG) / rate;
    let (one, others) = (epochs.min(1), epochs.saturating_sub(1));
    let free = time(one, rate(|slot| slot.first_free))
        .saturating_add(time(others, rate(|slot| slot.train)));
    let first = time(one, rate(|slot| slot.first));
    let later = time(others, rate(|slot| slot.later));
    mul_div(first.saturating_add(later).saturating_sub(free), 1000, free.max(1))
}

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;
/// Nanoseconds over which the hops of slots are compared.
const LONG: u64 = 1 << 52;

impl fmt::Display for VisitsChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = self.visits == Visits::Fixed;
        write!(out, "{}", self.visits.name())?;
        match self.reason {
            VisitsReason::Given => Ok(()),
            VisitsReason::Replicas => {
                write!(out, ": with `replicas`, trials wait for each other's shards")
            }
            VisitsReason::Merge => {
                write!(out, ": results are merged in the order in which they arrive")
            }
            VisitsReason::FewTrials { trials, slots } => {
                let trials =
                    if trials == 1 { "1 trial".into() } else { format!("{trials} trials") };
                write!(
                    out,
                    ": {trials} would leave most of {slots} slots idle, so results are merged"
                )
            }
            VisitsReason::NoHosts => write!(out, ": no host is known that waits for it"),
            VisitsReason::SmallCache => write!(
                out,
                ": the smallest cache holds fewer than {SHARDS_PER_CACHE} shards, so trials go where theirs lie"
            ),
            VisitsReason::Cost { thousandths, hosts } => {
                let (whole, tenth) = (thousandths / 10, thousandths % 10);
                let hosts = if hosts == 1 { "1 host".into() } else { format!("{hosts} hosts") };
                let more = format!("{whole}.{tenth} % of the time on {hosts}");
                match fixed {
                    true => write!(out, ": that costs {more}"),
                    false => {
                        write!(out, ": fixed ones would cost {more}, most of it waits for shards")
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::jobfile;

    const GB: u64 = 1_000_000_000;
    const LOAD: Load = Load {
        rows: 64_000,
        bytes: GB,
        trials: 32,
        batch: 32,
        flops: 10_000_000,
        checkpoint: 1_000_000,
        replicas: None,
    };
    /// The host trains an epoch in 64 s, and fetches all data in 10 s.
    const HOST: ShardHost = ShardHost {
        slots: 1,
        flops: 10 * GB,
        download: Some(100_000_000),
        upload: None,
        cache: Some(2 * GB),
    };

    fn hop() -> PlacementSpec {
        PlacementSpec::new(OrderChoice::Hop, true, 1)
    }

    fn of(host: ShardHost) -> VisitsChoice {
        choose_visits(&hop(), &LOAD, (64, 4), &[host; 4])
    }

    #[test]
    fn they_are_fixed_where_no_host_waits_for_shards() {
        let choice = of(HOST);
        assert_eq!(choice.visits, Visits::Fixed);
        assert_eq!(choice.to_string(), "fixed: that costs 0.0 % of the time on 4 hosts");
        // Half of the data doesn't fit, and is fetched again in each epoch, in 5 s.
        assert_eq!(of(ShardHost { cache: Some(GB / 2), ..HOST }).visits, Visits::Fixed);
        let choice = choose_visits(&hop(), &LOAD, (64, 4), &[]);
        assert_eq!(choice.to_string(), "fixed: no host is known that waits for it");
    }

    #[test]
    fn one_host_fetches_all_shards_either_way() {
        let slow = ShardHost { download: Some(GB / 128), ..HOST };
        let reason = VisitsReason::Cost { thousandths: 0, hosts: 1 };
        let fixed = VisitsChoice { visits: Visits::Fixed, reason };
        assert_eq!(choose_visits(&hop(), &LOAD, (64, 1), &[slow]), fixed);
        let small = Load { rows: 120, bytes: 4000, trials: 1, flops: 600, ..LOAD };
        assert_eq!(choose_visits(&hop(), &small, (1, 30), &[slow]), fixed);
    }

    #[test]
    fn they_are_free_where_hosts_would_wait_for_shards() {
        // 128 s for all data, in the first epoch of four: 64 s more of 256.
        let slow = ShardHost { download: Some(GB / 128), ..HOST };
        let reason = VisitsReason::Cost { thousandths: 250, hosts: 4 };
        assert_eq!(of(slow), VisitsChoice { visits: Visits::Free, reason });
        let text = "free: fixed ones would cost 25.0 % of the time on 4 hosts, most of it waits for shards";
        assert_eq!(of(slow).to_string(), text);
        // In each epoch, where next to nothing is kept.
        let reason = VisitsReason::Cost { thousandths: 906, hosts: 4 };
        assert_eq!(of(ShardHost { cache: Some(GB / 16), ..slow }).reason, reason);
        // Of three shards one is the next, and one is trained.
        let small = ShardHost { cache: Some(GB / 64 * 3), ..HOST };
        assert_eq!(of(small).reason, VisitsReason::SmallCache);
        // Of forty epochs the first is a small part, of 2.5 %; of four hundred it is 0.2 %.
        let long = |epochs| choose_visits(&hop(), &LOAD, (64, epochs), &[slow; 4]);
        assert_eq!(long(40).reason, VisitsReason::Cost { thousandths: 25, hosts: 4 });
        assert_eq!(long(400).visits, Visits::Fixed);
        // A host with a slow line among many that are fast stands for its part.
        let mut hosts = vec![HOST; 99];
        hosts.push(slow);
        assert_eq!(choose_visits(&hop(), &LOAD, (64, 4), &hosts).visits, Visits::Fixed);
    }

    #[test]
    fn what_follows_the_fleet_anyway_is_free_and_a_job_file_has_the_last_word() {
        let choose = |placement: &PlacementSpec| {
            let slots = ShardHost { slots: 20, ..HOST };
            choose_visits(placement, &LOAD, (64, 4), &[slots; 4])
        };
        let replicas = PlacementSpec { replicas: Replicas::Fixed(2), ..hop() };
        assert_eq!(choose(&replicas).reason, VisitsReason::Replicas);
        let merge = PlacementSpec::new(OrderChoice::Merge, true, 1);
        assert_eq!(choose(&merge).reason, VisitsReason::Merge);
        let auto = PlacementSpec::new(OrderChoice::Auto, true, 1);
        let reason = VisitsReason::FewTrials { trials: 32, slots: 80 };
        assert_eq!(choose(&auto), VisitsChoice { visits: Visits::Free, reason });
        let never = PlacementSpec { merge_below: 0, ..auto.clone() };
        assert_eq!(choose(&never).visits, Visits::Fixed);
        for visits in [Visits::Fixed, Visits::Free] {
            let given = PlacementSpec { visits: Some(visits), ..auto.clone() };
            let reason = VisitsReason::Given;
            assert_eq!(choose(&given), VisitsChoice { visits, reason });
        }
    }

    #[test]
    fn what_follows_the_fleet_is_named() {
        let spec = |text: &str| {
            let file = format!(
                "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
                 hidden = [4]\n[training]\nepochs = 1\noptimizer = \"sgd\"\n{text}"
            );
            jobfile::parse(&file).unwrap()
        };
        let of = |text: &str, visits| fleet_dependences(&spec(text), visits);
        assert_eq!(of("", Visits::Fixed), []);
        assert_eq!(of("", Visits::Free), [FleetDependence::Visits]);
        let fast = "[placement]\nreproducible = false\n";
        assert_eq!(of(fast, Visits::Fixed), [FleetDependence::Arithmetic]);
        assert_eq!(of(fast, Visits::Free), [], "nobody asked for it");
        let timed = "[search]\nwall_time = \"1h\"\n";
        assert_eq!(of(timed, Visits::Fixed), [FleetDependence::WallTime]);
        let pinned = "[placement]\nreplicas = 1\n";
        assert_eq!(of(pinned, Visits::Fixed), []);
        let sized = [FleetDependence::Visits, FleetDependence::ShardSizes];
        assert_eq!(of(pinned, Visits::Free), sized);
    }
}
