//! What a scenario must keep to, in one place.

use super::{
    arrival::{day_time, hours},
    scenario::{HostGroup, JobEntry, Placement, Scenario, ShardSizes, Speeds},
};
use sojourn_protocol::spec::{HIGHEST_PRIORITY, LARGEST_SHARE};

/// The most hosts that are simulated.
const MOST_HOSTS: u64 = 1_000_000;

/// Can it be run?
///
/// # Errors
/// The first thing that speaks against it, with its key.
pub(crate) fn scenario(scenario: &Scenario) -> Result<(), String> {
    if scenario.hosts.is_empty() || scenario.host_count() == 0 {
        return Err("there are no hosts: add a table `[[hosts]]` with a `count`".into());
    }
    if scenario.host_count() > MOST_HOSTS {
        return Err(format!("`hosts` are more than {MOST_HOSTS}: simulate fewer"));
    }
    if scenario.all_jobs().next().is_none() {
        return Err("there is no job: add a table `[job]`, with `trials` for a start".into());
    }
    want(scenario.seeds >= 1, "seeds", "must be at least 1")?;
    want(!scenario.server.policy.0.is_empty(), "server.policy", "must name at least one policy")?;
    want(scenario.server.most_hops != Some(0), "server.most_hops", "must be at least 1")?;
    let most_copied = scenario.server.most_copied;
    want(most_copied <= Some(100), "server.most_copied", "must be at most 100, per cent")?;
    want(scenario.server.milp_limit.0 > 0, "server.milp_limit", "must be above 0")?;
    day_time(&scenario.starts_at).map_err(|error| format!("`starts_at` {error}"))?;
    for group in &scenario.hosts {
        self::group(group)?;
    }
    scenario.all_jobs().try_for_each(job)
}

fn want(holds: bool, key: &str, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("`{key}` {what}")) }
}

fn group(group: &HostGroup) -> Result<(), String> {
    let kinds = group.kinds();
    let shares = 0.0..=1.0;
    want(!kinds.is_empty(), "hosts.tflops", "must have at least one speed")?;
    let positive = |value: f64| value.is_finite() && value > 0.0;
    want(kinds.iter().all(|(_, speed)| positive(*speed)), "hosts.tflops", "must be above 0")?;
    want(positive(group.efficiency), "hosts.efficiency", "must be above 0")?;
    let factors = group.speed_by_model.values();
    want(factors.copied().all(positive), "hosts.speed_by_model", "must be factors above 0")?;
    for (key, value) in [("spread", group.spread), ("noise", group.noise)] {
        want((0.0..=3.0).contains(&value), &format!("hosts.{key}"), "must be from 0 to 3")?;
    }
    for (key, value) in [("failures", group.failures), ("lies", group.lies)] {
        want(shares.contains(&value), &format!("hosts.{key}"), "is a share: from 0 to 1")?;
    }
    for (key, value) in [("download", group.download), ("upload", group.upload)] {
        want(value.is_finite() && value >= 0.0, &format!("hosts.{key}"), "must be at least 0")?;
    }
    let both = group.gpus > 0 && group.slots.is_some_and(|slots| slots > 0);
    want(!both, "hosts.slots", "and `hosts.gpus` can't be together: make two groups of hosts")?;
    want((1..=1024).contains(&group.places()), "hosts.slots", "must be from 1 to 1024")?;
    let auto = group.units_ahead();
    want(auto <= 1, "hosts.ahead", "is 0 or 1: hosts fetch at most one unit ahead for each slot")?;
    let ways = [
        group.hours.is_some(),
        group.exponential.is_some(),
        group.spot.is_some(),
        group.trace.is_some(),
    ];
    let ways = ways.iter().filter(|way| **way).count();
    want(ways <= 1, "hosts.hours", "`exponential`, `spot` and `trace`: a group has one of them")?;
    if let Some(text) = &group.hours {
        hours(text).map_err(|error| format!("`hosts.hours` {error}"))?;
    }
    if let Some(spot) = group.spot {
        let loss = spot.losses_per_hour;
        want((0.0..1.0).contains(&loss), "hosts.spot.losses_per_hour", "is a share below 1")?;
    }
    if let Some(exponential) = group.exponential {
        let times = exponential.up.0 > 0 && exponential.down.0 > 0;
        want(times, "hosts.exponential", "needs mean times `up` and `down` above 0")?;
    }
    Ok(())
}

fn job(job: &JobEntry) -> Result<(), String> {
    if job.file.is_some() {
        let free = job.trials.is_none() && job.costs.is_none() && job.equal.is_none();
        want(free, "job.file", "gives the trials: leave out `trials`, `costs` and `equal`")?;
    }
    let data = job.file.is_some() && job.shard_sizes == ShardSizes::Equal;
    want(!job.train || data, "job.train", "needs a `job.file`, and shards of equal sizes")?;
    want(
        job.costs.is_none() || job.equal.is_none(),
        "job.equal",
        "and `job.costs` can't be together",
    )?;
    want(job.trials != Some(0), "job.trials", "must be at least 1")?;
    want(job.trials.unwrap_or(1) <= 65_536, "job.trials", "must be at most 65,536")?;
    want((1..=1_000_000).contains(&job.epochs.unwrap_or(1)), "job.epochs", "must be at least 1")?;
    let shards = job.shards.or(1);
    want((1..=1_000_000).contains(&shards), "job.shards", "must be at least 1")?;
    want(job.rows >= u64::from(shards), "job.rows", "must be at least as many as shards")?;
    want(job.rows <= 1 << 40, "job.rows", "must be at most 2^40")?;
    want(job.batch_size >= 1, "job.batch_size", "must be at least 1")?;
    want(job.valid_rows <= u64::from(u32::MAX), "job.valid_rows", "must be below 2^32")?;
    want(job.replicas >= 1, "job.replicas", "must be at least 1")?;
    let priority = job.priority.unwrap_or(0);
    want(priority.abs() <= HIGHEST_PRIORITY, "job.priority", "must be from -100 to 100")?;
    let share = job.share.unwrap_or(1);
    want((1..=LARGEST_SHARE).contains(&share), "job.share", "must be from 1 to 1000")?;
    want(job.max_hosts != Some(0), "job.max_hosts", "must be at least 1")?;
    let equal = job.equal.unwrap_or(1.0);
    want(equal.is_finite() && equal > 0.0, "job.equal", "must be above 0")?;
    let pinned = job.placement == Placement::Pinned;
    want(
        pinned || job.shard_sizes == ShardSizes::Equal,
        "job.shard_sizes",
        "by speed goes with `placement = \"pinned\"`: else no shard belongs to a host",
    )
}

/// Speeds as messages show them.
impl Speeds {
    /// Is there more than one?
    #[must_use]
    pub fn vary(&self) -> bool {
        match self {
            Speeds::One(_) => false,
            Speeds::List(speeds) => speeds.len() > 1,
            Speeds::Kinds(kinds) => kinds.len() > 1,
        }
    }
}
