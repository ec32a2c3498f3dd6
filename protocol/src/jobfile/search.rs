//! `[search]`.

use super::{
    Seeds,
    method::{self, Method},
    placement::amount,
    reader::JobFileNode,
    stopping,
};
use crate::{
    cross_validation::{MAX_FOLDS, MIN_FOLDS},
    spec::{
        CombinationRule, Constraint, ConstraintFault, Constraints, Goal, JobSpec, Loss,
        MAX_CONSTRAINTS, Metric, MetricRule, OwnMetric, PastJob, SearchMethod, SearchSpec, Spread,
        TrainingSpace, is_sum_name,
    },
    time::Millis,
};
use sojourn_forms::{Node, Table, list, nearest};
use std::collections::BTreeMap;

const SPREADS: &[(&str, Spread)] = &[("breadth", Spread::Breadth), ("depth", Spread::Depth)];
const COMBINATIONS: &[(&str, CombinationRule)] =
    &[("distinct", CombinationRule::Distinct), ("all", CombinationRule::All)];
/// The most times that a configuration is trained.
const MAX_REPEAT: u32 = 1_000;
/// Far beyond what anybody compares by; the number of classes is known later.
const MAX_TOP_K: u32 = 1_000;

/// Reads `goal`, which is the metric's: the other would choose the worst trial.
fn goal(node: &Node<'_>, metric: Option<&Metric>, own: &Own) -> Option<Goal> {
    let goal = node.word(&[("min", Goal::Min), ("max", Goal::Max)])?;
    match metric {
        Some(metric) if own.goal(metric).is_some_and(|its| its != goal) => {
            let better = if goal == Goal::Max { "less" } else { "more" };
            let name = metric.name();
            node.refuse(format!("would choose the worst trial: of `{name}` {better} is better"))
        }
        _ => Some(goal),
    }
}

/// The part that users' own models have in the metrics.
#[derive(Debug)]
pub(super) struct Own {
    /// Are there any?
    pub(super) models: bool,
    /// `[metrics]`, where it could be read.
    pub(super) metrics: Option<BTreeMap<String, OwnMetric>>,
}

impl Own {
    /// The rule for a metric.
    fn rule(&self, metric: &Metric) -> Option<MetricRule> {
        metric.rule_of(self.metrics.as_ref()?)
    }

    /// The direction in which a metric gets better, where that is known.
    fn goal(&self, metric: &Metric) -> Option<Goal> {
        self.metrics.as_ref().map_or_else(|| metric.goal(), |metrics| metric.goal_of(metrics))
    }
}

const RULES: &[(&str, MetricRule)] = &[
    ("mean", MetricRule::Mean),
    ("root_mean", MetricRule::RootMean),
    ("exp_mean", MetricRule::ExpMean),
    ("macro_f1", MetricRule::MacroF1),
    ("confusion", MetricRule::Confusion),
    ("auc", MetricRule::Auc),
];

/// Reads `[metrics]`; all of it may be left out.
pub(super) fn metrics(
    node: Option<&Node<'_>>,
    models: bool,
) -> Option<BTreeMap<String, OwnMetric>> {
    let Some(node) = node else { return Some(BTreeMap::new()) };
    if !models {
        return node.refuse("goes with `arch = \"graph\"`: built-in models have their own metrics");
    }
    let Some(table) = node.peek() else { return node.refuse("isn't a table of metrics by name") };
    // Every entry is looked at, so that every problem is reported.
    let all: Vec<Option<(String, OwnMetric)>> = table.entries().map(own_metric).collect();
    all.into_iter().collect()
}

