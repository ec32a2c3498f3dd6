//! Cases, and keys that vary: what a file sets anew in each row of its table.

use super::error::{ScenarioError, wrong};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// `[vary]`: lists of values by key.
pub(super) fn of_vary(value: Value) -> Result<BTreeMap<String, Vec<Value>>, ScenarioError> {
    let Value::Table(table) = value else {
        return wrong("`vary` must be a table: `[vary]`, with a list of values for each key");
    };
    let mut varied = BTreeMap::new();
    flatten("", table, &mut |key, value| match value {
        Value::Array(values) if !values.is_empty() => {
            varied.insert(key, values);
            Ok(())
        }
        _ => {
            Err(ScenarioError::Wrong(format!("`vary.{key}` must be a list of at least one value")))
        }
    })?;
    Ok(varied)
}

/// `[[case]]`: names, and values by key.
pub(super) fn of_cases(value: Value) -> Result<Vec<(String, Table)>, ScenarioError> {
    let Value::Array(cases) = value else {
        return wrong("`case` must be a list of tables: `[[case]]`");
    };
    let mut all = Vec::new();
    for (n, case) in cases.into_iter().enumerate() {
        let Value::Table(mut case) = case else { return wrong("each `[[case]]` must be a table") };
        let name = match case.remove("name") {
            Some(Value::String(name)) => name,
            None => format!("case {}", n + 1),
            Some(_) => return wrong("the `name` of a `[[case]]` must be a text"),
        };
        let mut flat = Table::new();
        flatten("", case, &mut |key, value| {
            flat.insert(key, value);
            Ok(())
        })?;
        all.push((name, flat));
    }
    Ok(all)
}

/// Tables in a table become keys with dots, as they are when they are written so.
fn flatten(
    prefix: &str,
    table: Table,
    found: &mut dyn FnMut(String, Value) -> Result<(), ScenarioError>,
) -> Result<(), ScenarioError> {
    for (key, value) in table {
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, found)?,
            value => found(key, value)?,
        }
    }
    Ok(())
}

/// A key with its value, as `job.epochs=2`: a number, a text, or whatever else TOML has. A bare word is a text.
pub(super) fn of_setting(text: &str) -> Result<(String, Value), ScenarioError> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(ScenarioError::Wrong(format!("`{text}` is no setting: `key=value` is wanted")));
    };
    let (key, value) = (key.trim(), value.trim());
    let read = toml::from_str::<Table>(&format!("value = {value}"));
    let read = read.ok().and_then(|mut table| table.remove("value"));
    Ok((key.to_owned(), read.unwrap_or_else(|| Value::String(value.to_owned()))))
}

/// Most rows of a scenario file.
pub(super) const MAX_ROWS: usize = 10_000;

/// Refuses what varies where it and the cases have too many combinations.
pub(super) fn check_rows(
    varied: &BTreeMap<String, Vec<Value>>,
    cases: usize,
) -> Result<(), ScenarioError> {
    let rows =
        varied.values().try_fold(cases.max(1), |rows, values| rows.checked_mul(values.len()));
    if rows.is_some_and(|rows| rows <= MAX_ROWS) {
        return Ok(());
    }
    wrong("`vary` and `case` have over 10,000 combinations")
}

/// Every combination, the last key fastest.
pub(super) fn combinations(varied: &BTreeMap<String, Vec<Value>>) -> Vec<Vec<(&str, &Value)>> {
    let mut all = vec![Vec::new()];
    for (key, values) in varied {
        let mut longer = Vec::new();
        for before in &all {
            for value in values {
                let mut combination: Vec<(&str, &Value)> = before.clone();
                combination.push((key, value));
                longer.push(combination);
            }
        }
        all = longer;
    }
    all
}

/// Sets `job.trials` and the like; `hosts.count` in all groups, `hosts.0.count` in the first.
pub(super) fn set(table: &mut Table, path: &str, value: &Value) -> Result<(), ScenarioError> {
    let Some((key, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value.clone());
        return Ok(());
    };
    match table.entry(key).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, rest, value),
        Value::Array(groups) => {
            let (index, rest) = match rest.split_once('.') {
                Some((n, rest)) if n.parse::<usize>().is_ok() => (n.parse::<usize>().ok(), rest),
                _ => (None, rest),
            };
            let count = groups.len();
            if index.is_some_and(|index| index >= count) {
                return Err(ScenarioError::Wrong(format!(
                    "`{path}` is varied, but `{key}` has only {count} (counted from 0)"
                )));
            }
            for (n, group) in groups.iter_mut().enumerate() {
                if let Value::Table(inner) = group
                    && index.is_none_or(|index| index == n)
                {
                    set(inner, rest, value)?;
                }
            }
            Ok(())
        }
        _ => Err(ScenarioError::Wrong(format!("`{path}` can't be varied: `{key}` is no table"))),
    }
}
