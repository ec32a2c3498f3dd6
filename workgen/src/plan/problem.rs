//! A planning problem: trials, machines, and which machine may train which shard.
//!
//! Everything is a whole number: microseconds, or the units of an open-shop file. Ids are indices.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, mul_div, mul_div_ceil},
    spec::Spread,
};

/// The pace of a machine at which a hop takes exactly its work; a machine of pace `2 * PACE_ONE` is half as
/// fast.
pub const PACE_ONE: u64 = 1 << 16;

/// The longest time that a problem may take on its slowest machines, one hop after the other. So no sum
/// over a problem overflows, weighted or not.
pub const MAX_TOTAL_TIME: u64 = 1 << 50;

/// A problem. Each slot of a host is one machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// By trial.
    pub trials: Vec<PlanTrial>,
    /// By machine.
    #[serde(rename = "places")]
    pub machines: Vec<Machine>,
    /// By shard: the machines that may train it; `None`: all.
    pub holders: Vec<Option<Vec<u32>>>,
    /// Each trial stays on machines of one class.
    #[serde(default)]
    pub stays_in_class: bool,
    /// The order of the trials of a machine, where moving them takes time.
    #[serde(default)]
    pub spread: Spread,
}

/// One trial: what it still has to visit, and how long that takes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanTrial {
    /// Microseconds from now until its checkpoint is at the server.
    pub free_at: u64,
    /// The trial's current epoch, by which trials take turns.
    #[serde(default)]
    pub epoch: u32,
    /// Shards left in its current epoch.
    pub open: Vec<u32>,
    /// All visits that it has left, epoch after epoch, where their order is fixed; empty: any order within an epoch.
    #[serde(default)]
    pub order: Vec<u32>,
    /// Whole epochs (all shards) after that.
    pub epochs_after: u32,
    /// By shard: microseconds of a hop at pace one.
    pub work: Vec<u64>,
    /// By machine: a hop takes `work * pace / PACE_ONE` microseconds, rounded up. Empty: [`PACE_ONE`]
    /// everywhere.
    pub pace: Vec<u64>,
    /// The machine that holds its checkpoint, where it has one, and microseconds from now until its next hop may begin
    /// there: it needn't wait for the checkpoint to be at the server.
    #[serde(default)]
    pub at: Option<(u32, u64)>,
    /// Bytes of its checkpoint, which goes to the server after each epoch and before another machine goes on with it;
    /// 0 where that takes no time worth planning for.
    #[serde(default)]
    pub checkpoint_bytes: u64,
    /// The class that it is in already, where trials stay in one.
    #[serde(default)]
    pub class: Option<u32>,
}

impl PlanTrial {
    /// Microseconds from now until its next hop may begin where that is soonest.
    #[must_use]
    pub const fn begins_at(&self) -> u64 {
        match self.at {
            Some((_, here_at)) if here_at < self.free_at => here_at,
            Some(_) | None => self.free_at,
        }
    }

    /// Is the order of its visits fixed?
    #[must_use]
    pub const fn has_fixed_order(&self) -> bool {
        !self.order.is_empty()
    }

    /// The shard of a visit, counted over all that it has left, where the order is fixed.
    pub(super) fn ordered(&self, visit: usize) -> Option<u32> {
        self.order.get(visit).copied()
    }

    /// Is its order free, or each open shard once, and then each of so many once an epoch?
    fn has_order_of(&self, shards: usize) -> bool {
        if self.order.is_empty() {
            return true;
        }
        let after = self.epochs_after as usize;
        let (now, later) = self.order.split_at(self.open.len().min(self.order.len()));
        let is_once = |visits: &[u32], of: &mut dyn Iterator<Item = u32>| {
            let mut visits = visits.to_vec();
            visits.sort_unstable();
            visits.into_iter().eq(of)
        };
        let mut open = self.open.clone();
        open.sort_unstable();
        is_once(now, &mut open.into_iter())
            && later.len() == after.saturating_mul(shards)
            && (shards == 0
                || later.chunks(shards).all(|epoch| is_once(epoch, &mut (0..id(shards)))))
    }

    /// Does it take time to go from machine to machine?
    #[must_use]
    pub const fn migrates(&self) -> bool {
        self.checkpoint_bytes > 0
    }
}

