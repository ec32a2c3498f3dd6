//! The dimensions of a model table, whichever of them a trial has.

use super::{
    super::{
        Formula, JobSpec, Setting, TrialConfig,
        constraint::{find_path, setting_at},
        dimension::{Chooser, Normal, Range, Tied},
    },
    Condition, Presence, is_same, path_of,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The dimensions that a model table's space asks for, by their paths in a trial.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) asked: BTreeMap<String, Asked>,
}

/// A dimension.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) values: Values,
    /// The condition, and the value of trials that don't meet it.
    pub(super) condition: Option<(Condition, Setting)>,
    /// The formula of a setting that is computed.
    pub(super) formula: Option<Formula>,
    /// The path of a setting that decides whether trials make use of this one.
    decider: Option<String>,
}

/// The values of a dimension.
#[derive(Debug, Default)]
pub(super) enum Values {
    Listed(Vec<Setting>),
    Range(Range),
    /// Any number.
    #[default]
    Any,
}

impl Survey {
    /// The survey of a table, and a configuration of it; `None` where it has no value, which is reported when its trials are made.
    pub(super) fn of(spec: &JobSpec, table: usize) -> Option<(Self, TrialConfig)> {
        let mut survey = Self::default();
        let config = spec.close(table, &mut survey)?;
        Some((survey, config))
    }

    fn at(&mut self, name: &str) -> &mut Asked {
        let new = || Asked { name: name.to_owned(), ..Asked::default() };
        self.asked.entry(path_of(name)).or_insert_with(new)
    }

    /// May the setting at a path have this value? `None` where it may be any number of a range.
    pub(super) fn may_be(&self, config: &TrialConfig, path: &str, value: &Setting) -> Option<bool> {
        let Some(asked) = self.asked.get(path) else {
            return Some(setting_at(config, path).is_some_and(|fixed| is_same(&fixed, value)));
        };
        let otherwise = asked.condition.as_ref().map(|(_, otherwise)| otherwise);
        if otherwise.is_some_and(|otherwise| is_same(otherwise, value)) {
            return Some(true);
        }
        match &asked.values {
            Values::Listed(values) => Some(values.iter().any(|one| is_same(one, value))),
            Values::Range(range) => {
                let steps = range.steps()?;
                let is_step = |number: f64| {
                    let at = ((number - range.low) / steps.step()).round();
                    let at = if at >= 0.0 { (0..steps.count()).nth(to_index(at)) } else { None };
                    at.is_some_and(|at| steps.at(at) == number)
                };
                Some(value.number().is_some_and(is_step))
            }
            Values::Any => None,
        }
    }

    /// The values that the setting at a path may have, where they are listed.
    pub(super) fn listed(&self, config: &TrialConfig, path: &str) -> Vec<Setting> {
        let Some(asked) = self.asked.get(path) else {
            return setting_at(config, path).into_iter().collect();
        };
        let mut listed = match &asked.values {
            Values::Listed(values) => values.clone(),
            Values::Range(_) | Values::Any => Vec::new(),
        };
        let otherwise = asked.condition.as_ref().map(|(_, otherwise)| otherwise.clone());
        listed.extend(otherwise);
        listed
    }

    /// The paths of the settings on which the one at a path hangs: whether a trial has it or makes use of it, and its number.
    pub(super) fn deciders(&self, config: &TrialConfig, path: &str) -> BTreeSet<String> {
        let Some(asked) = self.asked.get(path) else { return BTreeSet::new() };
        let named = asked.condition.iter().flat_map(|(condition, _)| condition.0.keys());
        let of_formula = asked.formula.iter().flat_map(Formula::names);
        let named = named.map(String::as_str).chain(of_formula);
        let named = named.filter_map(|name| find_path(config, name).ok().flatten());
        named.chain(asked.decider.clone()).collect()
    }
}

/// An index for a number from 0 up; beyond all lists where it is too large.
fn to_index(number: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let index = number as usize;
    index
}

impl Chooser for Survey {
    fn index(&mut self, name: &str, count: usize) -> usize {
        self.one_of(name, &mut (0..count).map(Value::from))
    }

    fn one_of(&mut self, name: &str, values: &mut dyn ExactSizeIterator<Item = Value>) -> usize {
        let values = values.filter_map(|value| serde_json::from_value(value).ok()).collect();
        self.at(name).values = Values::Listed(values);
        0
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        let is_endless = range.steps().is_none();
        self.at(name).values = if is_endless { Values::Any } else { Values::Range(*range) };
        range.low
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        self.at(name).values = Values::Any;
        normal.mean
    }

    fn takes_absent(&self) -> bool {
        true
    }

    fn has(&mut self, name: &str, of: &dyn Presence) -> bool {
        let otherwise = serde_json::from_value(of.otherwise()).ok();
        let condition = otherwise.map(|otherwise| (of.when().clone(), otherwise));
        self.at(name).condition = condition;
        true
    }

    fn waits_for(&mut self, name: &str, decider: &str) -> bool {
        let decider = path_of(decider);
        self.at(name).decider = Some(decider);
        false
    }

    fn tied(&mut self, name: &str, formula: &Formula) -> Tied {
        self.at(name).formula = Some(formula.clone());
        Tied::Open
    }

    fn chosen(&mut self, _: &str, _: Value) {}
}
