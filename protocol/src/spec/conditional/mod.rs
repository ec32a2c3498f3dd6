//! Settings that hang on others: dimensions that only the trials have whose other settings meet a condition, and numbers that are computed.
//!
//! ```text
//!   { choice = [0.0, 0.9], when = { optimizer = "sgd" } } --jobfile--> Conditional --check--> --close, in passes--> a value
//!   "0.1 * batch_size / 256"                              --jobfile--> Formula -----'
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `passes` | a space is closed in the order in which settings follow from each other |
//! | `survey` | the dimensions of a model table, their values, and which settings decide on them |
//! | `check` | conditions and formulas that can't be: unknown settings, values that these never have, circles |

mod check;
mod passes;
mod survey;

use super::{
    Dimension, Setting, TrialConfig,
    constraint::{find_path, setting_at},
};
pub use check::SpaceFault;
pub(super) use passes::Passes;
pub use passes::Unclosed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most settings that one condition names.
pub const MAX_CONDITION_SETTINGS: usize = 16;

/// A dimension of the trials that meet a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Conditional<T> {
    /// The values that these trials choose from.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub dimension: Dimension<T>,
    /// The condition.
    pub when: Condition,
    /// The value of all other trials.
    pub otherwise: T,
}

/// The values that other settings of a trial must have, by the names of these settings, as in a constraint: `optimizer`,
/// `optimizer.name`, `hidden`. A setting must have one of its values here, or be the list that they make: `hidden = [128, 64]` means one
/// model of two layers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Condition(pub BTreeMap<String, Vec<Setting>>);

impl Condition {
    /// Is it met? `None` while a setting is `open`: of these paths the configuration doesn't have the values yet.
    fn is_met(&self, config: &TrialConfig, open: &BTreeSet<String>) -> Option<bool> {
        let mut met = true;
        for (name, values) in &self.0 {
            // A name that two keys have is refused by the check. A model without the setting doesn't meet the condition.
            let path = find_path(config, name).ok().flatten();
            if path.as_ref().is_some_and(|path| open.contains(path)) {
                return None;
            }
            let value = path.and_then(|path| setting_at(config, &path));
            met &= value.is_some_and(|value| is_among(&value, values));
        }
        Some(met)
    }
}

/// A conditional dimension of any type, for those who choose values.
pub trait Presence {
    /// The condition under which a trial has the dimension.
    fn when(&self) -> &Condition;
    /// The value of the other trials, as JSON.
    fn otherwise(&self) -> serde_json::Value;
}

impl<T: Serialize> Presence for Conditional<T> {
    fn when(&self) -> &Condition {
        &self.when
    }

    fn otherwise(&self) -> serde_json::Value {
        serde_json::to_value(&self.otherwise).unwrap_or_default()
    }
}

/// Is a value one of these, or the list that they make?
fn is_among(value: &Setting, values: &[Setting]) -> bool {
    let is_list = matches!(value, Setting::List(entries) if are_same(entries, values));
    is_list || values.iter().any(|one| is_same(value, one))
}

fn are_same(a: &[Setting], b: &[Setting]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

/// Are two values the same, where 64 and 64.0 are?
fn is_same(a: &Setting, b: &Setting) -> bool {
    match (a, b) {
        (Setting::List(a), Setting::List(b)) => are_same(a, b),
        _ => a == b || a.number().zip(b.number()).is_some_and(|(a, b)| a == b),
    }
}

/// The path of a dimension in a trial: `model.dropout` of `model[1].dropout`.
fn path_of(name: &str) -> String {
    let of_table = name.strip_prefix("model[").and_then(|rest| rest.split_once("]."));
    of_table.map_or_else(|| name.to_owned(), |(_, key)| format!("model.{key}"))
}

#[cfg(test)]
mod tests;
