//! `search.stopping`.

use super::reader::JobFileNode;
use crate::spec::{Halving, Stopping};
use sojourn_forms::{Node, Table, list};

/// The rules, each with the keys that it takes.
const RULES: &[(&str, Rule)] = &[
    ("asha", Rule::Asha),
    ("sha", Rule::Sha),
    ("hyperband", Rule::Hyperband),
    ("median", Rule::Median),
    ("patience", Rule::Patience),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Asha,
    Sha,
    Hyperband,
    Median,
    Patience,
}

impl Rule {
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Rule::Asha | Rule::Sha => &["rule", "reduction", "min_epochs"],
            Rule::Hyperband => &["rule", "reduction"],
            Rule::Median => &["rule", "min_epochs", "min_trials"],
            Rule::Patience => &["rule", "epochs", "min_delta"],
        }
    }
}

/// Reads `stopping = "asha"`, or a table with the rule and its keys. `epochs` are those of each trial.
pub(super) fn read(node: &Node<'_>, epochs: Option<u32>) -> Option<Stopping> {
    let stopping = match node.is_table() {
        false => of_rule(node.word(RULES)?, None)?,
        true => {
            let section = node.section()?;
            let rule = section.required("rule", "a rule of early stopping")?.word(RULES)?;
            if let Some(key) = others(&section, rule) {
                let keys: Vec<&str> = rule.keys().iter().skip(1).copied().collect();
                return section.refuse(
                    key,
                    format!("goes with another rule; this one takes {}", list(&keys)),
                );
            }
            of_rule(rule, Some(&section))?
        }
    };
    match epochs.map_or(Ok(()), |epochs| stopping.check(epochs)) {
        Ok(()) => Some(stopping),
        Err(why) => node.refuse(format!("can't be: {why}")),
    }
}

/// Is it the word of a rule?
pub(super) fn is_rule(word: &str) -> bool {
    RULES.iter().any(|(name, _)| *name == word)
}

/// A key of the table that its rule doesn't take.
fn others<'a>(section: &Table<'a>, rule: Rule) -> Option<&'a str> {
    section.entries().map(|(key, _)| key).find(|key| !rule.keys().contains(key))
}

fn of_rule(rule: Rule, section: Option<&Table<'_>>) -> Option<Stopping> {
    let number = |key: &str, default: u32| match section.and_then(|section| section.optional(key)) {
        None => Some(default),
        Some(node) => node.integer(0, u32::MAX),
    };
    let first = Halving::default();
    let halving = || {
        let (reduction, min_epochs) =
            (number("reduction", first.reduction), number("min_epochs", first.min_epochs));
        Some(Halving { reduction: reduction?, min_epochs: min_epochs? })
    };
    Some(match rule {
        Rule::Asha => Stopping::Asha(halving()?),
        Rule::Sha => Stopping::Sha(halving()?),
        Rule::Hyperband => Stopping::Hyperband { reduction: number("reduction", first.reduction)? },
        Rule::Median => {
            let (min_epochs, min_trials) = (number("min_epochs", 1), number("min_trials", 5));
            Stopping::Median { min_epochs: min_epochs?, min_trials: min_trials? }
        }
        Rule::Patience => {
            let epochs = number("epochs", 5);
            let delta = section.and_then(|section| section.optional("min_delta"));
            let min_delta = delta.map_or(Some(0.0), |node| node.number());
            Stopping::Patience { epochs: epochs?, min_delta: min_delta? }
        }
    })
}
