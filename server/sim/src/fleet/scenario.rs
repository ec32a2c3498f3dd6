//! A scenario as its file says it: hosts, jobs, and the server between them.
//!
//! Every key is documented in `examples/scheduling/README.md`; what is left out has the default here.

use super::{
    policy::Policy,
    quantity::{Auto, Bytes, Policies, Span, whole},
};
use serde::Deserialize;
use sojourn_workgen::shards::ShardHost;
use std::collections::BTreeMap;

/// One scenario, nothing left to vary.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// For people.
    pub name: String,
    /// The first seed: costs, speeds, arrivals, noise and the core's chance follow from it.
    pub seed: u64,
    /// So many seeds, one after the other.
    pub seeds: u32,
    /// What the server is told of speeds beforehand.
    pub estimates: Knowledge,
    /// The time of day at which it begins.
    pub starts_at: String,
    /// Given up after so much virtual time.
    pub horizon: Auto<Span>,
    /// The server.
    pub server: ServerSpec,
    /// Groups of like hosts.
    pub hosts: Vec<HostGroup>,
    /// The job, where there is but one.
    pub job: Option<JobEntry>,
    /// Several jobs.
    pub jobs: Vec<JobEntry>,
    /// Taken out before a scenario is made of a file: see [`super::read`].
    vary: Option<toml::Value>,
    case: Option<toml::Value>,
    normalise: Option<toml::Value>,
}

/// What hosts tell of their speed when they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// What units of each trial take on them.
    Known,
    /// Their operations per second; the rest is measured as units end.
    #[default]
    Prior,
    /// Nothing: all is measured as units end.
    Nothing,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// The policies to compare.
    pub policy: Policies,
    /// After how long silence a host's units go to others.
    pub lease_term: Auto<Span>,
    /// How often hosts show that they live.
    pub heartbeat: Auto<Span>,
    /// How long a host's ask is held open.
    pub longest_wait: Auto<Span>,
    /// Hops of one trial that go to a host under one lease, at most.
    pub most_hops: Option<u32>,
    /// Per cent of a job's work that second copies of running hops may add to it, at most.
    pub most_copied: Option<u32>,
    /// What it takes to check a checkpoint and make it the next version.
    pub assimilation: Span,
    /// Real time for one plan of `milp`.
    pub milp_limit: Span,
}

/// `[[hosts]]`: hosts that are alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostGroup {
    /// For people.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Peak speed of one slot, in TFLOP/s.
    pub tflops: Speeds,
    /// How hosts get theirs, where there are several.
    pub pick: Pick,
    /// The share of the peak that training reaches.
    pub efficiency: f64,
    /// Factors on the speed, by the cost table's model names.
    pub speed_by_model: BTreeMap<String, f64>,
    /// How far speeds differ by model and kind of host: the sigma of a lognormal factor.
    pub spread: f64,
    /// Units at once on the processor.
    pub slots: Option<u32>,
    /// Units at once on GPUs, one on each.
    pub gpus: u32,
    /// Units fetched ahead for each slot.
    pub ahead: Auto<u32>,
    /// Most bytes in the cache; none: no limit.
    pub cache: Option<Bytes>,
    /// Mbit/s from the server; 0: free and instant.
    pub download: f64,
    /// Mbit/s to the server; 0: free and instant.
    pub upload: f64,
    /// One way to the server.
    pub latency: Span,
    /// There at these times of day: `"22:00-07:00"`.
    pub hours: Option<String>,
    /// There and away for exponentially distributed times.
    pub exponential: Option<Exponential>,
    /// Taken away by chance, and replaced by another machine.
    pub spot: Option<Spot>,
    /// There when a list says: a CSV file of `host,from,to`, or a list of `[host, from, to]`.
    pub trace: Option<Trace>,
    /// How long before it goes a host hears of it.
    pub notice: Notice,
    /// The sigma of a lognormal factor on each unit's time.
    pub noise: f64,
    /// The share of units whose trainer fails.
    pub failures: f64,
    /// The share of results that are refused.
    pub lies: f64,
}

