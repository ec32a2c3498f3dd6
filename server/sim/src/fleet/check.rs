//! The rules that a scenario must keep to, in one place.
//!
//! Ranges are generous: they keep out what no machine is, and with it sums that no clock can count and runs that
//! never end.

use super::{
    day_time::{day_time, hours},
    quantity::Span,
    scenario::{HostGroup, JobEntry, Placement, Scenario, ServerSpec, ShardSizes, Trace},
};
use sojourn_protocol::spec::{MAX_PRIORITY, MAX_SLOT_SHARE};

/// The most hosts that are simulated, and the most slots of them all.
const MAX_HOSTS: u64 = 1_000_000;
const MAX_SLOTS: u64 = 10_000_000;
/// Factors, and speeds of slots in TFLOP/s.
const FACTORS: (f64, f64) = (1e-9, 1e9);
/// Lines that aren't free, in Mbit/s.
const LINES: (f64, f64) = (1e-6, 1e9);
/// The range of the cost of training on a row, in MFLOPs.
pub(crate) const COSTS: (f64, f64) = (1e-6, 1e12);
/// Units that end with their host: with more hardly any comes to its end.
const MAX_PREEMPTED: f64 = 0.9;
/// With more, a second slot on one core leaves a hundredth of what one alone does.
const MAX_CONTENTION: f64 = 100.0;
/// Concentrations of label distributions: nearly all of a shard of one label, nearly all shards alike.
const SKEWS: (f64, f64) = (1e-3, 1e3);
/// Hops of one job, at the most.
pub(crate) const MAX_HOPS: u64 = 100_000_000;

/// An objection to a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The way to the key: `hosts.1.tflops`, counted from 0.
    pub(crate) path: String,
    /// The key, and what is wrong with it.
    pub(crate) said: String,
}

/// A table of the file, in which keys are looked at.
struct Table {
    /// The way to it, with its dot.
    path: String,
    /// The table's name, with its dot.
    name: &'static str,
    /// Which of several it is, for people.
    which: String,
}

/// Can it be run?
///
/// # Errors
/// The first thing that speaks against it.
pub(crate) fn scenario(scenario: &Scenario) -> Result<(), Fault> {
    let root = Table { path: String::new(), name: "", which: String::new() };
    let file = |key: &str, said: &str| Err(Fault { path: key.to_owned(), said: said.to_owned() });
    if scenario.hosts.is_empty() || scenario.host_count() == 0 {
        return file("hosts", "there are no hosts: add a table `[[hosts]]` with a `count`");
    }
    let most = "are more than 1,000,000 in all: simulate fewer";
    root.want(scenario.host_count() <= MAX_HOSTS, "hosts", most)?;
    let slots = scenario.hosts.iter().map(|of| u64::from(of.count) * u64::from(of.places()));
    let most = "have more than 10,000,000 slots in all: simulate fewer";
    root.want(slots.sum::<u64>() <= MAX_SLOTS, "hosts", most)?;
    if scenario.all_jobs().next().is_none() {
        return file("job", "there is no job: add a table `[job]`, with `trials` for a start");
    }
    root.want(scenario.seeds >= 1, "seeds", "must be at least 1")?;
    day_time(&scenario.starts_at).or_else(|error| root.refuse("starts_at", &error))?;
    server(&scenario.server)?;
    let several = scenario.hosts.len() > 1;
    let trains = scenario.all_jobs().any(|job| job.train);
    for (n, of) in scenario.hosts.iter().enumerate() {
        let table = Table::one_of("hosts", n, several, "group", &of.name);
        group(&table, of)?;
        table.want(of.liar.is_none() || trains, "liar", "goes with a job of `train = true`")?;
    }
    let several = scenario.all_jobs().count() > 1;
    let hosts = scenario.host_count();
    if let Some(of) = &scenario.job {
        job(&Table { path: "job.".into(), name: "job.", which: String::new() }, of, hosts)?;
    }
    for (n, of) in scenario.jobs.iter().enumerate() {
        job(&Table::one_of("jobs", n, several, "job", &of.name), of, hosts)?;
    }
    Ok(())
}

impl Table {
    /// One of `[[hosts]]` or `[[jobs]]`.
    fn one_of(key: &'static str, n: usize, several: bool, kind: &str, name: &str) -> Self {
        let which = match (several, name) {
            (false, _) => String::new(),
            (true, "") => format!(" of {kind} {}", n + 1),
            (true, name) => format!(" of {kind} {} (`{name}`)", n + 1),
        };
        let name = if key == "hosts" { "hosts." } else { "jobs." };
        Self { path: format!("{key}.{n}."), name, which }
    }

    fn refuse<T>(&self, key: &str, what: &str) -> Result<T, Fault> {
        let Self { path, name, which } = self;
        Err(Fault { path: format!("{path}{key}"), said: format!("`{name}{key}`{which} {what}") })
    }

    fn want(&self, holds: bool, key: &str, what: &str) -> Result<(), Fault> {
        if holds { Ok(()) } else { self.refuse(key, what) }
    }

