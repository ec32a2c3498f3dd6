//! How many shards a job's data is cut into, and how its rows are shared out among them: what
//! `shards = "auto"` and `shard_sizes = "speed"` come to. The command that submits and the simulator ask the
//! same functions.
//!
//! ```text
//!   wanted   two for each slot that can be busy at once, no more than 64 where any host may hold any shard
//!   no more  than leave a hop 1 s of training, and a quarter of the time that its checkpoint is on its way
//!   no fewer than 4
//!   no fewer than keep a shard under 256 MiB, and under a quarter of the smallest cache
//!   no more  than leave a shard 4 batches
//! ```
//!
//! Each line goes before those above it. Hops that are short beside their checkpoints don't cost what they
//! seem to: a host gets several of one trial under one lease. So bytes bound the number from above, and don't
//! decide it alone.

use crate::search::Trial;
use sojourn_model::{ModelError, optimizer_slots, validate};
use sojourn_protocol::spec::Replicas;
use std::fmt;

/// Shards for each slot that can be busy at once.
const FOR_A_SLOT: u64 = 2;
/// More bring nothing where any host may hold any shard: what is left of a trial at the end is short then.
const ENOUGH: u64 = 64;
/// Fewer leave little to share out, whatever hops cost.
const FEWEST: u64 = 4;
/// What a hop costs beside its bytes is little beside this. Microseconds.
const SHORTEST_HOP: u64 = 1_000_000;
/// A hop trains for as long as its checkpoint is on its way, over this.
const OF_ITS_WAY: u64 = 4;
/// Bytes of a shard: it is fetched before it is trained on, and lies in memory then.
const LARGEST_SHARD: u64 = 256 << 20;
/// So many shards fit in the smallest cache.
const IN_A_CACHE: u64 = 4;
/// Batches of a shard.
const LEAST_BATCHES: u64 = 4;
/// The most that there may be.
pub const MOST_SHARDS: u32 = 65_536;

/// Training takes about three forward passes.
const PASSES: u64 = 3;
/// Of a number, in shards and checkpoints.
const BYTES: u128 = 4;

/// Slots, and their operations a second, where no host is known.
const UNKNOWN_SLOTS: u64 = 8;
const UNKNOWN_FLOPS: u64 = 50_000_000_000;
/// Bytes a second of a line of which nothing is known.
const UNKNOWN_LINE: u64 = 125_000_000;

/// What a job is, as far as its shards depend on it. Means are over its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Training rows.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Trials.
    pub trials: u64,
    /// Rows of the largest batch.
    pub batch: u64,
    /// Operations that training on one row takes, in the mean.
    pub flops: u64,
    /// Bytes of a checkpoint, in the mean.
    pub checkpoint: u64,
    /// Hosts that keep each shard and train it alone; none: any host fetches any.
    pub replicas: Option<u32>,
}

impl Load {
    /// What a job's trials come to over rows of that shape.
    ///
    /// # Errors
    /// Where a trial's model can't be built for them.
    pub fn of(
        trials: &[Trial],
        shape: &[u32],
        outputs: u32,
        rows: u64,
        replicas: Replicas,
    ) -> Result<Self, ModelError> {
        let (mut flops, mut checkpoints, mut batch) = (0u128, 0u128, 1);
        for trial in trials {
            let network = validate(&trial.config, shape, outputs)?;
            let state = optimizer_slots(&trial.config.training.optimizer).len();
            let copies = 1 + u128::try_from(state).unwrap_or(0);
            flops += u128::from(network.flops_per_row()) * u128::from(PASSES);
            checkpoints += u128::from(network.parameter_count()) * BYTES * copies;
            batch = batch.max(u64::from(trial.config.training.batch_size));
        }
        let count = u128::try_from(trials.len()).unwrap_or(1).max(1);
        let mean = |sum: u128| u64::try_from(sum / count).unwrap_or(u64::MAX);
        let numbers = shape.iter().fold(1, |all: u128, side| all.saturating_mul((*side).into()));
        let bytes = numbers.saturating_add(1).saturating_mul(BYTES).saturating_mul(rows.into());
        Ok(Self {
            rows,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            trials: u64::try_from(trials.len()).unwrap_or(u64::MAX),
            batch,
            flops: mean(flops),
            checkpoint: mean(checkpoints),
            replicas: match replicas {
                Replicas::Demand => None,
                Replicas::Fixed(replicas) => Some(replicas),
            },
        })
    }
}

