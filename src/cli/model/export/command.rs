//! The command line of `sojourn export`: which of its three forms is wanted, and what it says at its end.

use super::{
    answers::Answers,
    checkpoint, mlflow,
    tables::{self, table::Table},
    tensorboard::TensorBoard,
};
use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_ref::JobRef,
        model::atomic_file::NewFile,
        render::text,
        submit::wait::{Polled, poll},
        terminal::{connection::Connection, exit::Failure, output, signals},
    },
};
use serde::Serialize;
use sojourn_protocol::{ids::JobId, quantity::to_u64};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// The time between two looks at a job whose event files are kept up to date.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// The outputs of an export, and where to write them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB", required_unless_present = "json")]
    job: Option<JobRef>,
    #[command(flatten)]
    choice: checkpoint::Choice,
    /// Write a model into this file; an existing file is replaced.
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with_all = ["csv", "parquet", "tensorboard", "mlflow"]
    )]
    output: Option<PathBuf>,
    /// Write the tables as trials.csv, hops.csv and metrics.csv into this folder.
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write the tables as trials.parquet, hops.parquet and metrics.parquet into this folder.
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
    /// With FILE, write the tables into it as one JSON object with three arrays; `-` is stdout. Without FILE, print one JSON
    /// object about what was written.
    #[arg(long, value_name = "FILE")]
    json: Option<Option<PathBuf>>,
    /// Write event files for TensorBoard into this folder: a run for each trial.
    #[arg(long, value_name = "DIR")]
    tensorboard: Option<PathBuf>,
    /// Go on with the event files as epochs are evaluated, until the job has ended or Ctrl-C is pressed.
    #[arg(long, requires = "tensorboard", conflicts_with_all = ["csv", "parquet"])]
    follow: bool,
    /// Push parameters, metrics and the best model to this tracking server of MLflow: an experiment with the job's name, a run for each
    /// trial. A push that comes again adds what is new.
    #[arg(long, value_name = "URL", conflicts_with = "follow")]
    mlflow: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// The JSON of an export of tables or event files.
#[derive(Debug, Serialize)]
struct Report {
    job: JobId,
    /// Rows by table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    rows: BTreeMap<&'static str, u64>,
    /// The files of tables.
    #[serde(serialize_with = "text::paths_in_json")]
    files: Vec<PathBuf>,
    /// Trials that have a run for TensorBoard.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u64>,
    /// The push to a tracking server, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    mlflow: Option<mlflow::Pushed>,
}

/// Where tables go.
struct TableFiles<'a> {
    csv: Option<&'a Path>,
    parquet: Option<&'a Path>,
    json: Option<&'a Path>,
}

impl TableFiles<'_> {
    const fn any(&self) -> bool {
        self.csv.is_some() || self.parquet.is_some() || self.json.is_some()
    }

    fn to_stdout(&self) -> bool {
        self.json == Some(Path::new("-"))
    }
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let (job, json) = job_and_json(args)?;
    let files = TableFiles { csv: args.csv.as_deref(), parquet: args.parquet.as_deref(), json };
    check(args, &files)?;
    let client = args.connection.client()?;
    let job = job.find(&client).await?;
    if let Some(path) = &args.output {
        return checkpoint::run(&client, job, &args.choice, path, args.json.is_some()).await;
    }
    // From here on, so that a signal during the first answers is heard.
    let stopped = args.follow.then(signals::requested);
    let mut answers = Answers::read(&client, job).await?;
    let mut report =
        Report { job, rows: BTreeMap::new(), files: Vec::new(), runs: None, mlflow: None };
    if files.any() {
        let tables = tables::tables(&answers);
        report.rows = tables.iter().map(|table| (table.name, to_u64(table.rows()))).collect();
        report.files = write(&tables, &files)?;
    }
    if let Some(path) = &args.tensorboard {
        let mut board = TensorBoard::open(path, &answers)?;
        let mut runs = board.update(&answers)?;
        if let Some(stopped) = stopped {
            output::remark(&format!("following job {job} in {}; Ctrl-C ends it", path.display()));
            tokio::select! {
                ended = follow(&client, &mut answers, &mut board, &mut runs) => ended?,
                () = stopped => {}
            }
        }
        report.runs = Some(to_u64(runs));
    }
    if let Some(url) = &args.mlflow {
        if let Some(best) = &answers.detail.summary.best {
            args.choice.check_verified(best.trial, best.unverified)?;
        }
        report.mlflow = Some(mlflow::push(&client, url, &answers).await?);
    }
    match (files.to_stdout(), args.json.is_some() && json.is_none()) {
        (true, _) => Ok(()),
        (false, true) => output::json(&report),
        (false, false) => output::line(&said(&report, args)),
    }
}

/// The job, and the file of `--json`. What follows `--json` is its file only where a job is named elsewhere: else it is the job.
fn job_and_json(args: &Args) -> Result<(JobRef, Option<&Path>), Failure> {
    let file = args.json.as_ref().and_then(Option::as_deref);
    match (&args.job, file) {
        (Some(job), file) => Ok((job.clone(), file)),
        (None, Some(job)) => {
            let Ok(job) = job.to_string_lossy().parse();
            Ok((job, None))
        }
        (None, None) => Err(Failure::call("name a job: its number, or its name")),
    }
}

