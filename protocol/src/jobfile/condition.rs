//! `when` of a dimension, which says with which values of other settings a trial has it, and formulas of other settings.

use super::element::{Bounds, Element};
use crate::spec::{
    Formula, JobSpec, Setting, SpaceFault,
    dimension::{Condition, MAX_CONDITION_SETTINGS},
};
use sojourn_forms::{Node, Table};

/// Reads a condition. Whether there are such settings and values is known once all is read: see [`check`].
pub(super) fn read(node: &Node<'_>) -> Option<Condition> {
    let Some(table) = node.peek() else {
        return node.refuse(format!(
            "is {}; a table of settings with their values is wanted, e.g. `{{ optimizer = \"sgd\" }}`",
            node.describe()
        ));
    };
    let mut settings = Vec::new();
    flatten(&table, "", &mut settings);
    // Every entry is looked at, so that every problem is reported.
    let all: Vec<Option<(String, Vec<Setting>)>> =
        settings.into_iter().map(|(name, node)| Some((name, values(&node)?))).collect();
    match all.len() {
        0 => node.refuse("is empty; a setting with its values is wanted"),
        1..=MAX_CONDITION_SETTINGS => all.into_iter().collect::<Option<_>>().map(Condition),
        _ => node.refuse(format!("names more than {MAX_CONDITION_SETTINGS} settings")),
    }
}

/// The settings of a condition by their names. A dotted name that isn't quoted is a table in TOML.
fn flatten<'a>(table: &Table<'a>, prefix: &str, into: &mut Vec<(String, Node<'a>)>) {
    for (key, node) in table.entries() {
        let name = format!("{prefix}{key}");
        match node.peek() {
            Some(inner) => flatten(&inner, &format!("{name}."), into),
            None => into.push((name, node)),
        }
    }
}

/// The values of a setting: one, or a list of them.
fn values(node: &Node<'_>) -> Option<Vec<Setting>> {
    Some(match Setting::read(node, Bounds::Any)? {
        Setting::List(values) => values,
        value => vec![value],
    })
}

/// Reads a formula. Whether there are such settings is known once all is read: see [`check`].
pub(super) fn formula(node: &Node<'_>) -> Option<Formula> {
    let text = node.string("a formula of other settings, e.g. `\"0.1 * batch_size / 256\"`,")?;
    match Formula::parse(text) {
        Ok(formula) if formula.names_settings() => Some(formula),
        Ok(_) => node.refuse(format!(
            "is {}, which names no other setting; a number has no quotes",
            node.describe()
        )),
        Err(error) => node.refuse(format!("is {}, and no formula: it {error}", node.describe())),
    }
}

/// Can the conditions of a job's dimensions be decided, and the formulas be computed?
pub(super) fn check(root: &Table<'_>, spec: &JobSpec) -> Option<()> {
    let faults = spec.space_faults();
    if faults.is_empty() {
        return Some(());
    }
    for fault in faults {
        match fault {
            SpaceFault::Condition { dimension, setting, why } => {
                let when = dimension_at(root, &dimension)?.peek()?.optional("when")?;
                let mut settings = Vec::new();
                flatten(&when.peek()?, "", &mut settings);
                settings.iter().find(|(name, _)| *name == setting)?.1.refuse::<()>(why);
            }
            SpaceFault::Formula { dimension, why } => {
                let node = dimension_at(root, &dimension)?;
                let formula = node.peek().and_then(|table| table.optional("formula"));
                formula.unwrap_or(node).refuse::<()>(why);
            }
        }
    }
    None
}

/// The value of the dimension of this name in the file.
fn dimension_at<'a>(root: &Table<'a>, name: &str) -> Option<Node<'a>> {
    if let Some((table, key)) = name.strip_prefix("model[").and_then(|rest| rest.split_once("].")) {
        let tables = root.optional("model")?.list("a list of tables")?;
        let own = tables.get(table.parse::<usize>().ok()?)?.peek()?;
        // The window of text is said with the data.
        let window = || root.optional("data")?.peek()?.optional(key);
        return own.optional(key).or_else(window);
    }
    let mut keys = name.split('.');
    let first = root.optional(keys.next()?)?;
    keys.try_fold(first, |node, key| node.peek()?.optional(key))
}