fn own_metric((name, node): (&str, Node<'_>)) -> Option<(String, OwnMetric)> {
    if !is_sum_name(name) {
        return node.refuse("has a name with other characters than letters, digits, `_`, `-`, `.`");
    }
    let section = node.section_of(&["of", "as"])?;
    let of = section.required("of", "the name of one of the model's sums").and_then(|node| {
        let of = node.string("the name of one of the model's sums")?;
        if is_sum_name(of) { Some(of.to_owned()) } else { node.refuse("can't be a sum's name") }
    });
    let rule = section.optional("as").map_or(Some(MetricRule::Mean), |node| node.word(RULES));
    Some((name.to_owned(), OwnMetric { of: of?, rule: rule? }))
}

/// Reads `repeat`: how many times each configuration is trained, with a seed of its own each time; once where nothing is said.
pub(super) fn repeat(search: Option<&Node<'_>>, seeds: Option<&Seeds>) -> Option<u32> {
    let Some(node) = search.and_then(|search| search.peek()?.optional("repeat")) else {
        return Some(1);
    };
    match seeds {
        Some(Seeds::Several(..)) => {
            node.refuse("can't go with `seed = { choice = [...] }`, which says the seeds itself")
        }
        Some(Seeds::One(_)) | None => {
            let times = node.integer(1, MAX_REPEAT)?;
            let seed = seeds.map_or(0, Seeds::first);
            match seed.checked_add(u64::from(times) - 1) {
                Some(_) => Some(times),
                None => node.refuse(format!(
                    "is {times}, and counts up from `seed`, which is {seed}: {} is the last seed there is",
                    u64::MAX
                )),
            }
        }
    }
}

/// Reads `[search]`; all of it may be left out.
pub(super) fn read(
    node: Option<&Node<'_>>,
    method: Option<Method>,
    training: Option<&TrainingSpace>,
    own: &Own,
) -> Option<SearchSpec> {
    let (loss, epochs) = (training.map(|of| of.loss), training.map(|of| of.epochs));
    let by_loss =
        if loss == Some(Loss::Mse) || own.models { Metric::Loss } else { Metric::Accuracy };
    let Some(node) = node else {
        let metrics = own.metrics.clone()?;
        let combinations = CombinationRule::Distinct;
        let grid = SearchSpec::new(SearchMethod::Grid, by_loss);
        return Some(SearchSpec { combinations, metrics, ..grid });
    };
    let section = node.section()?;
    let stopping = section
        .optional("stopping")
        .map_or(Some(None), |node| stopping::read(&node, epochs).map(Some));
    let trials = stopping.flatten().and_then(|of| of.trials(epochs?));
    let method = method::read(&section, method, trials, epochs);
    if let (Some(method), Some(Some(rule))) = (method, stopping)
        && let Err(why) = SearchSpec::check_combination(&method, &rule)
    {
        return section.refuse("stopping", why);
    }
    // Specifications without it are those of before, with all combinations.
    let combinations = section
        .optional("combinations")
        .map_or(Some(CombinationRule::Distinct), |node| node.word(COMBINATIONS));
    let constraints =
        section.optional("constraints").map_or(Some(Vec::new()), |node| constraints(&node));
    let metric = match section.optional("metric") {
        None => Some(by_loss),
        Some(node) => metric(&node, loss, own),
    };
    let goal = match section.optional("goal") {
        None => metric.as_ref().and_then(|metric| known_goal(&section, metric, own)),
        Some(node) => goal(&node, metric.as_ref(), own),
    };
    let top_k = match section.optional("top_k") {
        None => Some(None),
        Some(node) if loss == Some(Loss::Mse) => {
            node.refuse("needs classes; `training.loss` is `\"mse\"`")
        }
        Some(node) => node.integer(1, MAX_TOP_K).map(Some),
    };
    let target = section
        .optional("target")
        .map_or(Some(None), |node| target(&node, metric.as_ref(), own).map(Some));
    let wall_time =
        section.optional("wall_time").map_or(Some(None), |node| wall_time(&node).map(Some));
    let total_epochs = section
        .optional("total_epochs")
        .map_or(Some(None), |node| node.integer(1, u64::MAX).map(Some));
    let total_cost =
        section.optional("total_cost").map_or(Some(None), |node| amount(&node).map(Some));
    let history = section
        .optional("history")
        .map_or(Some(None), |node| history(&node, method.as_ref()).map(Some));
    // Specifications without it are those of before, in breadth.
    let spread = section.optional("spread").map_or(Some(Spread::Depth), |node| node.word(SPREADS));
    let folds = section.optional("folds").map_or(Some(None), |node| folds(&node, method).map(Some));
    let refit = section.optional("refit").map_or(Some(false), |node| {
        let refit = node.boolean()?;
        if refit && matches!(folds, Some(None)) {
            return node
                .refuse("is for `folds`: without them the best trial has all training rows");
        }
        Some(refit)
    });
    Some(SearchSpec {
        method: method?,
        combinations: combinations?,
        folds: folds?,
        refit: refit?,
        constraints: constraints?,
        metric: metric?,
        goal: goal?,
        metrics: own.metrics.clone()?,
        top_k: top_k?,
        target: target?,
        wall_time: wall_time?,
        total_epochs: total_epochs?,
        total_cost: total_cost?,
        history: history?,
        spread: spread?,
        stopping: stopping?,
    })
}

/// Reads `folds`.
fn folds(node: &Node<'_>, method: Option<SearchMethod>) -> Option<u32> {
    if let Some(Err(why)) = method.map(|method| method.check_folds()) {
        return node.refuse(why);
    }
    node.integer(MIN_FOLDS, MAX_FOLDS)
}

/// Reads `target`: a value that the metric can have.
fn target(node: &Node<'_>, metric: Option<&Metric>, own: &Own) -> Option<f64> {
    let (target, metrics) = (node.number()?, own.metrics.as_ref()?);
    match metric.map_or(Ok(()), |metric| metric.check_target(target, metrics)) {
        Ok(()) => Some(target),
        Err(why) => node.refuse(why),
    }
}

/// Reads `history`: the name or the number of a job.
fn history(node: &Node<'_>, method: Option<&SearchMethod>) -> Option<Box<PastJob>> {
    if method.is_some_and(|method| !matches!(method, SearchMethod::Tpe(_))) {
        return node.refuse("goes with `method = \"tpe\"`, which learns from it");
    }
    let job = match node.is_integer() {
        true => node.integer(1, u64::MAX)?.to_string(),
        false => node.string("the name or the number of a job")?.to_owned(),
    };
    Some(Box::new(PastJob { job, trials: Vec::new() }))
}

fn wall_time(node: &Node<'_>) -> Option<Millis> {
    match node.string("a length of time, e.g. `\"2h\"`,")?.parse() {
        Ok(Millis(0)) => node.refuse("is 0: nothing would be trained"),
        Ok(length) => Some(length),
        Err(wanted) => node.refuse(format!("is {}; {wanted}", node.describe())),
    }
}

/// Reads `constraints`. Whether there are the keys that they name is known once all is read: see [`check_constraints`].
fn constraints(node: &Node<'_>) -> Option<Vec<Constraint>> {
    let texts = node.list("a list of comparisons, e.g. `[\"width <= 64\"]`,")?;
    if texts.len() > MAX_CONSTRAINTS {
        return node.refuse(format!("has more than {MAX_CONSTRAINTS} entries"));
    }
    let constraint = |node: &Node<'_>| {
        let text = node.string("a comparison, e.g. `\"width <= 64\"`,")?;
        Constraint::parse(text).map_or_else(|error| node.refuse(error.to_string()), Some)
    };
    // Every entry is looked at, so that every problem is reported.
    let all: Vec<Option<Constraint>> = texts.iter().map(constraint).collect();
    all.into_iter().collect()
}

