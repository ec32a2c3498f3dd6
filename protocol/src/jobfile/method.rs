//! `search.method`, `search.trials`.

use super::{reader::JobFileNode, stopping};
use crate::spec::{Pbt, SearchMethod, Tpe};
use sojourn_forms::{Node, Table, list};

/// The search procedure's word; its own keys are read later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Grid,
    Random,
    Sobol,
    Tpe,
    Pbt,
    AskTell,
    Epochs,
}

const METHODS: &[(&str, Method)] = &[
    ("grid", Method::Grid),
    ("random", Method::Random),
    ("sobol", Method::Sobol),
    ("tpe", Method::Tpe),
    ("pbt", Method::Pbt),
    ("ask-tell", Method::AskTell),
    ("epochs", Method::Epochs),
];
const MAX_TRIALS: u32 = 1_000_000;
/// The most that a program may suggest where the file doesn't say.
const DEFAULT_SUGGESTED: u32 = 1_000;

impl Method {
    /// The keys of its table.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Method::Tpe => &["name", "startup", "batch"],
            Method::Pbt => &["name", "interval", "quantile", "resample"],
            Method::Grid | Method::Random | Method::Sobol | Method::AskTell | Method::Epochs => {
                &["name"]
            }
        }
    }
}

/// The word of `search.method`, reporting nothing: [`read`] does that.
pub(super) fn method(search: Option<&Node<'_>>) -> Option<Method> {
    let Some(node) = search else { return Some(Method::Grid) };
    let Some(node) = node.peek()?.optional("method") else { return Some(Method::Grid) };
    let name = if node.is_table() { node.peek()?.optional("name")? } else { node };
    let word = name.as_string()?;
    METHODS.iter().find(|(name, _)| *name == word).map(|(_, method)| *method)
}

/// Reads the procedure. `trials`: how many there are where the file doesn't say. `epochs` are those of each trial.
pub(super) fn read(
    section: &Table<'_>,
    method: Option<Method>,
    trials: Option<u32>,
    epochs: Option<u32>,
) -> Option<SearchMethod> {
    let Some(method) = method else { return refuse_word(&section.optional("method")?) };
    let node = section.optional("method");
    let own = match node.as_ref().filter(|node| node.is_table()) {
        None => None,
        Some(node) => Some(node.section()?),
    };
    if let Some(own) = &own
        && let Some(key) = others(own, method)
    {
        let keys: Vec<&str> = method.keys().iter().skip(1).copied().collect();
        let takes = if keys.is_empty() { "none".to_owned() } else { list(&keys) };
        return own.refuse(key, format!("goes with another procedure; this one takes {takes}"));
    }
    let own = own.as_ref();
    let read = match method {
        Method::Grid => match section.optional("trials") {
            None => SearchMethod::Grid,
            Some(node) => {
                return node.refuse("goes with another `method`; a grid tries every combination");
            }
        },
        Method::Random => SearchMethod::Random { trials: count(section, trials)? },
        Method::Sobol => SearchMethod::Sobol { trials: count(section, trials)? },
        Method::Tpe => {
            let (trials, startup) = (count(section, trials), number(own, "startup", Tpe::STARTUP));
            let batch = own.and_then(|own| own.optional("batch"));
            let batch = batch.map_or(Some(None), |node| node.integer(0, u32::MAX).map(Some));
            SearchMethod::Tpe(Tpe { trials: trials?, startup: startup?, batch: batch? })
        }
        Method::Pbt => {
            let first = Pbt::default();
            let (trials, interval) =
                (count(section, None), number(own, "interval", first.interval));
            let quantile = fraction(own, "quantile", first.quantile);
            let resample = fraction(own, "resample", first.resample);
            SearchMethod::Pbt(Pbt {
                trials: trials?,
                interval: interval?,
                quantile: quantile?,
                resample: resample?,
            })
        }
        Method::AskTell => SearchMethod::AskTell { trials: most(section)? },
        Method::Epochs => SearchMethod::Epochs { trials: most(section)? },
    };
    match epochs.map_or(Ok(()), |epochs| read.check(epochs)) {
        Ok(()) => Some(read),
        Err(why) => section.refuse("method", format!("can't be: {why}")),
    }
}

/// A key of the table that its procedure doesn't take.
fn others<'a>(section: &Table<'a>, method: Method) -> Option<&'a str> {
    section.entries().map(|(key, _)| key).find(|key| !method.keys().contains(key))
}

/// Reports a word that is no procedure.
fn refuse_word(node: &Node<'_>) -> Option<SearchMethod> {
    let name = match node.is_table() {
        true => node.section()?.required("name", "a search procedure")?,
        false => match node.as_string() {
            Some(word) if stopping::is_rule(word) => {
                return node.refuse(format!(
                    "is `\"{word}\"`, a rule of early stopping: set `method = \"random\"` and `stopping = \"{word}\"`"
                ));
            }
            _ => return node.word(METHODS).map(|_| SearchMethod::Grid),
        },
    };
    name.word(METHODS).map(|_| SearchMethod::Grid)
}

fn number(section: Option<&Table<'_>>, key: &str, default: u32) -> Option<u32> {
    match section.and_then(|section| section.optional(key)) {
        None => Some(default),
        Some(node) => node.integer(0, u32::MAX),
    }
}

fn fraction(section: Option<&Table<'_>>, key: &str, default: f64) -> Option<f64> {
    match section.and_then(|section| section.optional(key)) {
        None => Some(default),
        Some(node) => node.number(),
    }
}

/// `trials` of a procedure that needs it; `known` are as many as the rule of early stopping takes of itself.
fn count(section: &Table<'_>, known: Option<u32>) -> Option<u32> {
    if let (None, Some(trials)) = (section.optional("trials"), known) {
        return Some(trials);
    }
    section.required("trials", "how many combinations to try")?.integer(1, MAX_TRIALS)
}

/// `trials` of a procedure for which it is only a bound.
fn most(section: &Table<'_>) -> Option<u32> {
    match section.optional("trials") {
        None => Some(DEFAULT_SUGGESTED),
        Some(node) => node.integer(1, MAX_TRIALS),
    }
}
