//! Settings that a job may have, and that are hardly meant: what `validate` and `submit` warn of.

use crate::cli::{render::text, submit::jobfile::Job};
use sojourn_protocol::{
    manifest::Labels,
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    spec::{
        DEFAULT_BATCH_SIZE, Loss, Optimizer, OptimizerName, SearchMethod, Stopping, Tpe,
        is_replicate,
    },
};
use sojourn_workgen::SearchError;
use std::{collections::BTreeSet, thread::available_parallelism};

/// So many classes may well be classes, however few rows each has.
const MAX_SURE_CLASSES: usize = 20;
/// A class has so many rows at least, where the labels aren't numbers to be predicted.
const MIN_ROWS_OF_CLASS: u64 = 10;
/// The largest learning rate with which anything was trained. Adam moves each weight by about as much in every step.
const MAX_SGD_RATE: f64 = 10.0;
const MAX_ADAM_RATE: f64 = 1.0;

/// The warnings of a job over data with these labels, whose training shards have so many rows.
pub(crate) fn of(job: &Job, labels: &Labels, shards: &[u32]) -> Vec<String> {
    let cores = available_parallelism().map_or(u32::MAX, |cores| u32::saturating_from(cores.get()));
    let threads = job.spec.placement.threads;
    let all = [
        regression(job, labels, shards),
        threads_above(threads, cores),
        large_batch(job, shards),
        large_rate(job),
        nothing_varies(job),
        too_few_differ(job),
        nothing_suggested(job),
        nobody_stops(job),
    ];
    all.into_iter().flatten().collect()
}

/// Whole numbers as classes, with few rows of each.
fn regression(job: &Job, labels: &Labels, shards: &[u32]) -> Option<String> {
    let Labels::Classes(names) = labels else { return None };
    let rows: u64 = shards.iter().map(|rows| u64::from(*rows)).sum();
    let are_numbers = names.iter().all(|name| name.parse::<i64>().is_ok());
    let is_chosen = job.trials.iter().any(|trial| trial.config.training.loss == Loss::CrossEntropy);
    let are_few = rows < to_u64(names.len()).saturating_mul(MIN_ROWS_OF_CLASS);
    (names.len() > MAX_SURE_CLASSES && are_numbers && is_chosen && are_few).then(|| {
        let (classes, rows) = (names.len(), text::counted(rows, "row"));
        format!(
            "the labels are {classes} classes of whole numbers, in {rows}: regression? then `loss = \"mse\"` under `[training]`"
        )
    })
}

fn threads_above(threads: u32, cores: u32) -> Option<String> {
    (threads > cores).then(|| {
        let cores = text::counted(u64::from(cores), "core");
        format!(
            "`threads = {threads}`, and this machine has {cores}: a host with fewer cores than threads trains more slowly than with one thread a core"
        )
    })
}

fn large_batch(job: &Job, shards: &[u32]) -> Option<String> {
    let smallest = *shards.iter().min()?;
    let batches = job.trials.iter().map(|trial| trial.config.training.batch_size);
    let largest = batches.max()?;
    // Few rows, and nothing said about batches, is no mistake.
    (largest > smallest && largest != DEFAULT_BATCH_SIZE).then(|| {
        let rows = text::counted(u64::from(smallest), "row");
        format!(
            "`batch_size = {largest}`, and a shard has {rows}: a batch is never larger than its shard; take fewer shards or smaller batches"
        )
    })
}

fn large_rate(job: &Job) -> Option<String> {
    let is_large = |of: &Optimizer| match of.name {
        OptimizerName::Sgd => of.lr > MAX_SGD_RATE,
        OptimizerName::Adam | OptimizerName::Adamw => of.lr > MAX_ADAM_RATE,
    };
    let optimizers = job.trials.iter().map(|trial| &trial.config.training.optimizer);
    let large: Vec<&Optimizer> = optimizers.filter(|of| is_large(of)).collect();
    let largest = large.iter().map(|of| of.lr).fold(0.0, f64::max);
    let names: BTreeSet<&str> = large.iter().map(|of| of.name.word()).collect();
    (!large.is_empty()).then(|| {
        let trials = text::counted(to_u64(large.len()), "trial");
        let names = names.into_iter().collect::<Vec<_>>().join(" and ");
        format!("{trials} with learning rates up to {largest}: {names} hardly survives these, and the loss becomes NaN")
    })
}

/// Several combinations of a space that has one.
fn nothing_varies(job: &Job) -> Option<String> {
    let method = &job.spec.search.method;
    let wanted = method.trials().filter(|trials| *trials > 1)?;
    let combination = |trial: &sojourn_workgen::Trial| {
        let mut choices = trial.choices.clone();
        choices.retain(|name, _| !is_replicate(name));
        (trial.model, serde_json::json!(choices).to_string())
    };
    let known: BTreeSet<_> = job.trials.iter().map(combination).collect();
    (known.len() == 1).then(|| {
        format!(
            "`method = \"{}\"` may try {wanted} combinations, and the space has one: nothing in it varies",
            method.name()
        )
    })
}

/// More combinations than the space has that differ.
fn too_few_differ(job: &Job) -> Option<String> {
    let (differ, method) = (job.differ.filter(|differ| *differ > 1)?, &job.spec.search.method);
    let asked = method.trials()?;
    let told = SearchError::UsedUp { differ: to_usize(differ), asked };
    Some(match method {
        SearchMethod::Pbt(_) => format!("{told}: the population has each of them several times"),
        _ if method.suggests() => format!("{told}: the search ends when they are tried"),
        _ => format!("{told}: the search has {}", text::counted(u64::from(differ), "combination")),
    })
}

/// Suggestions that would begin when there are to be no more trials.
fn nothing_suggested(job: &Job) -> Option<String> {
    let SearchMethod::Tpe(Tpe { trials, .. }) = job.spec.search.method else { return None };
    let startup = job.spec.search.startup();
    (startup >= trials && trials > 0).then(|| {
        let trials = text::counted(u64::from(trials), "trial");
        format!(
            "`startup` is {startup}, and the search has {trials}: all are random, and `tpe` suggests none"
        )
    })
}

/// A rule that waits for more trials than there are.
fn nobody_stops(job: &Job) -> Option<String> {
    let Some(Stopping::Median { min_trials, .. }) = job.spec.search.stopping else { return None };
    let trials = to_u64(trials_in_all(job));
    (u64::from(min_trials) >= trials).then(|| {
        let trials = text::counted(trials, "trial");
        format!(
            "`min_trials` is {min_trials}, and the search has {trials}: `median` waits for so many others, and stops none"
        )
    })
}

/// How many trials there are to be, those that are suggested later among them.
pub(crate) fn trials_in_all(job: &Job) -> usize {
    let method = &job.spec.search.method;
    let suggested = method.trials().filter(|_| method.suggests());
    suggested.map_or(job.trials.len(), |trials| {
        to_usize(job.differ.unwrap_or(trials)).saturating_mul(job.spec.trials_per_configuration())
    })
}
