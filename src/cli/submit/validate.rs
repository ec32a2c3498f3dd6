//! `sojourn validate`: finds whatever `submit` would refuse, and shows what it would run. Sends nothing; with
//! `--cost` it asks a server for speeds and prices.

use crate::cli::{
    render::{schedule::ScheduleSettings, text},
    submit::{
        columns,
        graphs::{self, PythonArgs},
        init_weights,
        jobfile::{self, Job, Problem},
        prices::{self, DataSize, Prices},
        reading::{LeftOut, Reading},
        sharding::{self, Chosen, Known},
        warnings,
        workspace::{self, Workspace},
    },
    terminal::{causes::ingest_failure, connection::Connection, exit::Failure, output},
};
use serde::Serialize;
use sojourn_ingest::{Progress, Summary, Surveyed};
use sojourn_protocol::{
    column::Column,
    manifest::Labels,
    quantity::{SaturatingFrom as _, to_u64},
    spec::{JobSpec, Visits},
    trial_name::trial_name,
};
use sojourn_workgen::Trial;
use std::{collections::BTreeMap, path::PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job file; paths in it are relative to its folder.
    #[arg(value_name = "JOB.TOML")]
    file: PathBuf,
    /// Ask the server what the search should cost on the types of machines that were bought for it, and how long it should
    /// take.
    #[arg(long)]
    cost: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    python: PythonArgs,
    #[command(flatten)]
    connection: Connection,
}

/// The JSON of a valid job: its trials, shards and models.
#[derive(Debug, Serialize)]
struct Report {
    valid: bool,
    name: String,
    trials: usize,
    /// Combinations that `search.constraints` left out.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    epochs: u32,
    /// Passes over a shard in one visit.
    #[serde(skip_serializing_if = "is_one")]
    local_epochs: u32,
    /// Trials x epochs x shards.
    hops: u64,
    features: usize,
    /// The columns, where the data has them by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<Column>,
    shape: Vec<u32>,
    /// The number of classes; none where labels are numbers.
    classes: Option<usize>,
    /// Rows of each shard.
    train: Vec<u32>,
    /// Why so many, as far as is known without a server, where the job file leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    shards_because: Option<String>,
    /// Whether the order in which trials visit shards is fixed, and why, as far as is known without a server, where the
    /// job file leaves it open.
    visits: Visits,
    #[serde(skip_serializing_if = "Option::is_none")]
    visits_because: Option<String>,
    /// The reasons for which another run of the job may differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_differ: Vec<String>,
    valid_rows: Vec<u32>,
    /// Folds of the training shards, each of which is validated on in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    folds: Option<u32>,
    /// Whether the best configuration is trained on all of them in the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    refit: bool,
    test: Vec<u32>,
    /// Rows that are left out because they can't be read, by their source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad_rows: Vec<LeftOut>,
    /// Parameters of each architecture, largest first.
    models: Vec<ModelReport>,
    #[serde(flatten)]
    schedule: ScheduleSettings,
    /// With `--cost`: what it should cost by type of machine, and the trade of money for time.
    #[serde(flatten)]
    prices: Prices,
    #[serde(skip)]
    price_lines: Vec<String>,
    #[serde(skip)]
    outputs: u32,
    /// The hosts whose results are verified, and what that takes.
    verify: &'static str,
    /// Warnings of what is allowed, and hardly meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

#[derive(Debug, Serialize)]
struct ModelReport {
    #[serde(flatten)]
    model: ModelSize,
    trials: usize,
}

/// An architecture over given data, by its size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ModelSize {
    /// Batch norm's running statistics among them.
    parameters: u64,
    /// Parameters that are trained.
    trainable: u64,
    arch: &'static str,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let reported = |failure: Failure, problems: Vec<Problem>| match args.json {
        false => failure,
        true => {
            let answer = serde_json::json!({ "valid": false, "problems": problems });
            output::json(&answer).err().unwrap_or_else(|| failure.silent())
        }
    };
    let mut job =
        jobfile::read(&args.file).map_err(|(failure, problems)| reported(failure, problems))?;
    let checked = check_data(&mut job, &args.python).map_err(|failure| {
        let problems = failure.messages().iter().map(|message| Problem {
            line: None,
            key: None,
            message: message.clone(),
        });
        let problems = problems.collect();
        reported(failure, problems)
    })?;
    let mut report = report(&job, checked);
    if args.cost {
        let sum = |shards: &[u32]| shards.iter().map(|rows| u64::from(*rows)).sum();
        let size = DataSize {
            shape: &report.shape,
            outputs: report.outputs,
            train_rows: sum(&report.train),
            valid_rows: sum(&report.valid_rows),
        };
        let prices = prices::of(&args.connection.client()?, &job, &size).await?;
        report.price_lines = match prices.are_unknown() {
            true => vec!["not known: the server has bought no machines so far".to_owned()],
            false => prices::lines(&prices, &job),
        };
        report.prices = prices;
    }
    if args.json { output::json(&report) } else { output::line(&text(args, &report)) }
}

