//! `[placement]`: on which machines a job trains, in which order, and how it stands to other jobs.
//!
//! Fields that were added later are left out of JSON where they have their defaults. So a job that doesn't use them is
//! the same job, byte for byte, as before.

use super::{
    CpuSharePolicy, MAX_QUORUM, MergeSpec, ResidencyPolicy, VerifyChoice, dimension::is_default,
};
use crate::{
    money::{MAX_USD, MicroUsd},
    time::Millis,
};
use serde::{Deserialize, Serialize};
use std::{fmt::Display, ops::RangeInclusive};

/// The highest [`PlacementSpec::priority`]; the lowest is its negative.
pub const MAX_PRIORITY: i32 = 100;
/// The largest [`PlacementSpec::slot_share`].
pub const MAX_SLOT_SHARE: u32 = 1000;
/// The fewest [`PlacementSpec::merge_in_flight`]: with one this is hop order.
pub const MIN_MERGE_IN_FLIGHT: u32 = 2;
/// The most [`PlacementSpec::merge_in_flight`]: far more than a fleet has slots.
pub const MAX_MERGE_IN_FLIGHT: u32 = 1_000_000;
/// [`PlacementSpec::merge_in_flight`] of trials that the server merges by itself. With more, results are so stale that
/// some models learn much less in each epoch (examples/merging).
pub const DEFAULT_MERGE_IN_FLIGHT: u32 = 4;
/// The most [`PlacementSpec::replicas`].
pub const MAX_REPLICAS: u32 = 1000;
/// The most [`PlacementSpec::threads`].
pub const MAX_THREADS: u32 = 1024;
/// The most [`PlacementSpec::max_hosts`].
pub const MAX_HOSTS: u32 = 10_000_000;

/// The shortest [`PlacementSpec::deadline`].
pub const MIN_DEADLINE: Millis = Millis::from_secs(60);
/// The longest [`PlacementSpec::deadline`].
pub const MAX_DEADLINE: Millis = Millis::from_secs(366 * 24 * 3600);

/// `[placement]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// How trials and machines meet.
    pub order: OrderChoice,
    /// Pinned threads and ISA, and each trial within one numeric class (docs/internals/determinism.md).
    pub reproducible: bool,
    /// Threads of one unit where `reproducible`, at least 1; otherwise the slot decides.
    pub threads: u32,
    /// Where training shards lie.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replicas: Replicas,
    /// Units of a job are handed out before those of jobs with a lower one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// Among jobs of one priority that want more than there is, each gets slot time in proportion to it; at
    /// least 1.
    #[serde(rename = "share", default = "one", skip_serializing_if = "is_one")]
    pub slot_share: u32,
    /// The most hosts that work for the job at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hosts: Option<u32>,
    /// How results are merged, where they are. Submission writes [`MergeSpec::default`] where it isn't given and results
    /// may be merged; stored jobs without it are older and mean [`MergeSpec::UNNAMED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeSpec>,
    /// With [`OrderChoice::Auto`]: trials merge while fewer of them can go on than this many thousandths of the
    /// live slots; 0: they never do.
    #[serde(default = "half", skip_serializing_if = "is_half")]
    pub merge_below: u32,
    /// The most units of a trial in flight at a time while its results are merged; no limit where not given. Submission
    /// writes [`DEFAULT_MERGE_IN_FLIGHT`] for [`OrderChoice::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_in_flight: Option<u32>,
    /// The hosts whose results other hosts are asked to come to as well, where `reproducible`. Submission writes
    /// [`VerifyChoice::STRANGERS`] where it isn't given; stored jobs without it are older and verify nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyChoice>,
    /// How much of a shard a host trains before its result is merged.
    #[serde(default, skip_serializing_if = "is_default")]
    pub local_steps: LocalSteps,
    /// The order in which a trial visits the shards of an epoch. `sojourn submit` writes it where the job file doesn't say
    /// it; without it visits are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Visits>,
    /// The most that bought machines may cost for the job, in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<MicroUsd>,
    /// By when it is to end, from its submission. Machines are bought so that it does, as far as budgets and limits allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
    /// How its trials that run on one host divide the processor.
    #[serde(rename = "host_shares", default, skip_serializing_if = "is_default")]
    pub cpu_shares: CpuSharePolicy,
    /// On which host its trials stay, and when one moves to another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub residency: ResidencyPolicy,
}