/// Peak speeds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a number of TFLOP/s, a list of them, or a table of names and numbers was wanted"
)]
pub enum Speeds {
    /// All hosts alike.
    One(f64),
    /// Each host one of these.
    List(Vec<f64>),
    /// Each host one of these, by the name of its kind.
    Kinds(BTreeMap<String, f64>),
}

/// How one of several values is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// By chance, with replacement.
    #[default]
    Sample,
    /// One after the other, round and round.
    Cycle,
}

/// Times there and away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exponential {
    /// Mean time there.
    pub up: Span,
    /// Mean time away.
    pub down: Span,
}

/// Spot capacity.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spot {
    /// The share of hosts that is lost in an hour, below 1.
    pub losses_per_hour: f64,
    /// How long until another machine, with nothing in its cache, stands in its place.
    pub back: Span,
}

/// When hosts are there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a file name or a list of [host, from, to] was wanted")]
pub enum Trace {
    /// A CSV file with the columns `host` (counted from 0 in its group), `from` and `to` in seconds.
    File(String),
    /// The same.
    List(Vec<(u32, f64, f64)>),
}

/// How long before it goes a host hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notice {
    /// It vanishes.
    #[default]
    None,
    /// So long.
    Before(Span),
}

impl<'de> Deserialize<'de> for Notice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        if value.as_str() == Some("none") {
            return Ok(Notice::None);
        }
        let span = Span::deserialize(value).map_err(|error| {
            let message = error.message();
            serde::de::Error::custom(format!("{message}; without notice it is \"none\""))
        })?;
        Ok(if span.0 == 0 { Notice::None } else { Notice::Before(span) })
    }
}

/// `[job]` or one of `[[jobs]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobEntry {
    /// For people.
    pub name: String,
    /// A job file whose architectures are taken; `trials`, `costs` and `equal` aren't wanted then.
    pub file: Option<String>,
    /// Its hops really train, on its data.
    pub train: bool,
    /// Shape of a row, with a `file` that doesn't say it.
    pub shape: Option<Vec<u32>>,
    /// Classes of the labels, with a `file`.
    pub classes: u32,
    /// How many trials.
    pub trials: Option<u32>,
    /// What training on one row costs, in MFLOPs.
    pub costs: Option<Costs>,
    /// All trials cost so many MFLOPs a row.
    pub equal: Option<f64>,
    /// How trials get theirs, where there are several.
    pub pick: Pick,
    /// Training rows, all visited in each epoch.
    pub rows: u64,
    /// Epochs.
    pub epochs: Option<u32>,
    /// Shards of the training rows.
    pub shards: Auto<u32>,
    /// How rows are shared out among them.
    pub shard_sizes: ShardSizes,
    /// Rows in a batch: a unit that is stopped ends with one.
    pub batch_size: u32,
    /// Size of a checkpoint.
    pub checkpoint_bytes: Option<Bytes>,
    /// Size of the training data.
    pub data_bytes: Bytes,
    /// Rows that each epoch's checkpoint is evaluated on; 0: that takes no time.
    pub valid_rows: u64,
    /// When it is submitted.
    pub submitted: Span,
    /// Each trial on one kind of host.
    pub reproducible: bool,
    /// Which hosts may hold a shard.
    pub placement: Placement,
    /// On so many hosts each, with `placement = "pinned"`.
    pub replicas: u32,
}

/// What rows cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a file name or a list of MFLOPs was wanted")]
pub enum Costs {
    /// A CSV file, its last column MFLOPs, its first a name.
    File(String),
    /// MFLOPs.
    List(Vec<f64>),
}

/// How large shards are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardSizes {
    /// All alike.
    #[default]
    Equal,
    /// In proportion to the speed of the host that each is pinned to.
    Speed,
}

