//! Conditions and formulas that can't be: of settings that there aren't, of values that these never have, and in circles.

use super::{
    super::{Formula, JobSpec, Setting, TrialConfig, constraint},
    survey::Survey,
};
use sojourn_forms::{list, nearest};
use std::collections::BTreeSet;

/// The values that a message lists.
const SHOWN_VALUES: usize = 10;

/// Why a setting can't hang on others as it is to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum SpaceFault {
    /// A condition can't be.
    #[error("`when` of `{dimension}`: `{setting}` {why}")]
    Condition {
        /// The dimension that has the condition.
        dimension: String,
        /// The setting that is wrong in it, as it is written there.
        setting: String,
        /// The fault, as a text that follows the setting.
        why: String,
    },
    /// A formula can't be.
    #[error("`{dimension}` {why}")]
    Formula {
        /// The setting that is computed.
        dimension: String,
        /// The fault, as a text that follows the setting.
        why: String,
    },
}

/// A model table: its dimensions, and one of its configurations.
type Surveyed = (Survey, TrialConfig);

impl JobSpec {
    /// Can all conditions be decided, and all formulas computed?
    ///
    /// # Errors
    /// The first that can't, and why.
    pub fn check_space(&self) -> Result<(), SpaceFault> {
        self.space_faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Every condition that can't be decided, and every formula that can't be computed.
    pub(crate) fn space_faults(&self) -> BTreeSet<SpaceFault> {
        let survey = |table| Survey::of(self, table);
        let tables: Vec<Option<Surveyed>> = (0..self.models.len()).map(survey).collect();
        let mut faults = BTreeSet::new();
        for (own, surveyed) in tables.iter().enumerate() {
            let Some((survey, config)) = surveyed else { continue };
            for (path, asked) in &survey.asked {
                if let Some(formula) = &asked.formula
                    && let Err(why) = formula_fault(survey, config, path, formula)
                {
                    let dimension = asked.name.clone();
                    faults.insert(SpaceFault::Formula { dimension, why });
                }
                let Some((condition, _)) = &asked.condition else { continue };
                // Those of `[training]` may be decided by settings that only some model tables have.
                let is_of_table = path.starts_with("model.");
                let others = tables.iter().enumerate();
                let others = others.filter(|(table, _)| !is_of_table || *table == own);
                let others: Vec<&Surveyed> = others.filter_map(|(_, of)| of.as_ref()).collect();
                for (setting, values) in &condition.0 {
                    let fault = fault_of(&others, path, setting, values)
                        .or_else(|| circle(survey, config, path, setting));
                    faults.extend(fault.map(|why| SpaceFault::Condition {
                        dimension: asked.name.clone(),
                        setting: setting.clone(),
                        why,
                    }));
                }
            }
        }
        faults
    }

    /// The names of the settings of a model table that are computed.
    #[must_use]
    pub fn tied_settings(&self, table: usize) -> BTreeSet<String> {
        let survey = Survey::of(self, table);
        let asked = survey.into_iter().flat_map(|(survey, _)| survey.asked.into_values());
        asked.filter(|asked| asked.formula.is_some()).map(|asked| asked.name).collect()
    }

    /// The names of the dimensions of a model table whose values decide, directly or through others, on the dimensions that `of`
    /// names: whether a trial has them, and their numbers.
    #[must_use]
    pub fn deciding_dimensions(&self, table: usize, of: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
        let Some((survey, config)) = Survey::of(self, table) else { return BTreeSet::new() };
        let named = survey.asked.iter().filter(|(_, asked)| of(&asked.name));
        let mut next: Vec<String> = named.map(|(path, _)| path.clone()).collect();
        let mut deciding = BTreeSet::new();
        while let Some(path) = next.pop() {
            for decider in survey.deciders(&config, &path) {
                if let Some(asked) = survey.asked.get(&decider)
                    && deciding.insert(asked.name.clone())
                {
                    next.push(decider);
                }
            }
        }
        deciding
    }
}

/// The fault of a condition of the dimension at `path`: that a setting has one of these values, in trials of these tables.
fn fault_of(tables: &[&Surveyed], path: &str, setting: &str, values: &[Setting]) -> Option<String> {
    let mut having: Vec<(&Surveyed, String)> = Vec::new();
    for &of in tables {
        match constraint::find_path(&of.1, setting) {
            Ok(Some(found)) => having.push((of, found)),
            Ok(None) => {}
            Err(why) => return Some(why),
        }
    }
    if having.is_empty() {
        let hint = hint(setting, tables.iter().map(|(_, config)| config));
        return Some(format!("is no setting of this job's trials; {hint}"));
    }
    if having.iter().any(|(_, found)| found == path) {
        return Some("is the dimension itself; a condition is of other settings".to_owned());
    }
    let may_be = |value: &Setting| -> Option<bool> {
        let answers = having.iter().map(|((survey, config), at)| survey.may_be(config, at, value));
        let answers: Vec<Option<bool>> = answers.collect();
        if answers.contains(&Some(true)) { Some(true) } else { answers.into_iter().min()? }
    };
    if may_be(&Setting::List(values.to_vec())) == Some(true) {
        return None;
    }
    for value in values {
        match may_be(value) {
            Some(true) => {}
            Some(false) => {
                let listed = having.iter().flat_map(|((survey, of), at)| survey.listed(of, at));
                let listed: BTreeSet<String> = listed.map(|value| shown(&value)).collect();
                let some: Vec<&str> =
                    listed.iter().take(SHOWN_VALUES).map(String::as_str).collect();
                let more = if listed.len() > SHOWN_VALUES { " or others" } else { "" };
                let may_be = match some.as_slice() {
                    [] => String::new(),
                    some => format!("; it may be {}{more}", list(some)),
                };
                return Some(format!("is `{}` in no trial{may_be}", shown(value)));
            }
            None => {
                return Some(
                    "may be any number: a condition is of settings that have whole numbers, steps, or values in a list".to_owned(),
                );
            }
        }
    }
    if values.is_empty() {
        return Some("has no value; one, or a list of them, is wanted".to_owned());
    }
    None
}

/// Checks the formula of the setting at `path`.
fn formula_fault(
    survey: &Survey,
    config: &TrialConfig,
    path: &str,
    formula: &Formula,
) -> Result<(), String> {
    for name in formula.names() {
        match constraint::find_path(config, name)? {
            None => {
                let (arch, hint) = (config.model.name(), hint(name, [config]));
                return Err(format!(
                    "names `{name}`, which is no setting of trials with `arch = \"{arch}\"`; {hint}"
                ));
            }
            Some(found) if found == path => {
                return Err(format!("names `{name}`, which is the setting itself"));
            }
            Some(_) => {
                if let Some(why) = circle(survey, config, path, name) {
                    return Err(format!("names `{name}`, which {why}"));
                }
            }
        }
    }
    formula.check(config)
}

/// The setting that a wrong name may mean, or all that these trials have.
fn hint<'a>(name: &str, configs: impl IntoIterator<Item = &'a TrialConfig>) -> String {
    let known: BTreeSet<String> = configs.into_iter().flat_map(constraint::names).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", list(&known)),
    }
}

/// A value as a job file has it.
fn shown(value: &Setting) -> String {
    match value {
        Setting::Text(_) => serde_json::to_string(value).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// How the setting at `path` hangs on itself by way of one that its condition or its formula names.
fn circle(survey: &Survey, config: &TrialConfig, path: &str, setting: &str) -> Option<String> {
    let first = constraint::find_path(config, setting).ok().flatten()?;
    let (mut seen, mut next) = (BTreeSet::new(), vec![first]);
    while let Some(at) = next.pop() {
        let deciders = survey.deciders(config, &at);
        if deciders.contains(path) {
            return Some(format!("hangs on `{path}` itself, by way of `{at}`"));
        }
        next.extend(deciders.into_iter().filter(|decider| seen.insert(decider.clone())));
    }
    None
}
