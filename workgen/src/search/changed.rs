//! A trial with some settings changed: a clone's.

use super::{SearchError, Trial, given::are_equal};
use serde_json::{Map, Value};
use sojourn_protocol::{
    jobfile::nearest,
    spec::{Choices, TrialConfig},
    trial_name::{ends_with, last_word},
};

/// The trial with these values: of dimensions that vary, or of any setting of its model and its training, by name
/// (`training.optimizer.lr`) or by the last words of that (`lr`, `optimizer.lr`).
///
/// # Errors
/// [`SearchError`] where there is no such setting, several, or it can't have the value.
pub fn changed(trial: &Trial, values: &Choices) -> Result<Trial, SearchError> {
    let mut trial = trial.clone();
    for (name, value) in values {
        let outside = || SearchError::Outside { dimension: name.clone(), value: value.to_string() };
        let config = serde_json::to_value(&trial.config).map_err(|_| outside())?;
        let known = settings_of(&config);
        let paths = paths_of(&known, name)?;
        if paths.iter().any(|path| path == "training.epochs") {
            return Err(SearchError::NoDimension { name: name.clone() });
        }
        let set = paths.iter().find_map(|path| Some((path, with(config.clone(), path, value)?)));
        let is_known = paths.iter().any(|path| known.contains(path));
        let (path, config) = match set {
            Some(set) => set,
            None if is_known => return Err(outside()),
            None => return Err(no_setting(&known, name)),
        };
        trial.choices.insert(dimension_of(&trial, path), value.clone());
        trial.config = config;
    }
    Ok(trial)
}

/// The configuration with a value at a path, if there can be one.
fn with(mut config: Value, path: &str, value: &Value) -> Option<TrialConfig> {
    let (owner, key) = path.rsplit_once('.')?;
    let pointer = |path: &str| format!("/{}", path.replace('.', "/"));
    if config.pointer(&pointer(owner)).is_none() {
        // All of `augment` is left out where nothing is changed at random.
        let (outer, key) = owner.rsplit_once('.')?;
        let fields = config.pointer_mut(&pointer(outer))?.as_object_mut()?;
        fields.insert(key.to_owned(), Value::Object(Map::new()));
    }
    let fields = config.pointer_mut(&pointer(owner))?.as_object_mut()?;
    fields.insert(key.to_owned(), value.clone());
    let config: TrialConfig = serde_json::from_value(config).ok()?;
    // What isn't known might have been passed over.
    let again = serde_json::to_value(&config).ok()?;
    let is_there = again.pointer(&pointer(path)).is_some_and(|set| are_equal(set, value));
    is_there.then_some(config)
}

/// Settings that a configuration leaves out where they have their defaults.
const LEFT_OUT: &[&str] = &[
    "training.augment.crop",
    "training.augment.flip",
    "training.clip_norm",
    "training.label_smoothing",
    "training.precision",
    "training.sampling",
];
/// The same of models that aren't a user's own.
const LEFT_OUT_OF_MLP: &[&str] = &["model.batch_norm", "model.dropout"];
const LEFT_OUT_OF_CNN: &[&str] =
    &["model.batch_norm", "model.dropout", "model.hidden", "model.pool", "model.pool_every"];

/// The paths of all settings of a configuration.
fn settings_of(config: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    if let Value::Object(fields) = config {
        leaves("", fields, &mut paths);
    }
    let of_model = match config.pointer("/model/arch").and_then(Value::as_str) {
        Some("mlp") => LEFT_OUT_OF_MLP,
        Some("cnn") => LEFT_OUT_OF_CNN,
        Some(_) | None => &[],
    };
    for path in LEFT_OUT.iter().chain(of_model) {
        if !paths.iter().any(|known| known == path) {
            paths.push((*path).to_owned());
        }
    }
    paths.retain(|path| path != "model.arch");
    paths
}

fn no_setting(known: &[String], name: &str) -> SearchError {
    let words = known.iter().map(|path| last_word(path));
    let near = nearest(name, words.chain(known.iter().map(String::as_str)));
    SearchError::NoSetting { name: name.to_owned(), nearest: near.map(str::to_owned) }
}

/// The paths that may be a setting's in a configuration: one, or several where it isn't known.
fn paths_of(paths: &[String], name: &str) -> Result<Vec<String>, SearchError> {
    let word = match name.split_once("].") {
        // `model[0].dropout`: a trial has one model.
        Some((table, key)) if table.starts_with("model[") => key,
        _ => name,
    };
    let found: Vec<&String> = paths.iter().filter(|path| ends_with(path, word)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sojourn_protocol::jobfile;

    fn trial(model: &str) -> Trial {
        let text = format!(
            "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n[[model]]\n{model}\n[training]\nepochs = 3\nbatch_size = 8\noptimizer = {{ name = \"adam\", lr = 0.1 }}\n"
        );
        let mut all = crate::trials(&jobfile::parse(&text).unwrap()).unwrap();
        all.remove(0)
    }

    fn with(of: &Trial, name: &str, value: Value) -> Result<Value, SearchError> {
        let choices = Choices::from([(name.to_owned(), value)]);
        changed(of, &choices).map(|trial| serde_json::to_value(&trial.config).unwrap())
    }

    #[test]
    fn settings_go_by_the_last_words_of_their_names() {
        let of = trial("arch = \"mlp\"\nhidden = [4]");
        for name in ["lr", "optimizer.lr", "training.optimizer.lr"] {
            let config = with(&of, name, json!(0.01)).unwrap();
            assert_eq!(config.pointer("/training/optimizer/lr"), Some(&json!(0.01)), "{name}");
        }
    }

    #[test]
    fn settings_that_the_configuration_leaves_out_can_be_other() {
        let mlp = trial("arch = \"mlp\"\nhidden = [4]");
        let cnn = trial("arch = \"cnn\"\nchannels = [4]");
        for (of, settings) in [
            (&mlp, [LEFT_OUT, LEFT_OUT_OF_MLP].concat()),
            (&cnn, [LEFT_OUT, LEFT_OUT_OF_CNN].concat()),
        ] {
            for path in settings {
                let value = match last_word(path) {
                    "crop" | "pool_every" => json!(2),
                    "flip" | "batch_norm" => json!(true),
                    "precision" => json!("bf16"),
                    "sampling" => json!("balanced"),
                    "pool" => json!("average"),
                    "hidden" => json!([8]),
                    _ => json!(0.25),
                };
                let config = with(of, last_word(path), value.clone());
                let config = config.unwrap_or_else(|why| panic!("{path}: {why}"));
                let pointer = format!("/{}", path.replace('.', "/"));
                assert_eq!(config.pointer(&pointer), Some(&value), "{path}");
            }
        }
    }

    #[test]
    fn a_setting_that_is_not_there_is_told_with_the_nearest() {
        let of = trial("arch = \"mlp\"\nhidden = [4]");
        let said = |name: &str, value: Value| with(&of, name, value).unwrap_err().to_string();
        assert_eq!(said("lrr", json!(1e-4)), "there is no setting `lrr`; did you mean `lr`?");
        assert_eq!(said("zzzzzz", json!(1)), "there is no setting `zzzzzz`");
        assert!(said("optimizer.lrr", json!(1)).starts_with("there is no setting `optimizer.lrr`"));
        assert!(said("lr", json!("fast")).starts_with("`\"fast\"` is no value of `lr`"));
    }
}
