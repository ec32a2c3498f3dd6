//! Which combinations of a space are trials, and which settings a trial makes use of.
//!
//! Jobs of earlier versions have every combination. Their trials follow from their specification whenever a journal is read, so the
//! rule is part of it, and is written down where it makes a difference.

use super::{
    Dimension, JobSpec, ModelSpace, OptimizerName, Pool, ScheduleName, SearchMethod, TrialConfig,
    dimension::{Chooser, Normal, Presence, Range, is_default},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The combinations of a space that are trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CombinationRule {
    /// Every combination that is drawn, also one that differs from another only in settings without effect, or in none.
    #[default]
    All,
    /// Combinations that differ in a setting that the trial makes use of. Points of a grid are short decimals.
    Distinct,
}

impl CombinationRule {
    /// Is it that of specifications which don't say it?
    #[must_use]
    pub fn is_default(&self) -> bool {
        is_default(self)
    }

    /// Do combinations differ in settings that their trials make use of?
    #[must_use]
    pub const fn is_distinct(self) -> bool {
        matches!(self, Self::Distinct)
    }
}

impl OptimizerName {
    /// Does it use `momentum`?
    #[must_use]
    pub const fn has_momentum(self) -> bool {
        matches!(self, Self::Sgd)
    }

    /// Does it use `beta1`, `beta2` and `eps`?
    #[must_use]
    pub const fn has_moments(self) -> bool {
        matches!(self, Self::Adam | Self::Adamw)
    }
}

impl ScheduleName {
    /// Does it use `every` and `gamma`?
    #[must_use]
    pub const fn has_drops(self) -> bool {
        matches!(self, Self::Step)
    }

    /// Does it use `floor`?
    #[must_use]
    pub const fn has_floor(self) -> bool {
        matches!(self, Self::Cosine)
    }
}

/// The settings of which some trials make no use.
const MAY_GO_UNUSED: [&str; 9] = [
    "training.optimizer.momentum",
    "training.optimizer.beta1",
    "training.optimizer.beta2",
    "training.optimizer.eps",
    "training.schedule.every",
    "training.schedule.gamma",
    "training.schedule.floor",
    "model.batch_norm",
    "model.dropout",
];

impl TrialConfig {
    /// Does the trial make use of the setting at this path?
    pub(super) fn uses(&self, path: &str) -> bool {
        let (optimizer, schedule) = (self.training.optimizer.name, self.training.schedule.name);
        match path {
            "training.optimizer.momentum" => optimizer.has_momentum(),
            "training.optimizer.beta1" | "training.optimizer.beta2" | "training.optimizer.eps" => {
                optimizer.has_moments()
            }
            "training.schedule.every" | "training.schedule.gamma" => schedule.has_drops(),
            "training.schedule.floor" => schedule.has_floor(),
            "model.batch_norm" | "model.dropout" => self.model.has_hidden_layers(),
            _ => true,
        }
    }
}

impl JobSpec {
    /// Writes down that its combinations are to differ, where that makes a difference: a job for which it makes none is the same, byte
    /// for byte, as in versions that didn't know the rule.
    pub(crate) fn name_distinct_combinations(&mut self) {
        let makes_a_difference =
            |table| self.may_repeat(table) || self.is_constrained_where_unused(table);
        if !(0..self.models.len()).any(makes_a_difference) {
            self.search.combinations = CombinationRule::All;
        }
    }

    /// Does a constraint name a setting, be it fixed, of which trials of a model table may make no use? Where combinations are to differ,
    /// these trials keep the constraint.
    fn is_constrained_where_unused(&self, table: usize) -> bool {
        let is_named = |path: &str| self.search.constraints.iter().any(|of| of.names(path));
        MAY_GO_UNUSED.iter().any(|path| is_named(path) && self.may_go_unused(table, path))
    }

    /// Could two combinations of a model table be one trial, or could a grid's points be other decimals?
    fn may_repeat(&self, table: usize) -> bool {
        let mut survey = Survey::default();
        // A space without a value is reported when its trials are made.
        let _ = self.close(table, &mut survey);
        let is_conditional = |asked: &Asked| survey.conditional.contains(&asked.name);
        let unused =
            |asked: &&Asked| is_conditional(asked) || self.may_go_unused(table, &asked.name);
        let always = |asked: &&Asked| !unused(asked);
        let may_go_unused = survey.asked.iter().any(|asked| unused(&asked));
        let has = |kind: Kind| survey.asked.iter().any(|asked| asked.kind == kind);
        match self.search.method {
            SearchMethod::Grid => may_go_unused || has(Kind::Twice) || has(Kind::Points),
            _ => {
                let is_endless = |asked: &Asked| matches!(asked.kind, Kind::Endless | Kind::Points);
                may_go_unused || !survey.asked.iter().filter(always).any(is_endless)
            }
        }
    }

    /// Are there trials of a model table that make no use of the dimension of this name?
    fn may_go_unused(&self, table: usize, name: &str) -> bool {
        let without = |uses: fn(OptimizerName) -> bool| {
            self.training.optimizer.name.values().into_iter().any(|name| !uses(*name))
        };
        let schedule = self.training.schedule.name;
        match name {
            "training.optimizer.momentum" => without(OptimizerName::has_momentum),
            "training.optimizer.beta1" | "training.optimizer.beta2" | "training.optimizer.eps" => {
                without(OptimizerName::has_moments)
            }
            "training.schedule.every" | "training.schedule.gamma" => !schedule.has_drops(),
            "training.schedule.floor" => !schedule.has_floor(),
            _ => match self.models.get(table) {
                Some(ModelSpace::Mlp(mlp)) => {
                    let is_of_layers = name.ends_with(".batch_norm") || name.ends_with(".dropout");
                    is_of_layers && mlp.hidden.values().into_iter().any(Vec::is_empty)
                }
                Some(ModelSpace::Cnn(cnn)) => {
                    name.ends_with(".pool_every") && cnn.pool.values().contains(&&Pool::None)
                }
                Some(ModelSpace::Resnet(_) | ModelSpace::Graph(_)) | None => false,
            },
        }
    }
}

/// Whether a trial makes use of a setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage<'a, T> {
    /// The name of the setting that decides on it.
    pub(super) decider: &'a str,
    pub(super) is_used: bool,
    /// The value where it doesn't.
    pub(super) unused: T,
}

