//! A job's settings of scheduling, merging and ending that differ from the defaults.

use crate::cli::render::text;
use serde::Serialize;
use sojourn_protocol::{
    money::MicroUsd,
    spec::{
        Alpha, DEFAULT_MERGE_IN_FLIGHT, JobSpec, LocalSteps, MergeSpec, OptimizerMerge,
        OrderChoice, Outer, Pbt, PlacementSpec, RuleSpec, SearchMethod, Staleness, Stopping, Tpe,
        hyperband,
    },
    time::Millis,
};

/// The settings that differ from the defaults.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<OrderChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merge: Option<MergeSpec>,
    /// Thousandths of the live slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    merge_below: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merge_in_flight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_steps: Option<LocalSteps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_time: Option<Millis>,
    /// Epochs that all trials together may train.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_epochs: Option<u64>,
    /// The most that all trials together may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cost: Option<MicroUsd>,
    /// The most that bought machines may cost for the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopping: Option<Stopping>,
    /// A procedure that suggests trials while others train.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<SearchMethod>,
    #[serde(skip)]
    metric: String,
    #[serde(skip)]
    epochs: u32,
}

impl ScheduleSettings {
    pub(crate) fn of(job: &JobSpec) -> Self {
        let placement = &job.placement;
        let usual =
            PlacementSpec::new(OrderChoice::Auto, placement.reproducible, placement.threads);
        let merges = placement.order != OrderChoice::Hop;
        let always = placement.order == OrderChoice::Merge;
        let below = placement.merge_below;
        let auto = placement.order == OrderChoice::Auto;
        Self {
            order: (!auto).then_some(placement.order),
            merge: placement
                .merge
                .or(always.then(MergeSpec::default))
                .filter(|merge| merges && (always || *merge != MergeSpec::default())),
            merge_in_flight: placement
                .merge_in_flight
                .filter(|limit| merges && (always || *limit != DEFAULT_MERGE_IN_FLIGHT)),
            merge_below: (auto && below != usual.merge_below).then_some(below),
            local_steps: (merges && placement.local_steps != usual.local_steps)
                .then_some(placement.local_steps),
            target: job.search.target,
            wall_time: job.search.wall_time,
            total_epochs: job.search.total_epochs,
            total_cost: job.search.total_cost,
            budget: placement.budget,
            stopping: job.search.stopping,
            method: Some(job.search.method)
                .filter(|method| method.suggests() || matches!(method, SearchMethod::Pbt(_))),
            epochs: job.training.epochs,
            metric: job.search.metric.name().to_owned(),
        }
    }

    /// Do trials end before their last epoch?
    pub(crate) const fn stops_early(&self) -> bool {
        self.stopping.is_some() || matches!(self.method, Some(SearchMethod::Epochs { .. }))
    }

    /// Does a program of the user's own suggest its trials?
    pub(crate) fn is_outside(&self) -> bool {
        self.method.is_some_and(|method| method.is_outside())
    }

    /// The same for people: what it is, and the text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let order = match self.order {
            Some(OrderChoice::Hop) => Some("hops alone, no merging".to_owned()),
            Some(OrderChoice::Merge) => Some("merging".to_owned()),
            Some(OrderChoice::Auto) | None => self.merge_below.map(|below| match below {
                0 => "hops alone, no merging".to_owned(),
                _ => format!(
                    "merging while fewer trials can go on than {} % of the slots",
                    f64::from(below) / 10.0
                ),
            }),
        };
        lines.extend(order.map(|order| ("order", order)));
        lines.extend(self.merge.map(|merge| ("merge", rule(&merge))));
        lines.extend(self.method.and_then(|method| Some(("search", procedure(&method)?))));
        lines.extend(self.merge_in_flight.map(|limit| ("in flight", format!("at most {limit}"))));
        if self.local_steps == Some(LocalSteps::BySpeed) {
            lines.push(("steps", "of a shard, by the speed of the host".to_owned()));
        }
        if let Some(target) = self.target {
            lines.push(("until", format!("{} is {target}", self.metric)));
        }
        if let Some(length) = self.wall_time {
            lines.push(("until", format!("{length} have passed")));
        }
        if let Some(epochs) = self.total_epochs {
            let epochs = text::counted(epochs, "epoch");
            lines.push(("until", format!("all trials together have trained {epochs}")));
        }
        if let Some(cost) = self.total_cost {
            lines.push(("until", format!("all trials together have cost {cost}")));
        }
        lines.extend(self.budget.map(|budget| ("budget", format!("{budget} for bought machines"))));
        lines.extend(self.stopping.map(|stopping| ("stop", said(&stopping, self.epochs))));
        lines
    }
}

