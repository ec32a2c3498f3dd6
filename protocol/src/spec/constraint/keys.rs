//! The keys of a trial that constraints name.

use super::{
    super::{Architecture, CombinationRule, Real, Setting, TrialConfig},
    value::Value,
};
use serde::Serialize;
use std::borrow::Cow;

/// The value of a key.
enum KeyValue<'a> {
    One(Value<'a>),
    /// The sizes of layers. A constraint can't compare lists.
    Sizes(&'a [u32]),
    /// A list among the keys of a user's own model.
    List(&'a [Setting]),
}

/// Reads the value of a key; `None` where the architecture has no such key.
type Read = for<'a> fn(&'a TrialConfig) -> Option<KeyValue<'a>>;

const KEYS: &[(&str, Read)] = &[
    ("model.arch", |config| text(config.model.name())),
    ("model.hidden", |config| match &config.model {
        Architecture::Mlp(mlp) => Some(KeyValue::Sizes(&mlp.hidden)),
        Architecture::Cnn(cnn) => Some(KeyValue::Sizes(&cnn.hidden)),
        Architecture::Resnet(_) | Architecture::Graph(_) => None,
    }),
    ("model.channels", |config| match &config.model {
        Architecture::Cnn(cnn) => Some(KeyValue::Sizes(&cnn.channels)),
        Architecture::Mlp(_) | Architecture::Resnet(_) | Architecture::Graph(_) => None,
    }),
    ("model.pool", |config| match &config.model {
        Architecture::Cnn(cnn) => word(cnn.pool),
        Architecture::Mlp(_) | Architecture::Resnet(_) | Architecture::Graph(_) => None,
    }),
    ("model.pool_every", |config| match &config.model {
        Architecture::Cnn(cnn) => number(cnn.pool_every),
        Architecture::Mlp(_) | Architecture::Resnet(_) | Architecture::Graph(_) => None,
    }),
    ("model.batch_norm", |config| match &config.model {
        Architecture::Mlp(mlp) => truth(mlp.batch_norm),
        Architecture::Cnn(cnn) => truth(cnn.batch_norm),
        Architecture::Resnet(_) | Architecture::Graph(_) => None,
    }),
    ("model.dropout", |config| match &config.model {
        Architecture::Mlp(mlp) => number(mlp.dropout.0),
        Architecture::Cnn(cnn) => number(cnn.dropout.0),
        Architecture::Resnet(_) | Architecture::Graph(_) => None,
    }),
    ("model.depth", |config| match &config.model {
        Architecture::Resnet(resnet) => number(resnet.depth),
        Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Graph(_) => None,
    }),
    ("model.width", |config| match &config.model {
        Architecture::Resnet(resnet) => number(resnet.width),
        Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Graph(_) => None,
    }),
    ("training.epochs", |config| number(config.training.epochs)),
    ("training.batch_size", |config| number(config.training.batch_size)),
    ("training.loss", |config| word(config.training.loss)),
    ("training.clip_norm", |config| number(config.training.clip_norm.unwrap_or(0.0))),
    ("training.precision", |config| word(config.training.precision)),
    ("training.sampling", |config| word(config.training.sampling)),
    ("training.label_smoothing", |config| number(config.training.label_smoothing)),
    ("training.optimizer.name", |config| text(config.training.optimizer.name.word())),
    ("training.optimizer.lr", |config| number(config.training.optimizer.lr)),
    ("training.optimizer.momentum", |config| number(config.training.optimizer.momentum)),
    ("training.optimizer.beta1", |config| number(config.training.optimizer.beta1)),
    ("training.optimizer.beta2", |config| number(config.training.optimizer.beta2)),
    ("training.optimizer.eps", |config| number(config.training.optimizer.eps)),
    ("training.optimizer.weight_decay", |config| number(config.training.optimizer.weight_decay)),
    ("training.optimizer.decay", |config| word(config.training.optimizer.decay)),
    ("training.schedule.name", |config| word(config.training.schedule.name)),
    ("training.schedule.warmup", |config| number(config.training.schedule.warmup)),
    ("training.schedule.every", |config| number(config.training.schedule.every)),
    ("training.schedule.gamma", |config| number(config.training.schedule.gamma)),
    ("training.schedule.floor", |config| number(config.training.schedule.floor)),
    ("training.augment.crop", |config| number(config.training.augment.unwrap_or_default().crop)),
    ("training.augment.flip", |config| truth(config.training.augment.unwrap_or_default().flip)),
];

const fn one(value: Value<'_>) -> Option<KeyValue<'_>> {
    Some(KeyValue::One(value))
}

fn number(number: impl Into<f64>) -> Option<KeyValue<'static>> {
    one(Value::Number(number.into()))
}

const fn truth(truth: bool) -> Option<KeyValue<'static>> {
    one(Value::Truth(truth))
}

const fn text(text: &str) -> Option<KeyValue<'_>> {
    one(Value::Text(Cow::Borrowed(text)))
}

/// The word of an option, as a job file has it.
fn word(option: impl Serialize) -> Option<KeyValue<'static>> {
    let word = serde_json::to_value(option).ok()?;
    one(Value::Text(Cow::Owned(word.as_str()?.to_owned())))
}

/// The keys of a user's own model.
fn own(config: &TrialConfig) -> impl Iterator<Item = (&str, &Setting)> {
    let graph = match &config.model {
        Architecture::Graph(graph) => Some(graph),
        Architecture::Mlp(_) | Architecture::Cnn(_) | Architecture::Resnet(_) => None,
    };
    graph.into_iter().flat_map(|graph| &graph.values).map(|(key, value)| (key.as_str(), value))
}