/// Notes what a space asks for.
#[derive(Debug, Default)]
struct Survey {
    asked: Vec<Asked>,
    /// The names of dimensions that some trials have.
    conditional: BTreeSet<String>,
}

#[derive(Debug)]
struct Asked {
    name: String,
    kind: Kind,
}

/// The values of a dimension, as far as they say whether combinations come twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Some values, which differ.
    Counted,
    /// Some values, of which one is there twice.
    Twice,
    /// Any number of a range.
    Endless,
    /// The same, of which a grid takes some points.
    Points,
}

impl Survey {
    fn note(&mut self, name: &str, kind: Kind) {
        self.asked.push(Asked { name: name.to_owned(), kind });
    }
}

impl Chooser for Survey {
    fn index(&mut self, name: &str, _: usize) -> usize {
        self.note(name, Kind::Counted);
        0
    }

    fn one_of(&mut self, name: &str, values: &mut dyn ExactSizeIterator<Item = Value>) -> usize {
        let values: Vec<Value> = values.collect();
        let twice = (1..)
            .zip(&values)
            .any(|(next, value)| values.iter().skip(next).any(|other| other == value));
        self.note(name, if twice { Kind::Twice } else { Kind::Counted });
        0
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        let kind = match range.points {
            _ if range.steps().is_some() || range.low == range.high => Kind::Counted,
            Some(_) => Kind::Points,
            None => Kind::Endless,
        };
        self.note(name, kind);
        range.low
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        self.note(name, Kind::Endless);
        normal.mean
    }

    fn takes_absent(&self) -> bool {
        true
    }

    fn has(&mut self, name: &str, _: &dyn Presence) -> bool {
        self.conditional.insert(name.to_owned());
        true
    }

    fn chosen(&mut self, _: &str, _: Value) {}
}

impl<T: super::dimension::Value> Dimension<T> {
    /// The value that `chooser` takes of a setting that a trial may make no use of. Then it is `unused`, and nothing is chosen, but for
    /// one that is fixed, and where the chooser takes all settings.
    pub(super) fn close_used(
        &self,
        name: &str,
        chooser: &mut dyn Chooser,
        usage: Usage<'_, T>,
    ) -> Option<T> {
        let Usage { decider, is_used, unused } = usage;
        if matches!(self, Dimension::Fixed(_)) {
            return self.close(name, chooser);
        }
        let waits = chooser.waits_for(name, decider);
        if !chooser.takes_unused() && (waits || !is_used) {
            return Some(unused);
        }
        self.close(name, chooser)
    }
}