/// A rule of early stopping, for trials of so many epochs.
fn said(stopping: &Stopping, epochs: u32) -> String {
    let name = stopping.name();
    let list = |rungs: &[u32]| {
        let below = rungs.iter().take(rungs.len().saturating_sub(1));
        let said: Vec<String> = below.map(u32::to_string).collect();
        said.join(", ")
    };
    match *stopping {
        Stopping::Asha(halving) | Stopping::Sha(halving) => {
            let (reduction, rungs) = (halving.reduction, list(&halving.rungs(epochs)));
            format!("{name}: one of {reduction} goes on after {rungs} of {epochs} epochs")
        }
        Stopping::Hyperband { reduction } => {
            let all = hyperband(epochs, reduction);
            let said = all.iter().map(|bracket| match list(&bracket.rungs) {
                rungs if rungs.is_empty() => format!("{} train to the end", bracket.trials),
                rungs => format!("{} are thinned out after epochs {rungs}", bracket.trials),
            });
            let said: Vec<String> = said.collect();
            format!("{name}: one of {reduction} goes on; of a whole round {}", said.join("; "))
        }
        Stopping::Median { min_epochs, min_trials } => format!(
            "{name}: what is worse than the median of at least {min_trials} others, from epoch {min_epochs} on"
        ),
        Stopping::Patience { epochs, min_delta } => match min_delta {
            0.0 => format!("{name}: what hasn't got better for {epochs} epochs"),
            _ => format!("{name}: what hasn't got better by {min_delta} for {epochs} epochs"),
        },
    }
}

/// How a procedure that suggests trials goes on: none of those that begin with all of them.
fn procedure(method: &SearchMethod) -> Option<String> {
    match *method {
        SearchMethod::Tpe(Tpe { trials, startup, batch }) => {
            let random = text::counted(u64::from(startup.min(trials)), "random combination");
            let rest = trials.saturating_sub(startup);
            let how = match batch {
                Some(batch) => format!("{batch} at a time by the results of all before"),
                None => "one at a time by the results so far".to_owned(),
            };
            Some(format!("{random}, then {rest} suggested, {how}"))
        }
        SearchMethod::Pbt(Pbt { trials, interval, quantile, .. }) => {
            let epochs = text::counted(u64::from(interval), "epoch");
            Some(format!(
                "a population of {trials}: every {epochs} the worst {} % go on from the best",
                quantile * 100.0
            ))
        }
        SearchMethod::AskTell { .. } => Some("a program of your own suggests trials".to_owned()),
        SearchMethod::Epochs { .. } => {
            Some("a program of your own says after each epoch which trials go on".to_owned())
        }
        SearchMethod::Grid | SearchMethod::Random { .. } | SearchMethod::Sobol { .. } => None,
    }
}

/// A rule with its parameters.
fn rule(merge: &MergeSpec) -> String {
    let (own, staleness) = match merge.rule {
        RuleSpec::VcAsgd { alpha, staleness } => {
            let alpha = match alpha {
                Alpha::Constant(alpha) => format!("alpha {alpha}"),
                Alpha::Epochs => "alpha e/(e+1)".to_owned(),
            };
            (vec![alpha], staleness)
        }
        RuleSpec::Delta { gain, staleness } => {
            (gain.map(|gain| format!("gain {gain}")).into_iter().collect(), staleness)
        }
        RuleSpec::Adasum { staleness } => (Vec::new(), staleness),
        RuleSpec::Fedbuff { arrivals, outer, staleness } => {
            let arrivals = arrivals.map(|arrivals| format!("{arrivals} arrivals"));
            let outer = match outer {
                Outer::Sgd { rate } => format!("outer sgd of rate {rate}"),
                Outer::Nesterov { rate, momentum } => {
                    format!("outer nesterov of rate {rate} and momentum {momentum}")
                }
            };
            (arrivals.into_iter().chain([outer]).collect(), staleness)
        }
        RuleSpec::DelayedNesterov { period, rate, momentum } => {
            let period = period.map(|period| format!("period {period}"));
            let others = [format!("rate {rate}"), format!("momentum {momentum}")];
            (period.into_iter().chain(others).collect(), Staleness::Constant)
        }
        RuleSpec::Easgd { moving_rate } => {
            let rate = moving_rate.map(|rate| format!("moving rate {rate}"));
            (rate.into_iter().collect(), Staleness::Constant)
        }
        RuleSpec::Downpour { rate } => (vec![format!("rate {rate}")], Staleness::Constant),
        RuleSpec::DcAsgd { lambda, decay } => {
            (vec![format!("lambda {lambda}"), format!("decay {decay}")], Staleness::Constant)
        }
    };
    let mut words = vec![merge.rule.name().to_owned()];
    words.extend(own);
    match staleness {
        Staleness::Constant => {}
        Staleness::Polynomial { a } => words.push(format!("staleness polynomial {a}")),
        Staleness::Hinge { a, b } => words.push(format!("staleness hinge {a}, {b}")),
    }
    match merge.optimizer {
        usual if usual == MergeSpec::of(merge.rule).optimizer => {}
        OptimizerMerge::Reset => words.push("optimiser reset".to_owned()),
        OptimizerMerge::Discount => words.push("momentum discounted".to_owned()),
        OptimizerMerge::Average => words.push("optimiser averaged".to_owned()),
        OptimizerMerge::Last => words.push("optimiser of the last".to_owned()),
    }
    words.extend(merge.canary.map(|most| format!("no result of {most} times the loss")));
    words.join(", ")
}
