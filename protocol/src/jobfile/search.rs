//! `[search]`.

use super::reader::{Node, Section, list};
use crate::{
    spec::{Goal, Loss, Metric, SearchMethod, SearchSpec, Spread},
    time::Millis,
};

/// The search procedure's word; its own keys are read later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Grid,
    Random,
}

const METHODS: &[(&str, Method)] = &[("grid", Method::Grid), ("random", Method::Random)];
const SPREADS: &[(&str, Spread)] = &[("breadth", Spread::Breadth), ("depth", Spread::Depth)];
/// Words of the design that this version refuses instead of passing over.
const LATER_METHODS: &[&str] = &["tpe", "asha", "hyperband", "pbt"];
const MAX_TRIALS: u32 = 1_000_000;
/// Far beyond what anybody compares by; the number of classes is known later.
const MAX_TOP_K: u32 = 1_000;

/// The word of `search.method`, reporting nothing: [`read`] does that.
pub(super) fn method(search: Option<&Node<'_>>) -> Option<Method> {
    let Some(node) = search else { return Some(Method::Grid) };
    match node.peek()?.optional("method") {
        None => Some(Method::Grid),
        Some(word) => {
            let word = word.as_string()?;
            METHODS.iter().find(|(name, _)| *name == word).map(|(_, method)| *method)
        }
    }
}

/// Reads `goal`, which is the metric's: the other would choose the worst trial.
fn goal(node: &Node<'_>, metric: Option<Metric>) -> Option<Goal> {
    let goal = node.word(&[("min", Goal::Min), ("max", Goal::Max)])?;
    match metric {
        Some(metric) if metric.goal() != goal => {
            let better = if goal == Goal::Max { "less" } else { "more" };
            let name = metric.name();
            node.refuse(format!("would choose the worst trial: of `{name}` {better} is better"))
        }
        _ => Some(goal),
    }
}

/// Reads `[search]`; all of it may be left out.
pub(super) fn read(
    node: Option<&Node<'_>>,
    method: Option<Method>,
    loss: Option<Loss>,
) -> Option<SearchSpec> {
    let by_loss = if loss == Some(Loss::Mse) { Metric::Loss } else { Metric::Accuracy };
    let Some(node) = node else {
        return Some(SearchSpec::new(SearchMethod::Grid, by_loss));
    };
    let section = node.section()?;
    let method = procedure(&section, method);
    let metric = match section.optional("metric") {
        None => Some(by_loss),
        Some(node) => metric(&node, loss),
    };
    let goal = match section.optional("goal") {
        None => metric.map(Metric::goal),
        Some(node) => goal(&node, metric),
    };
    let top_k = match section.optional("top_k") {
        None => Some(None),
        Some(node) if loss == Some(Loss::Mse) => {
            node.refuse("needs classes; `training.loss` is `\"mse\"`")
        }
        Some(node) => node.integer(1, MAX_TOP_K).map(Some),
    };
    let target =
        section.optional("target").map_or(Some(None), |node| target(&node, metric).map(Some));
    let wall_time =
        section.optional("wall_time").map_or(Some(None), |node| wall_time(&node).map(Some));
    let spread =
        section.optional("spread").map_or(Some(Spread::default()), |node| node.word(SPREADS));
    Some(SearchSpec {
        method: method?,
        metric: metric?,
        goal: goal?,
        top_k: top_k?,
        target: target?,
        wall_time: wall_time?,
        spread: spread?,
    })
}

/// Reads `target`: a value that the metric can have.
fn target(node: &Node<'_>, metric: Option<Metric>) -> Option<f64> {
    let target = node.number()?;
    match metric.map_or(Ok(()), |metric| metric.check_target(target)) {
        Ok(()) => Some(target),
        Err(why) => node.refuse(why),
    }
}

fn wall_time(node: &Node<'_>) -> Option<Millis> {
    match node.string("a length of time, e.g. `\"2h\"`,")?.parse() {
        Ok(Millis(0)) => node.refuse("is 0: nothing would be trained"),
        Ok(length) => Some(length),
        Err(wanted) => node.refuse(format!("is {}; {wanted}", node.describe())),
    }
}

fn procedure(section: &Section<'_>, method: Option<Method>) -> Option<SearchMethod> {
    match method {
        Some(Method::Grid) => match section.optional("trials") {
            None => Some(SearchMethod::Grid),
            Some(node) => {
                node.refuse("goes with `method = \"random\"`; a grid tries every combination")
            }
        },
        Some(Method::Random) => {
            let trials = section.required("trials", "how many combinations to draw")?;
            Some(SearchMethod::Random { trials: trials.integer(1, MAX_TRIALS)? })
        }
        None => {
            let node = section.optional("method")?;
            match node.as_string() {
                Some(word) if LATER_METHODS.contains(&word) => node.refuse(format!(
                    "is `\"{word}\"`, which this version has not got; it has `grid` and `random`"
                )),
                _ => node.word(METHODS).map(|_| SearchMethod::Grid),
            }
        }
    }
}

fn metric(node: &Node<'_>, loss: Option<Loss>) -> Option<Metric> {
    let words = Metric::ALL.map(|metric| (metric.name(), metric));
    let metric = node.word(&words)?;
    let Some(loss) = loss.filter(|loss| !metric.suits(*loss)) else { return Some(metric) };
    let (needs, name) = match loss {
        Loss::Mse => ("classes", "mse"),
        Loss::CrossEntropy => ("numbers", "cross-entropy"),
    };
    let names = words.iter().filter(|(_, other)| other.suits(loss)).map(|(name, _)| *name);
    let names: Vec<&str> = names.collect();
    node.refuse(format!(
        "is `\"{}\"`, which needs labels that are {needs}; with `training.loss = \"{name}\"` one of {} is wanted",
        metric.name(),
        list(&names)
    ))
}