/// Can the constraints of a job be decided?
pub(super) fn check_constraints(search: Option<&Node<'_>>, spec: &JobSpec) -> Option<()> {
    let Err(fault) = Constraints::new(spec) else { return Some(()) };
    let (constraint, why) = match fault {
        ConstraintFault::Undecided { constraint, why } => (constraint, why),
        ConstraintFault::Unknown { constraint, name, known } => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let hint = match nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", list(&known)),
            };
            (constraint, format!("names `{name}`, which is no key of this job's trials; {hint}"))
        }
    };
    let texts = search?.peek()?.optional("constraints")?.list("a list of comparisons")?;
    texts.get(constraint)?.refuse(why)
}

/// The direction of a metric for which the file says none.
fn known_goal(section: &Table<'_>, metric: &Metric, own: &Own) -> Option<Goal> {
    if let Some(goal) = own.goal(metric) {
        return Some(goal);
    }
    let text =
        format!("is missing: `\"min\"` or `\"max\"`, whichever is better of `{}`", metric.name());
    section.refuse("goal", text)
}

fn metric(node: &Node<'_>, loss: Option<Loss>, own: &Own) -> Option<Metric> {
    if own.models
        && let Some(metric) = node.as_string().and_then(Metric::parse)
    {
        let rule = own.rule(&metric);
        if rule == Some(MetricRule::Confusion) {
            return node.refuse("is a matrix, and no number to compare by");
        }
        if rule.is_some() || matches!(metric, Metric::Own(_)) {
            return Some(metric);
        }
    }
    let words = Metric::ALL.each_ref().map(|metric| (metric.name(), metric));
    let metric = node.word(&words)?.clone();
    let Some(loss) = loss.filter(|loss| !metric.suits(*loss)) else { return Some(metric) };
    let (needs, name) = match loss {
        Loss::Mse => ("classes", "mse"),
        Loss::CrossEntropy => ("numbers", "cross-entropy"),
        // No job file says it.
        Loss::Own => ("known", "own"),
    };
    let names = words.iter().filter(|(_, other)| other.suits(loss)).map(|(name, _)| *name);
    let names: Vec<&str> = names.collect();
    node.refuse(format!(
        "is `\"{}\"`, which needs labels that are {needs}; with `training.loss = \"{name}\"` one of {} is wanted",
        metric.name(),
        list(&names)
    ))
}