/// One machine: where one hop runs at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Microseconds from now until it is free.
    pub free_at: u64,
    /// Microseconds from now until its line has sent what it sends at present.
    #[serde(default)]
    pub line_free_at: u64,
    /// Microseconds that it rests between two hops.
    pub latency: u64,
    /// Machines of one class calculate alike, bit for bit.
    #[serde(default)]
    pub class: u32,
    /// The machine's line to the server.
    #[serde(default)]
    pub line: Line,
}

/// The line between a machine and the server. By default bytes take no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Bytes per second to the server; 0: unlimited.
    pub upload: u64,
    /// Bytes per second from the server; 0: unlimited.
    pub download: u64,
    /// Machines that share it, as the slots of a host do; 0 is one.
    pub machines: u32,
}

impl Line {
    /// Microseconds that so many bytes take to the server.
    #[must_use]
    pub fn send(&self, bytes: u64) -> u64 {
        transfer(bytes, self.upload)
    }

    /// Microseconds that so many bytes take from the server.
    #[must_use]
    pub fn fetch(&self, bytes: u64) -> u64 {
        transfer(bytes, self.download)
    }

    /// Microseconds between two uploads of so many bytes by one machine, while the others send as much.
    #[must_use]
    pub fn send_interval(&self, bytes: u64) -> u64 {
        self.send(bytes).saturating_mul(self.machines.max(1).into())
    }
}

fn transfer(bytes: u64, per_second: u64) -> u64 {
    if per_second == 0 { 0 } else { mul_div(bytes, 1_000_000, per_second) }
}

/// Why a problem isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ProblemError {
    #[error("trial {trial} has {found} entries of `{list}`, it needs {needed}")]
    Length { trial: usize, list: &'static str, found: usize, needed: usize },
    #[error("trial {trial} has shard {shard} open, which is no shard or stands twice")]
    Open { trial: usize, shard: u32 },
    #[error("the fixed order of trial {trial} isn't what it has left, epoch after epoch")]
    Order { trial: usize },
    #[error("shard {shard} is held by machine {machine}, which is no machine or stands twice")]
    Holder { shard: usize, machine: u32 },
    #[error("no machine may train shard {shard}, and trial {trial} needs it")]
    Nowhere { shard: usize, trial: usize },
    #[error("trial {trial} finds no class whose machines may train all that it has left")]
    NoClass { trial: usize },
    #[error("all hops one after the other take longer than {MAX_TOTAL_TIME}")]
    TooLong,
    #[error("more than 2^31 trials, machines, shards or hops")]
    TooMany,
}

impl Problem {
    /// An open shop: `durations` by job (trial), then by machine (a machine with one pinned shard). Rows
    /// must be of one length; [`Problem::check`] says so where they aren't.
    #[must_use]
    pub fn of_open_shop(durations: &[Vec<u64>]) -> Self {
        let machines = durations.first().map_or(0, Vec::len);
        let ids = 0..id(machines);
        let trials = durations.iter().map(|row| PlanTrial {
            open: ids.clone().collect(),
            work: row.clone(),
            ..PlanTrial::default()
        });
        Self {
            trials: trials.collect(),
            machines: vec![Machine::default(); machines],
            holders: ids.clone().map(|machine| Some(vec![machine])).collect(),
            ..Self::default()
        }
    }

    /// How long a hop takes, where the ids are of this problem; else 0.
    #[must_use]
    pub fn time(&self, trial: u32, shard: u32, machine: u32) -> u64 {
        let Some(trial) = self.trials.get(trial as usize) else { return 0 };
        let work = trial.work.get(shard as usize).copied().unwrap_or(0);
        match trial.pace.get(machine as usize) {
            Some(&pace) if pace != PACE_ONE => scaled(work, pace),
            _ => work,
        }
    }

    /// May this machine train this shard?
    #[must_use]
    pub fn may_train(&self, shard: u32, machine: u32) -> bool {
        match self.holders.get(shard as usize) {
            Some(Some(holders)) => holders.contains(&machine),
            Some(None) => (machine as usize) < self.machines.len(),
            None => false,
        }
    }