/// A host, as far as shards depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShardHost {
    /// Units at once.
    pub slots: u32,
    /// Operations a second that all slots together reach in training; 0: unknown.
    pub flops: u64,
    /// Bytes a second from the server.
    pub download: Option<u64>,
    /// Bytes a second to it.
    pub upload: Option<u64>,
    /// Bytes that its cache may hold.
    pub cache: Option<u64>,
}

/// What the number of shards follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Two for each slot.
    Slots,
    /// Two for each trial: there are fewer than slots.
    Trials,
    /// More bring nothing.
    Enough,
    /// More would make hops too short for what they cost.
    Hops,
    /// Fewer would leave too little to share out.
    Fewest,
    /// Fewer would be too large.
    Size,
    /// Fewer wouldn't fit in the smallest cache.
    Cache,
    /// More would be of too few batches.
    Batches,
}

/// A number of shards, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardCount {
    /// How many.
    pub shards: u32,
    /// Why not more, or not fewer.
    pub reason: Reason,
    /// Hosts that it was chosen for; 0: none were known.
    pub hosts: u64,
    /// Their slots, or as many as were supposed.
    pub slots: u64,
    /// Microseconds of a hop, on the mean of all slots.
    pub hop: u64,
    /// Bytes of a checkpoint.
    pub checkpoint: u64,
}

/// Chooses the number of shards.
#[must_use]
pub fn shard_count(load: &Load, hosts: &[ShardHost]) -> ShardCount {
    let hosts: Vec<&ShardHost> = hosts.iter().filter(|host| host.slots > 0).collect();
    let known: u64 = hosts.iter().map(|host| u64::from(host.slots)).sum();
    let slots = if hosts.is_empty() { UNKNOWN_SLOTS } else { known };
    let epoch = epoch_micros(load, &hosts);
    let mut choice = wanted(load, slots);
    // Each line goes before those above it.
    let least = SHORTEST_HOP.saturating_add(way_micros(load, &hosts) / OF_ITS_WAY);
    choice.no_more(epoch / least, Reason::Hops);
    choice.no_fewer(FEWEST, Reason::Fewest);
    choice.no_fewer(load.bytes.div_ceil(LARGEST_SHARD), Reason::Size);
    choice.no_fewer(load.rows.div_ceil(u64::from(u32::MAX)), Reason::Size);
    if let Some(cache) = hosts.iter().filter_map(|host| host.cache).filter(|of| *of > 0).min() {
        let fits = load.bytes.saturating_mul(IN_A_CACHE).div_ceil(cache);
        choice.no_fewer(fits, Reason::Cache);
    }
    let rows = load.batch.max(1).saturating_mul(LEAST_BATCHES);
    choice.no_more((load.rows / rows).max(1), Reason::Batches);
    choice.no_more(u64::from(MOST_SHARDS), Reason::Enough);
    ShardCount {
        shards: u32::try_from(choice.shards).unwrap_or(MOST_SHARDS),
        reason: choice.reason,
        hosts: u64::try_from(hosts.len()).unwrap_or(u64::MAX),
        slots,
        hop: epoch / choice.shards.max(1),
        checkpoint: load.checkpoint,
    }
}

struct Chosen {
    shards: u64,
    reason: Reason,
}

impl Chosen {
    fn no_more(&mut self, most: u64, reason: Reason) {
        if self.shards > most {
            *self = Self { shards: most, reason };
        }
    }

    fn no_fewer(&mut self, least: u64, reason: Reason) {
        if self.shards < least {
            *self = Self { shards: least, reason };
        }
    }
}

/// As many as keep all busy that can be: where hosts keep shards of their own, each of them wants some.
fn wanted(load: &Load, slots: u64) -> Chosen {
    let Some(replicas) = load.replicas else {
        let busy = slots.min(load.trials.max(1));
        let reason = if load.trials < slots { Reason::Trials } else { Reason::Slots };
        let mut choice = Chosen { shards: busy.saturating_mul(FOR_A_SLOT), reason };
        choice.no_more(ENOUGH, Reason::Enough);
        return choice;
    };
    let shards = slots.saturating_mul(FOR_A_SLOT).div_ceil(u64::from(replicas.max(1)));
    Chosen { shards, reason: Reason::Slots }
}

/// An epoch of a trial, on the mean of all slots.
fn epoch_micros(load: &Load, hosts: &[&ShardHost]) -> u64 {
    let known: Vec<_> = hosts.iter().filter(|host| host.flops > 0).collect();
    let slots: u128 = known.iter().map(|host| u128::from(host.slots)).sum();
    let flops: u128 = known.iter().map(|host| u128::from(host.flops)).sum();
    let speed = flops.checked_div(slots).unwrap_or(u128::from(UNKNOWN_FLOPS)).max(1);
    let work = u128::from(load.rows).saturating_mul(u128::from(load.flops));
    u64::try_from(work.saturating_mul(1_000_000) / speed).unwrap_or(u64::MAX)
}

