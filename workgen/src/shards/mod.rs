//! Shards of a job's data: how many (`shards = "auto"`) and of how many rows (`shard_sizes = "speed"`). The command
//! that submits and the simulator call the same functions.
//!
//! ```text
//!   wanted     two for each slot that can be busy at once; at most 64 where any host may hold any shard
//!   at most    so many that a hop trains for 1 s and for a quarter of its checkpoint's transfer time
//!   at least   4
//!   at least   so many that a shard is under 256 MiB, and under a quarter of the smallest cache
//!   at most    so many that a shard has 4 batches
//! ```
//!
//! A later line overrides those above it. Hops that are short beside their checkpoints cost less than they seem to,
//! because a host gets several of them under one lease. So the size of the checkpoint is an upper bound, and doesn't
//! decide the number alone.

mod sizes;

pub use sizes::{by_speed, rows_by_weight};

use crate::search::Trial;
use sojourn_model::{ModelError, optimizer_slots, validate};
use sojourn_protocol::{
    quantity::{Bytes, BytesPerSecond, Micros, SaturatingFrom as _, to_u64},
    spec::Replicas,
};
use std::fmt;

/// Shards for each slot that can be busy at once.
const SHARDS_PER_SLOT: u64 = 2;
/// More shards gain nothing where any host may hold any shard: the last hop of a trial is short enough.
const MAX_USEFUL_SHARDS: u64 = 64;
/// Fewer shards leave too little to distribute, whatever a hop costs.
const MIN_SHARDS: u64 = 4;
/// The shortest training time of a hop. Its fixed costs are small beside this.
const MIN_HOP_TIME: Micros = Micros::from_secs(1);
/// A hop trains for at least its checkpoint's transfer time over this.
const TRANSFER_RATIO: u64 = 4;
/// Bytes of a shard. A shard is fetched before it is trained on, and is in memory then.
const MAX_SHARD_BYTES: u64 = 256 << 20;
/// Shards that the smallest cache must hold.
pub(crate) const SHARDS_PER_CACHE: u64 = 4;
/// Batches that a shard has at least.
const MIN_BATCHES: u64 = 4;
/// The most shards that a job may have.
pub const MAX_SHARDS: u32 = 65_536;

/// Training on a row takes about as long as so many forward passes.
const FORWARD_PASSES: u64 = 3;
/// Bytes of a number, in shards and checkpoints.
const BYTES: u128 = 4;

/// Slots, where no host is known.
const DEFAULT_SLOTS: u64 = 8;
/// Operations per second of a slot, where no host is known.
const DEFAULT_FLOPS: u64 = 50_000_000_000;
/// The transfer rate of a host that hasn't measured its own.
const DEFAULT_RATE: BytesPerSecond = BytesPerSecond(125_000_000);

/// The properties of a job that its shards depend on. Means are over its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Training rows.
    pub rows: u64,
    /// Bytes of them in single precision. Where shards keep bytes they are smaller; but equal numbers are to be cut into
    /// as many shards, so that models are the same.
    pub bytes: u64,
    /// The number of trials.
    pub trials: u64,
    /// Rows of the largest batch.
    pub batch: u64,
    /// Mean operations of training that one row takes in an epoch.
    pub flops: u64,
    /// Mean bytes of a checkpoint.
    pub checkpoint: u64,
    /// Hosts that keep each shard and train it alone; none: any host fetches any.
    pub replicas: Option<u32>,
}