type Models = BTreeMap<ModelSize, usize>;

/// A job over its data.
pub(crate) struct Checked {
    summary: Summary,
    models: Models,
    chosen: Chosen,
    left_out: Vec<LeftOut>,
}

/// The data, the models that would be trained on it, and what would be chosen without any host where the job leaves
/// something open.
pub(crate) fn check_data(job: &mut Job, python: &PythonArgs) -> Result<Checked, Failure> {
    let mut reading = Reading::new();
    let (spool, spec) = (workspace::parent(), job.spec.clone());
    let tell = &mut |progress: Progress<'_>| reading.tell(progress);
    let (summary, models, chosen) = tokio::task::block_in_place(|| {
        let data =
            sojourn_ingest::survey(&spec, &job.folder, &spool, tell).map_err(ingest_failure)?;
        columns::take(job, &data)?;
        if job.spec.has_graphs() {
            let workspace = Workspace::new()?;
            graphs::export_all(job, &data, python, workspace.path())?;
        }
        let models = check(job, &data)?;
        let chosen = sharding::choose(job, &data, &Known::default())?;
        let summary = data.check(&chosen.cut, tell).map_err(ingest_failure)?;
        Ok::<_, Failure>((summary, models, chosen))
    })?;
    Ok(Checked { summary, models, chosen, left_out: reading.left_out() })
}

/// Does the job fit its data? The sizes of its models.
pub(crate) fn check(job: &Job, data: &Surveyed<'_>) -> Result<Models, Failure> {
    job.spec.search.check(data.labels()).map_err(Failure::call)?;
    job.spec.training.class_weights.check(data.labels()).map_err(Failure::call)?;
    let models = check_models(&job.trials, data)?;
    init_weights::check(job, data.shape(), data.labels(), data.features(), data.categories())?;
    Ok(models)
}

/// Can every trial's model be built for this data? Their sizes, and the trials of each.
fn check_models(trials: &[Trial], data: &Surveyed<'_>) -> Result<Models, Failure> {
    let (shape, outputs) = (data.shape(), data.labels().outputs());
    let mut models = BTreeMap::new();
    for (index, trial) in trials.iter().enumerate() {
        trial.config.check_columns(data.columns(), shape).map_err(Failure::call)?;
        let model = sojourn_model::validate(&trial.config, shape, outputs).map_err(|error| {
            let name = trial_name(trial.config.model.name(), &trial.choices);
            Failure::call(format!("trial {index} ({name}) can't be built: {error}"))
        })?;
        let size = ModelSize {
            parameters: model.parameter_count(),
            trainable: model.trainable_count(),
            arch: trial.config.model.name(),
        };
        *models.entry(size).or_insert(0) += 1;
    }
    Ok(models)
}

/// Hops of an epoch of all trials together, and of the final model where there is to be one.
fn hops_per_epoch(spec: &JobSpec, trials: u64, shards: u64) -> u64 {
    let Some(folds) = spec.search.folds else { return trials.saturating_mul(shards) };
    let trained = (0..folds).filter_map(|fold| Some(spec.fold(fold)?.trained_of(shards)));
    let of_trials = (trials / u64::from(folds)).saturating_mul(trained.sum());
    of_trials.saturating_add(if spec.search.refit { shards } else { 0 })
}