impl PlacementSpec {
    /// How results are merged, where they are.
    #[must_use]
    pub fn merging(&self) -> MergeSpec {
        self.merge.unwrap_or(MergeSpec::UNNAMED)
    }

    /// Do trials visit their shards in an order that follows from the job alone?
    #[must_use]
    pub fn has_fixed_visits(&self) -> bool {
        self.visits == Some(Visits::Fixed)
    }

    /// May the server merge results of this job's trials: always, or once hop order doesn't keep the hosts busy?
    #[must_use]
    pub fn may_merge(&self) -> bool {
        self.order != OrderChoice::Hop && !self.has_fixed_visits() && !self.residency.keeps_trials()
    }

    /// Writes the defaults down where results may be merged and nothing says how.
    pub fn name_merging(&mut self) {
        match self.order {
            OrderChoice::Hop => {}
            OrderChoice::Merge => {
                self.merge.get_or_insert_default();
            }
            OrderChoice::Auto => {
                self.merge.get_or_insert_default();
                self.merge_in_flight.get_or_insert(DEFAULT_MERGE_IN_FLIGHT);
            }
        }
    }

    /// Is every value possible? The job file's reader says the same with line and key; this is the last word, at the
    /// server.
    ///
    /// # Errors
    /// The first key and value that isn't.
    pub fn check(&self) -> Result<(), String> {
        within("threads", self.threads, 1..=MAX_THREADS)?;
        if let Replicas::Fixed(replicas) = self.replicas {
            within("replicas", replicas, 1..=MAX_REPLICAS)?;
        }
        within("priority", self.priority, -MAX_PRIORITY..=MAX_PRIORITY)?;
        within("share", self.slot_share, 1..=MAX_SLOT_SHARE)?;
        if let Some(hosts) = self.max_hosts {
            within("max_hosts", hosts, 1..=MAX_HOSTS)?;
        }
        if self.budget.is_some_and(|budget| budget.0 == 0 || budget.0 / 1_000_000 >= MAX_USD) {
            return Err(
                "`placement.budget` has to be more than nothing and less than a billion dollars"
                    .into(),
            );
        }
        if self.deadline.is_some_and(|time| !(MIN_DEADLINE..=MAX_DEADLINE).contains(&time)) {
            return Err(format!(
                "`placement.deadline` has to be from {MIN_DEADLINE} to {MAX_DEADLINE}"
            ));
        }
        self.merging()
            .rule
            .check()
            .map_err(|fault| format!("`placement.merge.{}` {}", fault.key, fault.reason))?;
        thousandths("merge_below", self.merge_below, 0)?;
        if let Some(limit) = self.merge_in_flight {
            within("merge_in_flight", limit, MIN_MERGE_IN_FLIGHT..=MAX_MERGE_IN_FLIGHT)?;
        }
        if self.order == OrderChoice::Merge && self.has_fixed_visits() {
            return Err(FIXED_VISITS_MERGE.into());
        }
        self.cpu_shares
            .check()
            .map_err(|(key, wanted)| format!("`placement.host_shares.{key}` {wanted}"))?;
        self.residency
            .check()
            .map_err(|(key, wanted)| format!("`placement.residency.{key}` {wanted}"))?;
        self.check_residency().map_err(|reason| format!("`placement.residency` {reason}"))?;
        if let Some(VerifyChoice::All(verify)) = self.verify {
            within("verify.quorum", verify.quorum, 2..=MAX_QUORUM)?;
            thousandths("verify.rate", verify.rate, 1)?;
        }
        if self.reproducible || matches!(self.verify, None | Some(VerifyChoice::NONE)) {
            return Ok(());
        }
        Err("`placement.verify` needs `reproducible`: other arithmetic comes to other results"
            .into())
    }