impl Load {
    /// The load of these trials over rows of this shape.
    ///
    /// # Errors
    /// Where a trial's model can't be built for this shape.
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
            let copies = 1 + u128::from(to_u64(state));
            let passes = u128::from(trial.config.training.local_epochs);
            flops += u128::from(network.flops_per_row()) * u128::from(FORWARD_PASSES) * passes;
            checkpoints += u128::from(network.parameter_count()) * BYTES * copies;
            batch = batch.max(u64::from(trial.config.training.batch_size));
        }
        let count = u128::from(to_u64(trials.len())).max(1);
        let mean = |sum: u128| u64::saturating_from(sum / count);
        let numbers = shape.iter().fold(1, |all: u128, side| all.saturating_mul((*side).into()));
        let bytes = numbers.saturating_add(1).saturating_mul(BYTES).saturating_mul(rows.into());
        Ok(Self {
            rows,
            bytes: u64::saturating_from(bytes),
            trials: to_u64(trials.len()),
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

/// The properties of a host that shards depend on.
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

impl ShardHost {
    /// Operations a second that all slots together reach, where it isn't known the default.
    pub(crate) fn flops_or_default(&self) -> u64 {
        let usual = DEFAULT_FLOPS.saturating_mul(self.slots.into());
        Some(self.flops).filter(|flops| *flops > 0).unwrap_or(usual)
    }

    /// Bytes a second from the server, where it isn't known the default.
    pub(crate) fn download_or_default(&self) -> u64 {
        self.download.unwrap_or(DEFAULT_RATE.0)
    }
}

/// The rule that decided the number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Two for each slot.
    Slots,
    /// Two for each trial: there are fewer than slots.
    Trials,
    /// More would gain nothing.
    Enough,
    /// More would make hops too short for what they cost.
    Hops,
    /// Fewer would leave too little to distribute.
    Fewest,
    /// Fewer would be too large.
    Size,
    /// Fewer wouldn't fit in the smallest cache.
    Cache,
    /// More would be of too few batches.
    Batches,
}

/// A number of shards, and the facts that it was chosen by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardCount {
    /// How many.
    pub shards: u32,
    /// Why not more, or not fewer.
    pub reason: Reason,
    /// Hosts that it was chosen for; 0: none were known.
    pub hosts: u64,
    /// The slots of those hosts, or the default number.
    pub slots: u64,
    /// The time of a hop, on the mean of all slots.
    pub hop: Micros,
    /// Bytes of a checkpoint.
    pub checkpoint: u64,
    /// Whether the number is chosen by rows and models alone, whatever hosts there are.
    pub is_for_any: bool,
}

/// Chooses the number of shards by rows and models alone, so that it is the same on every fleet.
#[must_use]
pub fn shard_count_for_any(load: &Load) -> ShardCount {
    ShardCount { is_for_any: true, ..shard_count(load, &[]) }
}