/// Refuses calls that ask for nothing, or for two things at once.
fn check(args: &Args, files: &TableFiles<'_>) -> Result<(), Failure> {
    let elsewhere = args.tensorboard.is_some() || args.mlflow.is_some();
    if args.output.is_none() && !files.any() && !elsewhere {
        return Err(Failure::call(
            "nothing to export: name a model's file (`-o FILE`), tables (`--csv DIR`, `--parquet DIR`, `--json FILE`), event \
             files (`--tensorboard DIR`) or a tracking server (`--mlflow URL`)",
        ));
    }
    if let (Some(_), Some(file)) = (&args.output, files.json) {
        return Err(Failure::call(format!(
            "`-o` writes a model, and `--json {}` tables: make two calls of it",
            file.display()
        )));
    }
    // Where `-o` can't be with another flag, clap doesn't miss it.
    if args.output.is_none() && args.choice.any() {
        return Err(Failure::call(
            "`--trial`, `--best` and `--last` choose a model for `-o`; tables and event files have all trials",
        ));
    }
    if args.follow && files.any() {
        return Err(Failure::call("`--follow` goes on with event files; tables are written once"));
    }
    Ok(())
}

/// Writes the tables; the paths of the files.
fn write(tables: &[Table], files: &TableFiles<'_>) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    if let Some(folder) = files.csv {
        written.extend(write_each(tables, folder, "csv", |table, file| {
            tables::csv_file::write(table, file).map_err(|error| error.to_string())
        })?);
    }
    if let Some(folder) = files.parquet {
        written.extend(write_each(tables, folder, "parquet", |table, file| {
            tables::parquet_file::write(table, file).map_err(|error| error.to_string())
        })?);
    }
    match files.json {
        Some(_) if files.to_stdout() => {
            let mut stdout = io::stdout().lock();
            tables::json_file::write(tables, &mut stdout)
                .and_then(|()| stdout.flush())
                .map_err(|error| Failure::output(&error))?;
        }
        Some(path) => {
            let mut file = NewFile::create(path)?;
            tables::json_file::write(tables, &mut file).map_err(|error| failed(path, &error))?;
            file.finish()?;
            written.push(path.to_owned());
        }
        None => {}
    }
    Ok(written)
}

/// Writes a file for each table into the folder; their paths.
fn write_each(
    tables: &[Table],
    folder: &Path,
    extension: &str,
    write: impl Fn(&Table, &mut NewFile) -> Result<(), String>,
) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let one = |table: &Table| {
        let path = folder.join(table.name).with_extension(extension);
        let mut file = NewFile::create(&path)?;
        write(table, &mut file).map_err(|error| failed(&path, &error))?;
        file.finish()?;
        Ok(path)
    };
    tables.iter().map(one).collect()
}

/// Goes on with the event files until the job has ended, through restarts of the server.
async fn follow(
    client: &ApiClient,
    answers: &mut Answers,
    board: &mut TensorBoard,
    runs: &mut usize,
) -> Result<(), Failure> {
    while !answers.detail.summary.state.has_ended() {
        let fresh = poll(
            async || answers.ask_again(client).await,
            async |polled| match polled {
                Polled::Answer(fresh) => Ok(Some(fresh)),
                Polled::Away(reason) => {
                    output::remark(&format!("{reason}; waiting for the server"));
                    Ok(None)
                }
            },
        )
        .await?;
        answers.take(fresh)?;
        *runs = board.update(answers)?;
        tokio::time::sleep(FOLLOW_INTERVAL).await;
    }
    Ok(())
}

fn said(report: &Report, args: &Args) -> String {
    let mut lines: Vec<String> =
        report.files.iter().map(|path| path.display().to_string()).collect();
    if !report.rows.is_empty() {
        let rows = ["trials", "hops", "metrics"].map(|table| {
            let rows = report.rows.get(table).copied().unwrap_or_default();
            format!("{} {table}", text::count(rows))
        });
        lines.push(format!("job {}: {}", report.job, rows.join(", ")));
    }
    if let (Some(runs), Some(folder)) = (report.runs, &args.tensorboard) {
        let runs = text::counted(runs, "run");
        lines.push(format!("{}: {runs} of job {}", folder.display(), report.job));
    }
    if let (Some(pushed), Some(url)) = (&report.mlflow, &args.mlflow) {
        let (runs, values) =
            (text::counted(pushed.runs, "run"), text::counted(pushed.new_values, "new value"));
        let model = pushed.model.map(|trial| format!(", the model of trial {trial}"));
        let model = model.unwrap_or_default();
        lines.push(format!("{url}: {runs} of job {}, {values}{model}", report.job));
    }
    lines.join("\n")
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::work(format!("can't write `{}`: {error}", path.display()))
}
