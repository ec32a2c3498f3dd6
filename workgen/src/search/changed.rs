//! A trial with some settings changed: a clone's.

use super::{SearchError, Trial, given::are_equal};
use serde_json::{Map, Value};
use sojourn_protocol::{
    spec::{Choices, TrialConfig},
    trial_name::last_word,
};

/// The trial with these values: of dimensions that vary, or of any setting of its model and its training, by name
/// (`training.optimizer.lr`) or by the last word of that.
///
/// # Errors
/// [`SearchError`] where there is no such setting, several, or it can't have the value.
pub fn changed(trial: &Trial, values: &Choices) -> Result<Trial, SearchError> {
    let mut trial = trial.clone();
    for (name, value) in values {
        let outside = || SearchError::Outside { dimension: name.clone(), value: value.to_string() };
        let config = serde_json::to_value(&trial.config).map_err(|_| outside())?;
        let paths = paths_of(&config, name)?;
        if paths.iter().any(|path| path == "training.epochs") {
            return Err(SearchError::NoDimension { name: name.clone() });
        }
        let set = paths.iter().find_map(|path| Some((path, with(config.clone(), path, value)?)));
        let (path, config) = set.ok_or_else(outside)?;
        trial.choices.insert(dimension_of(&trial, path), value.clone());
        trial.config = config;
    }
    Ok(trial)
}

/// The configuration with a value at a path, if there can be one.
fn with(mut config: Value, path: &str, value: &Value) -> Option<TrialConfig> {
    let (owner, key) = path.rsplit_once('.')?;
    let pointer = |path: &str| format!("/{}", path.replace('.', "/"));
    let fields = config.pointer_mut(&pointer(owner))?.as_object_mut()?;
    fields.insert(key.to_owned(), value.clone());
    let config: TrialConfig = serde_json::from_value(config).ok()?;
    // What isn't known might have been passed over.
    let again = serde_json::to_value(&config).ok()?;
    let is_there = again.pointer(&pointer(path)).is_some_and(|set| are_equal(set, value));
    is_there.then_some(config)
}

/// The paths that may be a setting's in a configuration: one, or several where the configuration leaves out what is usual.
fn paths_of(config: &Value, name: &str) -> Result<Vec<String>, SearchError> {
    let mut paths = Vec::new();
    if let Value::Object(fields) = config {
        leaves("", fields, &mut paths);
    }
    let word = match name.split_once("].") {
        // `model[0].dropout`: a trial has one model.
        Some((table, key)) if table.starts_with("model[") => key,
        _ => name,
    };
    let found: Vec<&String> =
        paths.iter().filter(|path| *path == word || last_word(path) == word).collect();
    match found.as_slice() {
        [] if word.contains('.') => Ok(vec![word.to_owned()]),
        [] => Ok(vec![format!("training.{word}"), format!("model.{word}")]),
        [path] => Ok(vec![(*path).clone()]),
        [first, ..] => match paths.iter().find(|path| *path == word) {
            Some(path) => Ok(vec![path.clone()]),
            None => {
                let dimension = (*first).clone();
                Err(SearchError::Ambiguous { name: name.to_owned(), dimension })
            }
        },
    }
}

fn leaves(prefix: &str, fields: &Map<String, Value>, paths: &mut Vec<String>) {
    for (key, value) in fields {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(inner) => leaves(&path, inner, paths),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                paths.push(path);
            }
        }
    }
}

/// The name of the dimension at a path: that of the trial's where it has one.
fn dimension_of(trial: &Trial, path: &str) -> String {
    let own = trial.choices.keys().find(|name| {
        *name == path || (name.starts_with("model[") && last_word(name) == last_word(path))
    });
    own.cloned().unwrap_or_else(|| path.to_owned())
}
