//! `[[hosts]]`: how fast machines are, and when they are there.

use super::Pick;
use crate::{
    Corruption,
    fleet::quantity::{Auto, Bytes, Span, whole},
};
use serde::Deserialize;
use sojourn_workgen::shards::ShardHost;
use std::collections::BTreeMap;

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
    /// Hosts of the same name here calculate alike; none: those of the same speed.
    pub class: Option<String>,
    /// Further numeric classes that each host offers, by name, with its speed there relative to that in `class`. Hosts of
    /// one name here calculate alike there.
    pub classes: BTreeMap<String, f64>,
    /// Factors on the speed, by the cost table's model names.
    pub speed_by_model: BTreeMap<String, f64>,
    /// How far speeds differ by model and kind of host: the sigma of a lognormal factor.
    pub spread: f64,
    /// Units at once on the processor.
    pub slots: Option<u32>,
    /// Units at once on GPUs, one on each.
    pub gpus: u32,
    /// Slots that reach full speed side by side on the processor; none: all of them do.
    pub cores: Option<u32>,
    /// How much of their throughput more slots than `cores` cost each other.
    pub contention: f64,
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
    /// Taken away by chance, while a unit runs.
    pub preempted: Option<Preempted>,
    /// How long before it goes a host hears of it.
    pub notice: Notice,
    /// The sigma of a lognormal factor on each unit's time.
    pub noise: f64,
    /// The share of units whose trainer fails.
    pub failures: f64,
    /// The share of results that are refused.
    pub lies: f64,
    /// Each result of a hop is a lie of this kind.
    #[serde(deserialize_with = "liar")]
    pub liar: Option<Corruption>,
    /// The share of units with whose start a host falls silent, to report when their leases have run out.
    pub late: f64,
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

/// Units that end with their host.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preempted {
    /// The share of units in whose midst the host is taken away.
    #[serde(rename = "share")]
    pub ratio: f64,
    /// How long until it is there again, with what is in its cache.
    pub back: Span,
    /// Whether another machine stands there then, with nothing in its cache.
    pub another: bool,
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
    /// The host vanishes without notice.
    #[default]
    None,
    /// So long.
    Before(Span),
}

/// A kind of lie, or `"none"`.
fn liar<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Corruption>, D::Error> {
    let value = toml::Value::deserialize(deserializer)?;
    if value.as_str() == Some("none") {
        return Ok(None);
    }
    let lie = Corruption::deserialize(value);
    lie.map(Some).map_err(|error| serde::de::Error::custom(error.message()))
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

impl Default for HostGroup {
    fn default() -> Self {
        Self {
            name: String::new(),
            count: 1,
            tflops: Speeds::One(10.0),
            pick: Pick::default(),
            efficiency: 1.0,
            class: None,
            classes: BTreeMap::new(),
            speed_by_model: BTreeMap::new(),
            spread: 0.0,
            slots: None,
            gpus: 0,
            cores: None,
            contention: 0.0,
            ahead: Auto::Auto,
            cache: None,
            download: 0.0,
            upload: 0.0,
            latency: Span(0),
            hours: None,
            exponential: None,
            spot: None,
            trace: None,
            preempted: None,
            notice: Notice::None,
            noise: 0.0,
            failures: 0.0,
            lies: 0.0,
            liar: None,
            late: 0.0,
        }
    }
}

impl Default for Preempted {
    fn default() -> Self {
        Self { ratio: 0.0, back: Span(300_000_000), another: false }
    }
}

impl Default for Spot {
    fn default() -> Self {
        Self { losses_per_hour: 0.0, back: Span(300_000_000) }
    }
}

impl HostGroup {
    /// Units at once.
    #[must_use]
    pub fn places(&self) -> u32 {
        if self.gpus > 0 { self.gpus } else { self.slots.unwrap_or(1) }
    }

    /// The share of its speed that each slot reaches beside all the others: 1 on enough cores. Else n slots share c
    /// cores, and `contention` k takes a part of what these do: c / n / (1 + k (n / c - 1)).
    #[must_use]
    pub fn ratio_of_speed(&self) -> f64 {
        let Some(cores) = self.cores.filter(|cores| *cores < self.places()) else { return 1.0 };
        let load = f64::from(self.places()) / f64::from(cores.max(1));
        1.0 / load / (1.0 + self.contention * (load - 1.0))
    }

    /// The figures on which the number of shards depends, of a host each of whose slots computes so many operations per second.
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

    /// How long before it goes one of its hosts hears of it, in microseconds.
    pub(crate) const fn warned_before(&self) -> Option<u64> {
        match self.notice {
            Notice::None => None,
            Notice::Before(Span(micros)) => Some(micros),
        }
    }

    /// How fast its hosts are in the fastest of their numeric classes, relative to the speed in `class`.
    pub(crate) fn fastest_class(&self) -> f64 {
        self.classes.values().copied().fold(1.0, f64::max)
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
        let preempted = self.preempted.is_some_and(|preempted| preempted.ratio > 0.0);
        let fails = self.failures > 0.0 || self.lies > 0.0 || self.late > 0.0;
        let fails = fails || self.liar.is_some();
        !(spot || goes || preempted || fails)
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