/// A checkpoint's way from a host to the server and on to another one, on middling lines.
fn way_micros(load: &Load, hosts: &[&ShardHost]) -> u64 {
    let takes = |line: fn(&ShardHost) -> Option<u64>| {
        let rate = middle(hosts.iter().map(|host| line(host).unwrap_or(UNKNOWN_LINE)).collect());
        let micros = u128::from(load.checkpoint) * 1_000_000 / u128::from(rate.max(1));
        u64::try_from(micros).unwrap_or(u64::MAX)
    };
    takes(|host| host.upload).saturating_add(takes(|host| host.download))
}

fn middle(mut rates: Vec<u64>) -> u64 {
    rates.sort_unstable();
    rates.get(rates.len() / 2).copied().unwrap_or(UNKNOWN_LINE)
}

impl fmt::Display for ShardCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        write!(out, "{}: ", counted(self.shards.into(), "shard"))?;
        match self.hosts {
            0 => write!(out, "no host is known yet")?,
            hosts if hosts == self.slots => write!(out, "{}", counted(hosts, "host"))?,
            hosts => {
                write!(out, "{} with {}", counted(hosts, "host"), counted(self.slots, "slot"))?;
            }
        }
        let (hop, bytes) = (time(self.hop), size(self.checkpoint));
        let why = match self.reason {
            Reason::Slots => "two for each slot",
            Reason::Trials => "two for each trial, of which there are fewer than slots",
            Reason::Enough => "more would bring nothing",
            Reason::Hops => "more would make hops too short for what they cost",
            Reason::Fewest => "fewer would leave too little to share out",
            Reason::Size => "fewer would be too large to fetch and to hold in memory",
            Reason::Cache => "fewer would be too large for the smallest cache",
            Reason::Batches => "more would be of fewer than four batches",
        };
        write!(out, "; a hop takes about {hop}, moves 2 x {bytes}; {why}")
    }
}