fn report(job: &Job, checked: Checked) -> Report {
    let Checked { summary, models, chosen, left_out } = checked;
    let epochs = job.spec.training.epochs;
    let trials = warnings::trials_in_all(job);
    let shards = to_u64(summary.train.len());
    let models = models.into_iter().rev();
    let warnings = warnings::of(job, &summary.labels, &summary.train);
    let outputs = summary.labels.outputs();
    Report {
        valid: true,
        name: job.spec.name.clone(),
        trials,
        left_out: job.left_out,
        epochs,
        local_epochs: job.spec.training.local_epochs,
        hops: u64::from(epochs) * hops_per_epoch(&job.spec, to_u64(trials), shards),
        folds: job.spec.search.folds,
        refit: job.spec.search.refit,
        features: summary.width,
        classes: match &summary.labels {
            Labels::Classes(names) => Some(names.len()),
            Labels::Number | Labels::None => None,
        },
        columns: summary.columns,
        shape: summary.shape,
        train: summary.train,
        may_differ: chosen.may_differ(&job.spec),
        shards_because: chosen.why,
        visits: chosen.visits.visits,
        visits_because: chosen.visits.is_chosen().then(|| chosen.visits.to_string()),
        valid_rows: summary.valid,
        test: summary.test,
        bad_rows: left_out,
        models: models.map(|(model, trials)| ModelReport { model, trials }).collect(),
        schedule: ScheduleSettings::of(&job.spec),
        prices: Prices::default(),
        price_lines: Vec::new(),
        outputs,
        verify: job.spec.placement.verified_hosts(),
        warnings,
    }
}

fn text(args: &Args, report: &Report) -> String {
    let file = args.file.display();
    let mut lines = vec![
        format!("{file} is good: job `{}`", report.name),
        format!("data    {}", content(report)),
        format!("train   {}", shards(&report.train)),
        match report.folds {
            None => format!("valid   {}", shards(&report.valid_rows)),
            Some(folds) => format!("valid   each of {folds} folds of these in turn"),
        },
    ];
    if report.refit {
        let final_model = "then the best configuration on all of them, as long as its folds were at their best in the mean";
        lines.push(format!("refit   {final_model}"));
    }
    if let Some(why) = &report.shards_because {
        lines.push(format!("shards  {why}; `submit` asks the server for its hosts"));
    }
    if !report.test.is_empty() {
        lines.push(format!("test    {}", shards(&report.test)));
    }
    for model in &report.models {
        let trials = text::counted(u64::saturating_from(model.trials), "trial");
        let ModelSize { parameters, trainable, arch } = &model.model;
        let trained = match parameters == trainable {
            true => String::new(),
            false => format!(" ({} trained)", text::count(*trainable)),
        };
        let parameters = text::counted(*parameters, "parameter");
        lines.push(format!("model   {arch}, {parameters}{trained}, {trials}"));
    }
    lines.push(format!("verify  {}", report.verify));
    lines.extend(
        report.schedule.lines().into_iter().map(|(what, text)| format!("{what:<7} {text}")),
    );
    let visits = match &report.visits_because {
        Some(why) => format!("{why}; `submit` asks the server for its hosts"),
        None => report.visits.name().to_owned(),
    };
    lines.push(format!("visits  {visits}"));
    lines.extend(report.may_differ.iter().map(|what| format!("note    {what}")));
    if report.left_out > 0 {
        let combinations = text::counted(u64::saturating_from(report.left_out), "combination");
        lines.push(format!("search  {combinations} left out by `constraints`"));
    }
    let trials = text::counted(u64::saturating_from(report.trials), "trial");
    let epochs = text::counted(u64::from(report.epochs), "epoch");
    let hops = text::counted(report.hops, "hop");
    let most = if report.schedule.stops_early() || report.refit { "at most " } else { "" };
    let bound = if report.schedule.is_outside() { "at most " } else { "" };
    let passes = match report.local_epochs {
        1 => String::new(),
        passes => format!(" of {passes} passes each"),
    };
    lines.push(format!("work    {bound}{trials}, {most}{epochs}, {most}{hops}{passes}"));
    lines.extend(report.price_lines.iter().map(|line| format!("cost    {line}")));
    lines.extend(report.warnings.iter().map(|warning| format!("warning {warning}")));
    lines.join("\n")
}

/// `784 features, [1, 28, 28], 10 classes`; the shape of a flat row is said by their number. Columns one by one.
fn content(report: &Report) -> String {
    if !report.columns.is_empty() {
        let columns: Vec<String> = report.columns.iter().map(columns::said).collect();
        return columns.join(", ");
    }
    let labels = match report.classes {
        Some(classes) => text::classes(to_u64(classes)),
        None => "numbers as labels".to_owned(),
    };
    let features = text::counted(to_u64(report.features), "feature");
    match report.shape.as_slice() {
        [_] => format!("{features}, {labels}"),
        shape => format!("{features}, {shape:?}, {labels}"),
    }
}

fn shards(rows: &[u32]) -> String {
    let total: u64 = rows.iter().map(|rows| u64::from(*rows)).sum();
    let count = to_u64(rows.len());
    format!("{} in {}", text::counted(total, "row"), text::counted(count, "shard"))
}