/// Where a key's value is.
#[derive(Debug, Clone)]
enum Place {
    BuiltIn(&'static str, Read),
    /// Among the keys of a user's own model.
    Own(String),
}

/// The paths of all keys of a trial.
fn paths(config: &TrialConfig) -> impl Iterator<Item = (String, Place)> {
    let built_in = KEYS.iter().filter(|(_, read)| read(config).is_some());
    let built_in = built_in.map(|(path, read)| ((*path).to_owned(), Place::BuiltIn(path, *read)));
    let own = own(config).map(|(key, _)| (format!("model.{key}"), Place::Own(key.to_owned())));
    built_in.chain(own)
}

/// The path of the key of a trial that this name means; `None` where there is none of that name.
///
/// # Errors
/// Two keys have it.
pub(in crate::spec) fn find_path(
    config: &TrialConfig,
    name: &str,
) -> Result<Option<String>, String> {
    find(config, name).map(|found| found.map(|(path, _)| path))
}

/// The path of the key that a name means, and where its value is.
fn find(config: &TrialConfig, name: &str) -> Result<Option<(String, Place)>, String> {
    let mut found = paths(config).filter(|(path, _)| means(path, name));
    match (found.next(), found.next()) {
        (first, None) => Ok(first),
        (Some((path, _)), Some((other, _))) => {
            Err(format!("names `{name}`, which two keys are called; write `{path}` or `{other}`"))
        }
        (None, _) => Ok(None),
    }
}

/// The value of a trial's key at a path.
pub(in crate::spec) fn setting_at(config: &TrialConfig, path: &str) -> Option<Setting> {
    if let Some((_, read)) = KEYS.iter().find(|(known, _)| *known == path)
        && let Some(value) = read(config)
    {
        return Some(match value {
            KeyValue::One(Value::Number(number)) => Setting::Real(Real(number)),
            KeyValue::One(Value::Text(text)) => Setting::Text(text.into_owned()),
            KeyValue::One(Value::Truth(truth)) => Setting::Switch(truth),
            KeyValue::Sizes(sizes) => {
                Setting::List(sizes.iter().map(|size| Setting::Whole(i64::from(*size))).collect())
            }
            KeyValue::List(settings) => Setting::List(settings.to_vec()),
        });
    }
    let key = path.strip_prefix("model.")?;
    own(config).find(|(own, _)| *own == key).map(|(_, setting)| setting.clone())
}

/// The names of all keys of a trial, in short.
pub(in crate::spec) fn names(config: &TrialConfig) -> impl Iterator<Item = String> {
    paths(config).map(|(path, _)| match path.strip_suffix(".name") {
        Some(table) => last(table).to_owned(),
        None => last(&path).to_owned(),
    })
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Is this the path, its end, or the table of an option that is called `name`: `training.optimizer.name`, `optimizer.name` or
/// `optimizer`?
pub(super) fn means(path: &str, name: &str) -> bool {
    let ends = |path: &str| {
        path.strip_suffix(name).is_some_and(|start| start.is_empty() || start.ends_with('.'))
    };
    ends(path) || path.strip_suffix(".name").is_some_and(ends)
}

/// A key of the trials of one model table.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// As the constraint has it.
    name: String,
    place: Place,
    /// The combinations that are trials.
    rule: CombinationRule,
}

impl Key {
    /// The key that a constraint means; `None` where there is none of that name.
    ///
    /// # Errors
    /// Two keys have it.
    pub(super) fn find(
        config: &TrialConfig,
        name: &str,
        rule: CombinationRule,
    ) -> Result<Option<Self>, String> {
        let found = find(config, name)?;
        Ok(found.map(|(_, place)| Self { name: name.to_owned(), place, rule }))
    }

    /// The key's value in a trial of the table; `None` where combinations are to differ and the trial makes no use of it.
    ///
    /// # Errors
    /// A key that holds a list.
    pub(super) fn used_value<'a>(
        &self,
        config: &'a TrialConfig,
    ) -> Result<Option<Value<'a>>, String> {
        match self.place {
            Place::BuiltIn(path, _) if self.rule.is_distinct() && !config.uses(path) => Ok(None),
            Place::BuiltIn(..) | Place::Own(_) => self.value(config).map(Some),
        }
    }

    /// The key's value in a trial of the table, whether or not the trial makes use of it.
    ///
    /// # Errors
    /// A key that holds a list.
    pub(super) fn value<'a>(&self, config: &'a TrialConfig) -> Result<Value<'a>, String> {
        let value = match &self.place {
            Place::BuiltIn(_, read) => read(config),
            Place::Own(key) => {
                own(config).find(|(own, _)| own == key).and_then(|(_, setting)| of_setting(setting))
            }
        };
        let name = &self.name;
        match value {
            Some(KeyValue::One(value)) => Ok(value),
            Some(KeyValue::Sizes(_) | KeyValue::List(_)) => {
                Err(format!("names `{name}`, a list, which can't be compared"))
            }
            None => Err(format!("names `{name}`, which a trial of another table was asked for")),
        }
    }
}

fn of_setting(setting: &Setting) -> Option<KeyValue<'_>> {
    match setting {
        Setting::Switch(switch) => truth(*switch),
        Setting::Whole(_) | Setting::Real(_) => setting.number().and_then(number),
        Setting::Text(word) => text(word),
        Setting::List(settings) => Some(KeyValue::List(settings)),
    }
}
