//! The data of TensorBoard's HPARAMS tab: an experiment, and the session of each trial.
//!
//! Source: `tensorboard/plugins/hparams/api.proto`, `plugin_data.proto` and `metadata.py`.

use super::{event::Events, event::seconds, protobuf::Message};
use crate::cli::{model::export::tables::hyper_parameters::HyperParameters, render::text};
use serde_json::Value;
use sojourn_protocol::time::UnixMillis;
use std::collections::{BTreeMap, BTreeSet};

const PLUGIN: &str = "hparams";
const EXPERIMENT_TAG: &str = "_hparams_/experiment";
const SESSION_START_TAG: &str = "_hparams_/session_start_info";
const SESSION_END_TAG: &str = "_hparams_/session_end_info";

/// Fields of `HParamsPluginData`, whose version 0 is left out.
const DATA_EXPERIMENT: u32 = 2;
const DATA_SESSION_START: u32 = 3;
const DATA_SESSION_END: u32 = 4;
/// Fields of `Experiment`.
const EXPERIMENT_TIME_CREATED: u32 = 3;
const EXPERIMENT_HPARAM_INFOS: u32 = 4;
const EXPERIMENT_METRIC_INFOS: u32 = 5;
const EXPERIMENT_NAME: u32 = 6;
/// Fields of `HParamInfo`.
const HPARAM_NAME: u32 = 1;
const HPARAM_TYPE: u32 = 4;
/// Fields of `MetricInfo` and `MetricName`.
const METRIC_NAME: u32 = 1;
const METRIC_DATASET: u32 = 5;
const NAME_TAG: u32 = 2;
/// Fields of `SessionStartInfo`, and of an entry of its map.
const START_HPARAMS: u32 = 1;
const START_GROUP_NAME: u32 = 4;
const START_TIME: u32 = 5;
const ENTRY_KEY: u32 = 1;
const ENTRY_VALUE: u32 = 2;
/// Fields of `google.protobuf.Value`.
const VALUE_NUMBER: u32 = 2;
const VALUE_TEXT: u32 = 3;
const VALUE_SWITCH: u32 = 4;
/// Fields of `SessionEndInfo`.
const END_STATUS: u32 = 1;
const END_TIME: u32 = 2;

/// `DataType`: the type of a hyper-parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Switch,
    Number,
}

impl Kind {
    const fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Kind::Switch,
            Value::Number(_) => Kind::Number,
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => Kind::Text,
        }
    }

    const fn code(self) -> u64 {
        match self {
            Kind::Text => 1,
            Kind::Switch => 2,
            Kind::Number => 3,
        }
    }
}

/// `Status`: how a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Neither well nor badly: its user ended it.
    Unknown,
    Success,
    Failure,
}

impl Status {
    const fn code(self) -> u64 {
        match self {
            Status::Unknown => 0,
            Status::Success => 1,
            Status::Failure => 2,
        }
    }
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
    let mut experiment = Message::new().double(EXPERIMENT_TIME_CREATED, seconds(at));
    for (name, kind) in kinds {
        let info = Message::new().text(HPARAM_NAME, name).whole(HPARAM_TYPE, kind.code());
        experiment = experiment.message(EXPERIMENT_HPARAM_INFOS, info);
    }
    for tag in tags {
        let name = Message::new().text(NAME_TAG, tag);
        let dataset = if tag.starts_with("train/") { 1 } else { 2 };
        let info = Message::new().message(METRIC_NAME, name).whole(METRIC_DATASET, dataset);
        experiment = experiment.message(EXPERIMENT_METRIC_INFOS, info);
    }
    experiment = experiment.text(EXPERIMENT_NAME, name);
    let data = Message::new().message(DATA_EXPERIMENT, experiment);
    events.plugin(at, EXPERIMENT_TAG, PLUGIN, data);
}

/// The start of a trial, with its hyper-parameters.
pub(super) fn session_start(
    events: &mut Events,
    at: UnixMillis,
    group: &str,
    of: &HyperParameters,
) {
    let mut start = Message::new();
    for (name, value) in of {
        let value = match value {
            Value::Bool(value) => Message::new().whole(VALUE_SWITCH, u64::from(*value)),
            Value::Number(number) => {
                Message::new().double(VALUE_NUMBER, number.as_f64().unwrap_or(f64::NAN))
            }
            other => Message::new().text(VALUE_TEXT, &text::value(other)),
        };
        let entry = Message::new().text(ENTRY_KEY, name).message(ENTRY_VALUE, value);
        start = start.message(START_HPARAMS, entry);
    }
    let start = start.text(START_GROUP_NAME, group).double(START_TIME, seconds(at));
    let data = Message::new().message(DATA_SESSION_START, start);
    events.plugin(at, SESSION_START_TAG, PLUGIN, data);
}

/// The end of a trial.
pub(super) fn session_end(events: &mut Events, at: UnixMillis, status: Status) {
    let end = Message::new().whole(END_STATUS, status.code()).double(END_TIME, seconds(at));
    let data = Message::new().message(DATA_SESSION_END, end);
    events.plugin(at, SESSION_END_TAG, PLUGIN, data);
}