    /// Hops of all trials in all epochs.
    #[must_use]
    pub fn hops(&self) -> u64 {
        let shards = self.holders.len() as u64;
        let of = |trial: &PlanTrial| {
            u64::from(trial.epochs_after)
                .saturating_mul(shards)
                .saturating_add(trial.open.len() as u64)
        };
        self.trials.iter().fold(0, |sum, trial| sum.saturating_add(of(trial)))
    }

    /// Checks that the problem is complete and consistent. Planners take only problems that pass.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ProblemError> {
        let (shards, machines) = (self.holders.len(), self.machines.len());
        let most = 1_u64 << 31;
        let counts = [self.trials.len() as u64, shards as u64, machines as u64, self.hops()];
        if counts.iter().any(|count| *count > most) {
            return Err(ProblemError::TooMany);
        }
        for (shard, holders) in self.holders.iter().enumerate() {
            let mut seen = vec![false; machines];
            for &machine in holders.iter().flatten() {
                match seen.get_mut(machine as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Err(ProblemError::Holder { shard, machine }),
                }
            }
        }
        let nowhere = |shard: &usize| match self.holders.get(*shard) {
            Some(Some(holders)) => holders.is_empty(),
            _ => machines == 0,
        };
        if self.stays_in_class {
            let classes = self.machines_by_class();
            let fits = |trial: &PlanTrial| {
                classes.iter().any(|(class, machines)| self.fits_class(trial, *class, machines))
            };
            // A trial that has shards open which are none is told below.
            let sound =
                |trial: &PlanTrial| trial.open.iter().all(|shard| (*shard as usize) < shards);
            let mut trials = self.trials.iter();
            if let Some(trial) = trials.position(|trial| sound(trial) && !fits(trial)) {
                return Err(ProblemError::NoClass { trial });
            }
        }
        let mut sum = 0_u128;
        let latest = self.trials.iter().map(|trial| trial.free_at);
        let latest =
            latest.chain(self.machines.iter().map(|machine| machine.free_at)).max().unwrap_or(0);
        let latency = self.machines.iter().map(|machine| machine.latency).max().unwrap_or(0);
        for (number, trial) in self.trials.iter().enumerate() {
            let needs = |found, needed, list| {
                let wrong = ProblemError::Length { trial: number, list, found, needed };
                if found == needed { Ok(()) } else { Err(wrong) }
            };
            needs(trial.work.len(), shards, "work")?;
            if !trial.pace.is_empty() {
                needs(trial.pace.len(), machines, "pace")?;
            }
            let mut seen = vec![false; shards];
            for &shard in &trial.open {
                match seen.get_mut(shard as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Err(ProblemError::Open { trial: number, shard }),
                }
            }
            if !trial.has_order_of(shards) {
                return Err(ProblemError::Order { trial: number });
            }
            let needed = |shard: &usize| {
                trial.epochs_after > 0 || seen.get(*shard).copied().unwrap_or(false)
            };
            if let Some(shard) = (0..shards).filter(needed).find(nowhere) {
                return Err(ProblemError::Nowhere { shard, trial: number });
            }
            let pace = u128::from(trial.pace.iter().copied().max().unwrap_or(PACE_ONE));
            let epochs = u128::from(trial.epochs_after) + 1;
            let work: u128 = trial.work.iter().map(|work| u128::from(*work)).sum();
            let work = work.checked_mul(pace).and_then(|work| work.checked_mul(epochs));
            sum = work
                .and_then(|work| sum.checked_add(work / u128::from(PACE_ONE) + 1))
                .ok_or(ProblemError::TooLong)?;
        }
        sum += u128::from(latest) + u128::from(self.hops()) * (u128::from(latency) + 1);
        if sum > u128::from(MAX_TOTAL_TIME) { Err(ProblemError::TooLong) } else { Ok(()) }
    }
}

/// An index as an id; problems have fewer than 2^31 of anything.
pub(super) fn id(index: usize) -> u32 {
    u32::saturating_from(index)
}

/// `work * pace / PACE_ONE`, rounded up.
fn scaled(work: u64, pace: u64) -> u64 {
    mul_div_ceil(work, pace, PACE_ONE)
}
