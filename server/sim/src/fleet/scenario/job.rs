//! `[job]` and `[[jobs]]`: what is trained.

use super::Pick;
use crate::fleet::quantity::{Auto, Bytes, Span};
use serde::Deserialize;
use sojourn_protocol::{
    money::MicroUsd,
    spec::{OrderChoice, Spread, Visits},
};

/// `[job]` or one of `[[jobs]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobEntry {
    /// For people.
    pub name: String,
    /// A job file whose architectures are taken; `trials`, `costs` and `equal` aren't wanted then.
    pub file: Option<String>,
    /// Whether the job's hops really train, on its data.
    pub train: bool,
    /// The metric of so many results' version and of each multiple's, with `train`: beside the fleet, in no time.
    pub curve: Option<u32>,
    /// A CSV file of learning curves by which its evaluations give losses, with a `file` and without `train`.
    pub surrogate: Option<String>,
    /// How unlike the labels of shards are, with `train`.
    pub skew: Skew,
    /// Keys of the job `file` that are otherwise here.
    pub set: toml::Table,
    /// Shape of a row, with a `file` that doesn't say it.
    pub shape: Option<Vec<u32>>,
    /// Classes of the labels, with a `file`.
    pub classes: u32,
    /// How many trials.
    pub trials: Option<u32>,
    /// The costs of training on one row, in MFLOPs.
    pub costs: Option<Costs>,
    /// All trials cost so many MFLOPs a row.
    pub equal: Option<f64>,
    /// How trials get theirs, where there are several.
    pub pick: Pick,
    /// Training rows, all visited in each epoch.
    pub rows: u64,
    /// The number of epochs.
    pub epochs: Option<u32>,
    /// Passes over a shard in one visit.
    pub local_epochs: Option<u32>,
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
    /// On so many hosts each, with `placement = "pinned"`; 1 if left out.
    pub replicas: Option<u32>,
    /// The job's priority: its units are handed out before those of jobs with a lower one.
    pub priority: Option<i32>,
    /// The job's part of slot time, beside jobs of the same priority.
    #[serde(rename = "share")]
    pub slot_share: Option<u32>,
    /// The rule for whose epochs come first where there are more trials than slots.
    pub spread: Option<Spread>,
    /// The most hosts that work for it at a time.
    pub max_hosts: Option<u32>,
    /// How its trials and hosts meet; where results are merged, by the rule of VC-ASGD.
    pub order: Option<OrderChoice>,
    /// The most that the job may cost, on machines that are bought.
    #[serde(deserialize_with = "dollars")]
    pub budget: Option<MicroUsd>,
    /// By when it is to end, from its submission, on machines that are bought.
    pub deadline: Option<Span>,
    /// The order in which its trials visit shards.
    pub visits: Option<Visits>,
}

/// The costs of training on one row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a file name or a list of MFLOPs was wanted")]
pub enum Costs {
    /// A CSV file, its last column MFLOPs, its first a name.
    File(String),
    /// A list of MFLOPs.
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

/// How rows are shared out among shards.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Skew {
    /// By chance.
    #[default]
    None,
    /// By their labels, of which each shard has shares of a Dirichlet distribution of this concentration.
    Dirichlet(f64),
}

impl Skew {
    /// The concentration, if there is one.
    #[must_use]
    pub const fn concentration(self) -> Option<f64> {
        match self {
            Skew::None => None,
            Skew::Dirichlet(concentration) => Some(concentration),
        }
    }
}

impl<'de> Deserialize<'de> for Skew {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        if value.as_str() == Some("none") {
            return Ok(Skew::None);
        }
        let number = f64::deserialize(value).map_err(|_| {
            serde::de::Error::custom(
                "a number is wanted, or \"none\" for rows that are shared out by chance",
            )
        })?;
        Ok(Skew::Dirichlet(number))
    }
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

/// An amount of money: `20 usd`.
fn dollars<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<MicroUsd>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

impl Default for JobEntry {
    fn default() -> Self {
        Self {
            name: String::new(),
            file: None,
            train: false,
            curve: None,
            surrogate: None,
            skew: Skew::None,
            set: toml::Table::new(),
            shape: None,
            classes: 10,
            trials: None,
            costs: None,
            equal: None,
            pick: Pick::default(),
            rows: 50_000,
            epochs: None,
            local_epochs: None,
            shards: Auto::Auto,
            shard_sizes: ShardSizes::default(),
            batch_size: 32,
            checkpoint_bytes: None,
            data_bytes: Bytes(0),
            valid_rows: 0,
            submitted: Span(0),
            reproducible: false,
            placement: Placement::default(),
            replicas: None,
            priority: None,
            slot_share: None,
            spread: None,
            max_hosts: None,
            order: None,
            budget: None,
            deadline: None,
            visits: None,
        }
    }
}