    fn range(&self, key: &str, value: f64, range: (f64, f64)) -> Result<(), Fault> {
        match outside(value, range) {
            Some(what) => self.refuse(key, &what),
            None => Ok(()),
        }
    }
}

/// The complaint about a number that isn't within the range; `None` where it is.
pub(crate) fn outside(value: f64, (least, most): (f64, f64)) -> Option<String> {
    let words =
        || format!("is {}: from {} to {} is wanted", shown(value), shown(least), shown(most));
    (!(least..=most).contains(&value)).then(words)
}

/// A number that people can read, however large or small.
fn shown(value: f64) -> String {
    let plain = value == 0.0 || (1e-6..1e15).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

fn server(server: &ServerSpec) -> Result<(), Fault> {
    let table = Table { path: "server.".into(), name: "server.", which: String::new() };
    let policies = &server.policy.0;
    table.want(!policies.is_empty(), "policy", "must name at least one policy")?;
    table.want(server.most_hops != Some(0), "most_hops", "must be at least 1")?;
    table.want(server.most_copied <= Some(100), "most_copied", "must be at most 100, per cent")?;
    table.want(server.milp_limit.0 > 0, "milp_limit", "must be above 0")?;
    table.want(server.assimilators >= 1, "assimilators", "must be at least 1")?;
    for (key, time) in [
        ("lease_term", server.lease_term),
        ("heartbeat", server.heartbeat),
        ("longest_wait", server.longest_wait),
    ] {
        let usable = time.or(Span(u64::MAX)).0 >= 10_000;
        table.want(
            usable,
            key,
            "must be at least 10 ms: else nothing but signs of life happens",
        )?;
    }
    Ok(())
}

fn group(table: &Table, group: &HostGroup) -> Result<(), Fault> {
    let kinds = group.kinds();
    table.want(!kinds.is_empty(), "tflops", "must have at least one speed")?;
    for (_, speed) in &kinds {
        table.range("tflops", *speed, FACTORS)?;
    }
    table.range("efficiency", group.efficiency, FACTORS)?;
    for factor in group.speed_by_model.values() {
        table.range("speed_by_model", *factor, FACTORS)?;
    }
    for factor in group.classes.values() {
        table.range("classes", *factor, (0.25, 16.0))?;
    }
    for (key, value) in [("spread", group.spread), ("noise", group.noise)] {
        table.range(key, value, (0.0, 3.0))?;
    }
    for (key, value) in [("failures", group.failures), ("lies", group.lies), ("late", group.late)] {
        table.range(key, value, (0.0, 1.0))?;
    }
    for (key, value) in [("download", group.download), ("upload", group.upload)] {
        if let Some(what) = outside(value, LINES).filter(|_| value != 0.0) {
            return table.refuse(key, &format!("{what}, or 0 for a line that is free and instant"));
        }
    }
    let both = group.gpus > 0 && group.slots.is_some_and(|slots| slots > 0);
    table.want(!both, "slots", "and `hosts.gpus` can't be together: make two groups of hosts")?;
    let places = if group.gpus > 0 { "gpus" } else { "slots" };
    table.want((1..=1024).contains(&group.places()), places, "must be from 1 to 1024")?;
    table.want(group.cores != Some(0), "cores", "must be at least 1")?;
    let on_processor = group.cores.is_none() || group.gpus == 0;
    table.want(on_processor, "cores", "goes with `slots`: each unit on a GPU has that alone")?;
    table.range("contention", group.contention, (0.0, MAX_CONTENTION))?;
    let shared = group.contention == 0.0 || group.cores.is_some();
    table.want(shared, "contention", "goes with `cores`: else each slot has its full speed")?;
    let auto = group.units_ahead();
    table.want(
        auto <= 1,
        "ahead",
        "is 0 or 1: hosts fetch at most one unit ahead for each slot",
    )?;
    presence(table, group)
}

/// When hosts are there.
fn presence(table: &Table, group: &HostGroup) -> Result<(), Fault> {
    let ways = [
        ("hours", group.hours.is_some()),
        ("exponential", group.exponential.is_some()),
        ("spot", group.spot.is_some()),
        ("trace", group.trace.is_some()),
        ("preempted", group.preempted.is_some()),
    ];
    let mut ways = ways.iter().filter(|(_, is_said)| *is_said).map(|(key, _)| key);
    if let (Some(one), Some(other)) = (ways.next(), ways.next()) {
        return table
            .refuse(other, &format!("and `hosts.{one}` can't be together: take one of them"));
    }
    if let Some(text) = &group.hours {
        hours(text).or_else(|error| table.refuse("hours", &error))?;
    }
    if let Some(spot) = group.spot {
        let loss = spot.losses_per_hour;
        let is_ratio = (0.0..1.0).contains(&loss);
        let said = format!("is {}: a share from 0 to below 1 is wanted", shown(loss));
        table.want(is_ratio, "spot.losses_per_hour", &said)?;
    }
    if let Some(preempted) = group.preempted {
        let is_ratio = (0.0..=MAX_PREEMPTED).contains(&preempted.ratio);
        let said = format!("is {}: a share from 0 to 0.9 is wanted", shown(preempted.ratio));
        table.want(is_ratio, "preempted.share", &said)?;
    }
    if let Some(exponential) = group.exponential {
        let times = exponential.up.0.min(exponential.down.0) >= 1_000_000;
        table.want(times, "exponential", "needs mean times `up` and `down` of at least 1 s")?;
    }
    if let Some(Trace::List(list)) = &group.trace
        && let Some((host, ..)) = list.iter().find(|(host, ..)| *host >= group.count)
    {
        return table.refuse("trace", &beyond(*host, group.count));
    }
    Ok(())
}

/// The complaint about a trace of a host that its group doesn't have.
pub(crate) fn beyond(host: u32, count: u32) -> String {
    match count {
        1 => format!("names host {host}, and the group has one, which is host 0: raise `count`"),
        _ => {
            let last = count.saturating_sub(1);
            format!("names host {host}, and the group has the hosts 0 to {last}: raise `count`")
        }
    }
}

fn job(table: &Table, job: &JobEntry, hosts: u64) -> Result<(), Fault> {
    if job.file.is_some() {
        let free = job.trials.is_none() && job.costs.is_none() && job.equal.is_none();
        table.want(free, "file", "gives the trials: leave out `trials`, `costs` and `equal`")?;
    }
    let data = job.file.is_some() && job.shard_sizes == ShardSizes::Equal;
    table.want(!job.train || data, "train", "needs a `file`, and shards of equal sizes")?;
    table.want(job.train || job.curve.is_none(), "curve", "goes with `train = true`")?;
    let curves = job.file.is_some() && !job.train;
    table.want(
        job.surrogate.is_none() || curves,
        "surrogate",
        "goes with a `file` and without `train`",
    )?;
    table.want(job.curve != Some(0), "curve", "must be at least 1")?;
    if let Some(skew) = job.skew.concentration() {
        table.want(job.train, "skew", "goes with `train = true`")?;
        table.range("skew", skew, SKEWS)?;
    }
    let set = job.file.is_some() || job.set.is_empty();
    table.want(set, "set", "needs a `file`, whose keys it sets")?;
    let both = job.costs.is_some() && job.equal.is_some();
    table.want(!both, "equal", "and `costs` can't be together")?;
    if let Some(equal) = job.equal {
        table.range("equal", equal, COSTS)?;
    }
    let trials = job.trials.unwrap_or(1);
    table.want((1..=65_536).contains(&trials), "trials", "must be from 1 to 65,536")?;
    let epochs = job.epochs.unwrap_or(1);
    table.want((1..=1_000_000).contains(&epochs), "epochs", "must be from 1 to 1,000,000")?;
    let passes = job.local_epochs.unwrap_or(1);
    table.want((1..=1000).contains(&passes), "local_epochs", "must be from 1 to 1,000")?;
    let shards = job.shards.or(1);
    table.want((1..=1_000_000).contains(&shards), "shards", "must be from 1 to 1,000,000")?;
    let hops = u64::from(trials) * u64::from(epochs) * u64::from(shards);
    let most = "times epochs and shards are more than 100,000,000 hops: simulate a smaller job";
    table.want(hops <= MAX_HOPS, "trials", most)?;
    table.want(job.rows >= u64::from(shards), "rows", "must be at least as many as shards")?;
    table.want(job.rows <= 1 << 40, "rows", "must be at most 2^40")?;
    table.want(job.batch_size >= 1, "batch_size", "must be at least 1")?;
    table.want(job.valid_rows <= u64::from(u32::MAX), "valid_rows", "must be below 2^32")?;
    table.want((1..=1_000_000).contains(&job.classes), "classes", "must be from 1 to 1,000,000")?;
    let priority = job.priority.unwrap_or(0);
    let range = -MAX_PRIORITY..=MAX_PRIORITY;
    table.want(range.contains(&priority), "priority", "must be from -100 to 100")?;
    let slot_share = job.slot_share.unwrap_or(1);
    table.want((1..=MAX_SLOT_SHARE).contains(&slot_share), "share", "must be from 1 to 1000")?;
    table.want(job.max_hosts != Some(0), "max_hosts", "must be at least 1")?;
    homes(table, job, hosts)
}

/// On which hosts shards lie.
fn homes(table: &Table, job: &JobEntry, hosts: u64) -> Result<(), Fault> {
    let pinned = job.placement == Placement::Pinned;
    let Some(replicas) = job.replicas else {
        return table.want(
            pinned || job.shard_sizes == ShardSizes::Equal,
            "shard_sizes",
            "by speed goes with `placement = \"pinned\"`: else no shard belongs to a host",
        );
    };
    table.want(
        pinned,
        "replicas",
        "goes with `placement = \"pinned\"`: else any host may fetch any shard",
    )?;
    table.want(replicas >= 1, "replicas", "must be at least 1")?;
    let enough = u64::from(replicas) <= hosts;
    table.want(
        enough,
        "replicas",
        &format!("is {replicas}, and there are {hosts} hosts: no two lie on one"),
    )
}