/// Which hosts may hold a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// All of them.
    #[default]
    Any,
    /// `replicas` each, round robin.
    Pinned,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: String::new(),
            seed: 0,
            seeds: 1,
            estimates: Knowledge::default(),
            starts_at: "00:00".into(),
            horizon: Auto::Auto,
            server: ServerSpec::default(),
            hosts: Vec::new(),
            job: None,
            jobs: Vec::new(),
            vary: None,
            case: None,
            normalise: None,
        }
    }
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            policy: Policies(vec![Policy::default()]),
            lease_term: Auto::Auto,
            heartbeat: Auto::Auto,
            longest_wait: Auto::Auto,
            most_hops: None,
            most_copied: None,
            assimilation: Span(0),
            milp_limit: Span(1_000_000),
        }
    }
}

impl Default for HostGroup {
    fn default() -> Self {
        Self {
            name: String::new(),
            count: 1,
            tflops: Speeds::One(10.0),
            pick: Pick::default(),
            efficiency: 1.0,
            speed_by_model: BTreeMap::new(),
            spread: 0.0,
            slots: None,
            gpus: 0,
            ahead: Auto::Auto,
            cache: None,
            download: 0.0,
            upload: 0.0,
            latency: Span(0),
            hours: None,
            exponential: None,
            spot: None,
            trace: None,
            notice: Notice::None,
            noise: 0.0,
            failures: 0.0,
            lies: 0.0,
        }
    }
}

impl Default for Spot {
    fn default() -> Self {
        Self { losses_per_hour: 0.0, back: Span(300_000_000) }
    }
}

impl Default for JobEntry {
    fn default() -> Self {
        Self {
            name: String::new(),
            file: None,
            train: false,
            shape: None,
            classes: 10,
            trials: None,
            costs: None,
            equal: None,
            pick: Pick::default(),
            rows: 50_000,
            epochs: None,
            shards: Auto::Auto,
            shard_sizes: ShardSizes::default(),
            batch_size: 32,
            checkpoint_bytes: None,
            data_bytes: Bytes(0),
            valid_rows: 0,
            submitted: Span(0),
            reproducible: false,
            placement: Placement::default(),
            replicas: 1,
        }
    }
}

impl HostGroup {
    /// Units at once.
    #[must_use]
    pub fn places(&self) -> u32 {
        if self.gpus > 0 { self.gpus } else { self.slots.unwrap_or(1) }
    }

    /// What the number of shards depends on, of a host each of whose slots computes so fast.
    pub(crate) fn for_shards(&self, flops: f64) -> ShardHost {
        let slots = self.places();
        let line = |mbits: f64| whole(if mbits > 0.0 { mbits * 125_000.0 } else { 1e15 });
        ShardHost {
            slots,
            flops: whole(flops * f64::from(slots)).unwrap_or(0),
            download: line(self.download),
            upload: line(self.upload),
            cache: self.cache.map(|bytes| bytes.0),
        }
    }

    /// Units held beside those that run.
    #[must_use]
    pub fn units_ahead(&self) -> u32 {
        let auto = u32::from(self.download > 0.0 || self.upload > 0.0 || self.latency.0 > 0);
        self.ahead.or(auto)
    }

    /// Are its hosts always there, and never fail?
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let spot = self.spot.is_some_and(|spot| spot.losses_per_hour > 0.0);
        let goes = self.hours.is_some() || self.exponential.is_some() || self.trace.is_some();
        let fails = self.failures > 0.0 || self.lies > 0.0;
        !(spot || goes || fails)
    }

    /// The kinds of host in the group: their names and TFLOP/s.
    #[must_use]
    pub fn kinds(&self) -> Vec<(String, f64)> {
        match &self.tflops {
            Speeds::One(speed) => vec![(format!("{speed} TFLOP/s"), *speed)],
            Speeds::List(speeds) => {
                speeds.iter().map(|speed| (format!("{speed} TFLOP/s"), *speed)).collect()
            }
            Speeds::Kinds(kinds) => {
                kinds.iter().map(|(name, speed)| (name.clone(), *speed)).collect()
            }
        }
    }
}

impl Scenario {
    /// All its jobs.
    pub fn all_jobs(&self) -> impl Iterator<Item = &JobEntry> {
        self.job.iter().chain(&self.jobs)
    }

    /// Hosts in all groups.
    #[must_use]
    pub fn host_count(&self) -> u64 {
        self.hosts.iter().map(|group| u64::from(group.count)).sum()
    }
}