/// Chooses the number of shards.
#[must_use]
pub fn shard_count(load: &Load, hosts: &[ShardHost]) -> ShardCount {
    let hosts: Vec<&ShardHost> = hosts.iter().filter(|host| host.slots > 0).collect();
    let known: u64 = hosts.iter().map(|host| u64::from(host.slots)).sum();
    let slots = if hosts.is_empty() { DEFAULT_SLOTS } else { known };
    let epoch = epoch_time(load, &hosts);
    let mut choice = wanted(load, slots);
    // A later line overrides those above it.
    let least = MIN_HOP_TIME + transfer_time(load, &hosts) / TRANSFER_RATIO;
    choice.no_more(epoch.0 / least.0, Reason::Hops);
    choice.no_fewer(MIN_SHARDS, Reason::Fewest);
    choice.no_fewer(load.bytes.div_ceil(MAX_SHARD_BYTES), Reason::Size);
    choice.no_fewer(load.rows.div_ceil(u64::from(u32::MAX)), Reason::Size);
    if let Some(cache) = hosts.iter().filter_map(|host| host.cache).filter(|of| *of > 0).min() {
        let fits = load.bytes.saturating_mul(SHARDS_PER_CACHE).div_ceil(cache);
        choice.no_fewer(fits, Reason::Cache);
    }
    let rows = load.batch.max(1).saturating_mul(MIN_BATCHES);
    choice.no_more((load.rows / rows).max(1), Reason::Batches);
    choice.no_more(u64::from(MAX_SHARDS), Reason::Enough);
    ShardCount {
        shards: u32::saturating_from(choice.shards),
        reason: choice.reason,
        hosts: to_u64(hosts.len()),
        slots,
        hop: epoch / choice.shards.max(1),
        checkpoint: load.checkpoint,
        is_for_any: false,
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

/// As many shards as keep all slots busy. Where hosts keep shards of their own, each host needs some.
fn wanted(load: &Load, slots: u64) -> Chosen {
    let Some(replicas) = load.replicas else {
        let busy = slots.min(load.trials.max(1));
        let reason = if load.trials < slots { Reason::Trials } else { Reason::Slots };
        let mut choice = Chosen { shards: busy.saturating_mul(SHARDS_PER_SLOT), reason };
        choice.no_more(MAX_USEFUL_SHARDS, Reason::Enough);
        return choice;
    };
    let shards = slots.saturating_mul(SHARDS_PER_SLOT).div_ceil(u64::from(replicas.max(1)));
    Chosen { shards, reason: Reason::Slots }
}

/// The time of a trial's epoch, on the mean of all slots.
fn epoch_time(load: &Load, hosts: &[&ShardHost]) -> Micros {
    let known: Vec<_> = hosts.iter().filter(|host| host.flops > 0).collect();
    let slots: u128 = known.iter().map(|host| u128::from(host.slots)).sum();
    let flops: u128 = known.iter().map(|host| u128::from(host.flops)).sum();
    let speed = flops.checked_div(slots).unwrap_or(u128::from(DEFAULT_FLOPS)).max(1);
    let work = u128::from(load.rows).saturating_mul(u128::from(load.flops));
    Micros(u64::saturating_from(work.saturating_mul(1_000_000) / speed))
}

/// The time of a checkpoint's transfer from a host to the server and on to another one, at the median rates.
fn transfer_time(load: &Load, hosts: &[&ShardHost]) -> Micros {
    let takes = |rate: fn(&ShardHost) -> Option<u64>| {
        let rates = hosts.iter().map(|host| rate(host).map_or(DEFAULT_RATE, BytesPerSecond));
        Bytes(load.checkpoint) / median(rates.collect())
    };
    takes(|host| host.upload) + takes(|host| host.download)
}

fn median(mut rates: Vec<BytesPerSecond>) -> BytesPerSecond {
    rates.sort_unstable();
    rates.get(rates.len() / 2).copied().unwrap_or(DEFAULT_RATE)
}

impl fmt::Display for ShardCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        write!(out, "{}: ", counted(self.shards.into(), "shard"))?;
        match self.hosts {
            _ if self.is_for_any => write!(out, "by rows and models alone")?,
            0 => write!(out, "no host is known yet")?,
            hosts if hosts == self.slots => write!(out, "{}", counted(hosts, "host"))?,
            hosts => {
                write!(out, "{} with {}", counted(hosts, "host"), counted(self.slots, "slot"))?;
            }
        }
        let (hop, bytes) = (time(self.hop.0), size(self.checkpoint));
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
    fn there_are_two_shards_for_each_slot_that_trials_can_keep_busy() {
        assert_eq!(of(IMAGES, &hosts(6, 1)), (12, Reason::Slots));
        assert_eq!(of(IMAGES, &hosts(3, 2)), (12, Reason::Slots));
        assert_eq!(of(Load { trials: 5, ..IMAGES }, &hosts(30, 1)), (10, Reason::Trials));
        let long = Load { rows: 5_000_000, ..IMAGES };
        assert_eq!(of(long, &hosts(10_000, 1)), (64, Reason::Enough));
        let kept = Load { replicas: Some(3), ..long };
        assert_eq!(of(kept, &hosts(300, 1)), (200, Reason::Slots), "each host keeps two");
    }

    #[test]
    fn hops_train_for_a_ratio_of_their_transfer_time() {
        // 50 s an epoch, and 4 s both ways.
        assert_eq!(of(IMAGES, &hosts(32, 1)), (25, Reason::Hops));
        let heavy = Load { checkpoint: 100 * GB, flops: 1_000, ..IMAGES };
        assert_eq!(of(heavy, &hosts(32, 1)), (4, Reason::Fewest));
    }

    #[test]
    fn without_hosts_or_with_little_data_the_number_is_bounded() {
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
    fn a_count_is_shown_with_its_reason() {
        assert_eq!(
            shard_count(&IMAGES, &hosts(3, 2)).to_string(),
            "12 shards: 3 hosts with 6 slots; a hop takes about 4 s, moves 2 x 25 MB; two for each slot"
        );
        let none = shard_count(&Load { rows: 3, ..IMAGES }, &[]).to_string();
        assert!(none.starts_with("1 shard: no host is known yet; "), "{none}");
    }
}
