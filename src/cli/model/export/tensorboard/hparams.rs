//! The data of TensorBoard's HPARAMS tab: an experiment, and the session of each trial.
//!
//! Source: `tensorboard/plugins/hparams/api.proto`, `plugin_data.proto` and `metadata.py`.

use super::event::{Events, seconds};
use crate::cli::{model::export::tables::hyper_parameters::HyperParameters, render::text};
use prost::{Message, Oneof};
use serde_json::Value;
use sojourn_protocol::time::UnixMillis;
use std::collections::{BTreeMap, BTreeSet};

const PLUGIN: &str = "hparams";
const EXPERIMENT_TAG: &str = "_hparams_/experiment";
const SESSION_START_TAG: &str = "_hparams_/session_start_info";
const SESSION_END_TAG: &str = "_hparams_/session_end_info";

/// The content of the plugin's summaries. Its version 0 is left out.
#[derive(Clone, PartialEq, Message)]
struct PluginData(#[prost(oneof = "Data", tags = "2, 3, 4")] Option<Data>);

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "2")]
    Experiment(Experiment),
    #[prost(message, tag = "3")]
    SessionStart(SessionStart),
    #[prost(message, tag = "4")]
    SessionEnd(SessionEnd),
}

#[derive(Clone, PartialEq, Message)]
struct Experiment {
    #[prost(double, tag = "3")]
    time_created: f64,
    #[prost(message, repeated, tag = "4")]
    hparam_infos: Vec<HParamInfo>,
    #[prost(message, repeated, tag = "5")]
    metric_infos: Vec<MetricInfo>,
    #[prost(string, tag = "6")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct HParamInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "4")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct MetricInfo {
    #[prost(message, optional, tag = "1")]
    name: Option<MetricName>,
    #[prost(int32, tag = "5")]
    dataset: i32,
}

#[derive(Clone, PartialEq, Message)]
struct MetricName(#[prost(string, tag = "2")] String);

#[derive(Clone, PartialEq, Message)]
struct SessionStart {
    #[prost(btree_map = "string, message", tag = "1")]
    hparams: BTreeMap<String, HParam>,
    #[prost(string, tag = "4")]
    group_name: String,
    #[prost(double, tag = "5")]
    start_time: f64,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, Message)]
struct HParam(#[prost(oneof = "HParamValue", tags = "2, 3, 4")] Option<HParamValue>);

#[derive(Clone, PartialEq, Oneof)]
enum HParamValue {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Switch(bool),
}

/// The status is written at zero too.
#[derive(Clone, PartialEq, Message)]
struct SessionEnd {
    #[prost(int32, optional, tag = "1")]
    status: Option<i32>,
    #[prost(double, tag = "2")]
    end_time: f64,
}

/// `DataType`: the type of a hyper-parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text = 1,
    Switch = 2,
    Number = 3,
}

impl Kind {
    const fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Kind::Switch,
            Value::Number(_) => Kind::Number,
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => Kind::Text,
        }
    }
}

/// `Status`: how a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Neither well nor badly: its user ended it.
    Unknown = 0,
    Success = 1,
    Failure = 2,
}

/// The types of the hyper-parameters that differ between trials, or of all where none does. Where the values of one have
/// several types, they are texts.
pub(super) fn kinds(trials: &[HyperParameters]) -> BTreeMap<&str, Kind> {
    let names: BTreeSet<&str> =
        trials.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
    let differs = |name: &str| {
        let mut values = trials.iter().map(|trial| trial.get(name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let is_varied = names.iter().any(|name| differs(name));
    let shown = names.into_iter().filter(|name| !is_varied || differs(name));
    let kind = |name: &str| {
        let mut kinds = trials.iter().filter_map(|trial| trial.get(name)).map(Kind::of);
        let first = kinds.next().unwrap_or(Kind::Text);
        if kinds.all(|kind| kind == first) { first } else { Kind::Text }
    };
    shown.map(|name| (name, kind(name))).collect()
}

/// Says which hyper-parameters and which metrics (by their tags) there are.
pub(super) fn experiment(
    events: &mut Events,
    at: UnixMillis,
    name: &str,
    kinds: &BTreeMap<&str, Kind>,
    tags: &[String],
) {
    let hparam_info =
        |(name, kind): (&&str, &Kind)| HParamInfo { name: (*name).to_owned(), kind: *kind as i32 };
    let metric_info = |tag: &String| MetricInfo {
        name: Some(MetricName(tag.clone())),
        dataset: if tag.starts_with("train/") { 1 } else { 2 },
    };
    let experiment = Experiment {
        time_created: seconds(at),
        hparam_infos: kinds.iter().map(hparam_info).collect(),
        metric_infos: tags.iter().map(metric_info).collect(),
        name: name.to_owned(),
    };
    put(events, at, EXPERIMENT_TAG, Data::Experiment(experiment));
}

/// The start of a trial, with its hyper-parameters.
pub(super) fn session_start(
    events: &mut Events,
    at: UnixMillis,
    group: &str,
    of: &HyperParameters,
) {
    let hparam = |value: &Value| {
        HParam(Some(match value {
            Value::Bool(value) => HParamValue::Switch(*value),
            Value::Number(number) => HParamValue::Number(number.as_f64().unwrap_or(f64::NAN)),
            other => HParamValue::Text(text::value(other)),
        }))
    };
    let start = SessionStart {
        hparams: of.iter().map(|(name, value)| (name.clone(), hparam(value))).collect(),
        group_name: group.to_owned(),
        start_time: seconds(at),
    };
    put(events, at, SESSION_START_TAG, Data::SessionStart(start));
}

/// The end of a trial.
pub(super) fn session_end(events: &mut Events, at: UnixMillis, status: Status) {
    let end = SessionEnd { status: Some(status as i32), end_time: seconds(at) };
    put(events, at, SESSION_END_TAG, Data::SessionEnd(end));
}

fn put(events: &mut Events, at: UnixMillis, tag: &str, data: Data) {
    events.plugin(at, tag, PLUGIN, &PluginData(Some(data)));
}