    /// Does the policy of residency, where trials stay on one host, go with the rest?
    ///
    /// # Errors
    /// Why it doesn't.
    pub fn check_residency(&self) -> Result<(), &'static str> {
        match self.residency {
            ResidencyPolicy::None => Ok(()),
            _ if self.order == OrderChoice::Merge => Err(
                "doesn't go with `order = \"merge\"`: a trial that several hosts train stays on none",
            ),
            _ if self.replicas != Replicas::Demand => Err(
                "doesn't go with `replicas`: a trial that stays on a host needs all shards there",
            ),
            _ if self.max_hosts.is_some() => {
                Err("doesn't go with `max_hosts`: no plan is made, which would choose the hosts")
            }
            _ => Ok(()),
        }
    }

    /// A placement with the defaults for all else.
    #[must_use]
    pub fn new(order: OrderChoice, reproducible: bool, threads: u32) -> Self {
        Self {
            order,
            reproducible,
            threads,
            replicas: Replicas::default(),
            priority: 0,
            slot_share: 1,
            max_hosts: None,
            merge: None,
            verify: None,
            merge_below: HALF,
            merge_in_flight: None,
            local_steps: LocalSteps::default(),
            visits: None,
            budget: None,
            deadline: None,
            cpu_shares: CpuSharePolicy::Equal,
            residency: ResidencyPolicy::None,
        }
    }
}

/// `placement.order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OrderChoice {
    /// Hop order (MOP): sequential SGD semantics.
    Hop,
    /// Hop order while it keeps the hosts busy, else merging.
    Auto,
    /// Merging, always: several shards of a trial train at once, and results are merged as they arrive.
    Merge,
}

/// `placement.local_steps`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LocalSteps {
    /// All of a shard.
    #[default]
    Shard,
    /// In proportion to the host's measured speed: the fastest trains all of it, so that results come back at
    /// about the same age (`DyLU`, Liu et al., 2024).
    BySpeed,
}

/// `placement.visits`: the order in which a trial visits the shards of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Visits {
    /// The order of [`crate::seeds::visit_order`]: job, data and seed decide every checkpoint, whatever hosts train.
    Fixed,
    /// Any order: a host trains first on the shards that it holds.
    Free,
}

impl Visits {
    /// The order's word in a job file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Free => "free",
        }
    }
}

/// Why a job can't merge always and have its visits fixed.
pub const FIXED_VISITS_MERGE: &str = "`placement.visits = \"fixed\"` doesn't go with `order = \"merge\"`: results are \
    merged in the order in which they arrive; leave `visits` out, or set `order = \"hop\"`";

/// `placement.replicas`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Replicas {
    /// Any host fetches what it is to train on, within its owner's limits.
    #[default]
    Demand,
    /// Each shard lies on this many hosts, at least 1, and is trained there alone; when one of them leaves,
    /// another takes its place.
    Fixed(u32),
}

/// Thousandths: all of the live slots.
const ALL: u32 = 1000;
/// Thousandths: half of the live slots.
const HALF: u32 = 500;

const fn half() -> u32 {
    HALF
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_half(number: &u32) -> bool {
    *number == HALF
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

fn within<T: PartialOrd + Display>(
    key: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<(), String> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (least, most) = bounds.into_inner();
    Err(format!("`placement.{key}` is {value}; it has to be from {least} to {most}"))
}

/// A ratio is written in thousandths here, and as a fraction in a job file.
fn thousandths(key: &str, value: u32, least: u32) -> Result<(), String> {
    if (least..=ALL).contains(&value) {
        return Ok(());
    }
    Err(format!("`placement.{key}` is {value} thousandths; it has to be from {least} to {ALL}"))
}