fn time(micros: u64) -> String {
    match micros {
        0..1_000 => "1 ms".into(),
        1_000..1_000_000 => format!("{} ms", micros / 1_000),
        1_000_000..120_000_000 => format!("{} s", micros / 1_000_000),
        120_000_000..7_200_000_000 => format!("{} min", micros / 60_000_000),
        _ => format!("{} h", micros / 3_600_000_000),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

/// The nearest whole rows by weight, in order, none without a row where there are as many; equal shares where no weight is
/// above 0.
#[must_use]
pub fn shares(rows: u64, weights: &[u64]) -> Vec<u64> {
    let count = u64::try_from(weights.len()).unwrap_or(u64::MAX);
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let spare = rows.saturating_sub(count);
    let (mut sum, mut before) = (0u128, 0);
    let mut share = |weight: u64, of: u128| {
        sum += u128::from(weight);
        let of = of.max(1);
        let until = (u128::from(spare).saturating_mul(sum) + of / 2) / of;
        let until = u64::try_from(until).unwrap_or(spare).min(spare);
        let share = until - before + 1;
        before = until;
        share
    };
    match all {
        0 => weights.iter().map(|_| share(1, u128::from(count))).collect(),
        all => weights.iter().map(|weight| share(*weight, all)).collect(),
    }
}

/// Rows of each of so many shards, in proportion to the speeds of the hosts that will keep them: each host as many
/// as the others, or one more. None where hosts are alike, as far as is known.
#[must_use]
pub fn by_speed(rows: u64, shards: u32, hosts: &[ShardHost]) -> Option<Vec<u64>> {
    let hosts = hosts.iter().filter(|host| host.slots > 0 && host.flops > 0);
    let mut speeds: Vec<u64> = hosts.map(|host| host.flops).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    // Fewer shards than hosts: the fastest keep them.
    speeds.truncate(usize::try_from(shards).unwrap_or(usize::MAX));
    if speeds.first() == speeds.last() || rows < u64::from(shards) {
        return None;
    }
    let count = u32::try_from(speeds.len()).unwrap_or(u32::MAX);
    let mut weights = Vec::new();
    for (place, speed) in (0u32..).zip(speeds) {
        let own = shards / count + u32::from(place < shards % count);
        weights.extend((0..own).map(|_| speed / u64::from(own.max(1))));
    }
    Some(shares(rows, &weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    /// 50,000 images, 4 GFLOPs each, checkpoints of 25 MB.
    const IMAGES: Load = Load {
        rows: 50_000,
        bytes: GB,
        trials: 64,
        batch: 32,
        flops: 4 * GB,
        checkpoint: 25_000_000,
        replicas: None,
    };

    fn hosts(count: usize, slots: u32) -> Vec<ShardHost> {
        let line = Some(12_500_000);
        let flops = 4_000 * GB * u64::from(slots);
        vec![ShardHost { slots, flops, download: line, upload: line, cache: None }; count]
    }

    fn of(load: Load, hosts: &[ShardHost]) -> (u32, Reason) {
        let count = shard_count(&load, hosts);
        (count.shards, count.reason)
    }

    #[test]
    fn slots_are_kept_busy_as_far_as_there_are_trials() {
        assert_eq!(of(IMAGES, &hosts(6, 1)), (12, Reason::Slots));
        assert_eq!(of(IMAGES, &hosts(3, 2)), (12, Reason::Slots));
        assert_eq!(of(Load { trials: 5, ..IMAGES }, &hosts(30, 1)), (10, Reason::Trials));
        let long = Load { rows: 5_000_000, ..IMAGES };
        assert_eq!(of(long, &hosts(10_000, 1)), (64, Reason::Enough));
        let kept = Load { replicas: Some(3), ..long };
        assert_eq!(of(kept, &hosts(300, 1)), (200, Reason::Slots), "each host keeps two");
    }

    #[test]
    fn hops_are_worth_their_way() {
        // 50 s an epoch, and 4 s both ways.
        assert_eq!(of(IMAGES, &hosts(32, 1)), (25, Reason::Hops));
        let heavy = Load { checkpoint: 100 * GB, flops: 1_000, ..IMAGES };
        assert_eq!(of(heavy, &hosts(32, 1)), (4, Reason::Fewest));
    }

    #[test]
    fn without_hosts_or_with_little_data_it_is_sane() {
        assert_eq!(of(IMAGES, &[]), (16, Reason::Slots));
        assert_eq!(of(IMAGES, &[ShardHost::default()]), (16, Reason::Slots), "none with a slot");
        let digits = Load {
            rows: 1438,
            bytes: 1438 * 264,
            trials: 12,
            flops: 60_000,
            checkpoint: 120_000,
            ..IMAGES
        };
        assert_eq!(of(digits, &[]), (4, Reason::Fewest));
        assert_eq!(of(digits, &hosts(200, 8)), (4, Reason::Fewest));
        assert_eq!(of(Load { rows: 300, ..digits }, &[]), (2, Reason::Batches));
        assert_eq!(of(Load { rows: 3, ..digits }, &[]), (1, Reason::Batches));
    }

    #[test]
    fn shards_fit_in_memory_and_caches() {
        let huge = Load { bytes: 1_000 * GB, rows: 50_000_000, ..IMAGES };
        assert_eq!(of(huge, &hosts(8, 1)), (3726, Reason::Size));
        let mut small = hosts(8, 1);
        small[3].cache = Some(100_000_000);
        assert_eq!(of(IMAGES, &small), (40, Reason::Cache));
    }

    #[test]
    fn it_says_why() {
        assert_eq!(
            shard_count(&IMAGES, &hosts(3, 2)).to_string(),
            "12 shards: 3 hosts with 6 slots; a hop takes about 4 s, moves 2 x 25 MB; two for each slot"
        );
        let none = shard_count(&Load { rows: 3, ..IMAGES }, &[]).to_string();
        assert!(none.starts_with("1 shard: no host is known yet; "), "{none}");
    }

    #[test]
    fn rows_go_by_speed() {
        let host = |flops| ShardHost { slots: 1, flops, ..ShardHost::default() };
        let all = [host(10), host(30), host(20)];
        assert_eq!(by_speed(606, 6, &all).unwrap(), [151, 151, 101, 101, 51, 51]);
        assert_eq!(by_speed(102, 2, &all).unwrap(), [61, 41], "the fastest keep them");
        assert_eq!(
            by_speed(606, 4, &all).unwrap(),
            [152, 151, 202, 101],
            "the fastest has one more"
        );
        assert_eq!(by_speed(5, 6, &all), None, "too few rows");
        assert_eq!(by_speed(100, 2, &[host(10), host(10)]), None);
        assert_eq!(by_speed(100, 2, &[host(0), host(0)]), None);
        assert_eq!(shares(10, &[0, 0, 0]), [3, 4, 3]);
    }
}
