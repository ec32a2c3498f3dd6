//! `sojourn trials`: all trials of a job, as a leader board; stops, revives, retries and clones some.

use crate::cli::{
    jobs::{job_ref::JobRef, trials_change::Changes, trials_csv},
    render::{
        scores,
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, output, simple::show},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::Retry,
    ids::TrialId,
    view::{Configuration, TrialView, configurations, replicates},
};

/// Characters of a trial's name in a table: its settings are in it, so that it has more room than other names.
const MAX_NAME_CHARS: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Print a JSON array, with learning curves, in the order of trials.
    #[arg(long)]
    json: bool,
    /// Print CSV, a line for each trial, in the order of trials.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// A line for each evaluated epoch of each trial, with mean losses.
    #[arg(long, requires = "csv")]
    curves: bool,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    if args.changes.any() {
        let request = args.changes.request(&client, job).await?;
        let answer = client.call(endpoints::ChangeSearch::request(job, &request)).await?;
        let mut added = Vec::new();
        if !answer.added.is_empty() {
            let trials = client.call(endpoints::Trials::request(job)).await?;
            let new = trials.iter().filter(|of| answer.added.contains(&of.trial));
            added.extend(new.map(|of| (of.trial, of.origin)));
        }
        let is_same = |of: &&Retry| of.values.is_empty();
        let retried = request.retry.iter().filter(is_same).map(|of| of.trial);
        let retried: Vec<TrialId> = retried.collect();
        return show(&answer, args.json, |_| args.changes.said(&retried, &added));
    }
    let mut trials = client.call(endpoints::Trials::request(job)).await?;
    if args.json {
        return output::json(&trials);
    }
    if args.curves {
        return trials_csv::curves(&trials);
    }
    let detail = client.call(endpoints::Job::request(job)).await?;
    if args.csv {
        return trials_csv::trials(&detail.summary.metric, &trials);
    }
    trials.sort_by(|a, b| TrialView::leader_board(detail.spec.search.goal, a, b));
    let grid = whole_board(&detail.summary.metric, &trials);
    let mut lines = vec![grid.text()];
    let all = configurations(&trials, detail.spec.search.goal);
    if !all.is_empty() {
        let board = configurations_board(&detail.summary.metric, &all);
        lines.push(format!("\nover {}\n{board}", replicates(&trials)));
    }
    let tests: Vec<String> =
        trials.iter().filter_map(|trial| trial.test.as_ref()).map(scores::test).collect();
    if !tests.is_empty() {
        lines.push("\non the test data".to_owned());
        lines.extend(tests);
    }
    output::line(&lines.join("\n"))
}

/// The mean and the deviation of the metric, for trials that differ in their seed or fold alone.
fn configurations_board(metric: &str, configurations: &[Configuration]) -> String {
    let mut grid = Grid::new(&[
        ("MODEL", Column::Text),
        ("CHOICES", Column::Text),
        ("TRIALS", Column::Number),
        (&format!("MEAN {}", metric.to_uppercase()), Column::Number),
        ("DEVIATION", Column::Number),
    ]);
    for of in configurations {
        let or_dash = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), text::metric);
        let trials = match of.evaluated == of.trials {
            true => of.trials.to_string(),
            false => format!("{} of {}", of.evaluated, of.trials),
        };
        let choices = text::choices(&of.choices);
        grid.row([of.arch.clone(), choices, trials, or_dash(of.mean), or_dash(of.deviation)]);
    }
    grid.text()
}

/// The leader board of these trials, with their rungs in a search by successive halving.
fn whole_board(metric: &str, trials: &[TrialView]) -> Grid {
    if trials.iter().all(|trial| trial.rung.is_none()) {
        let mut grid = board(metric);
        trials.iter().for_each(|trial| grid.row(board_fields(trial)));
        return grid;
    }
    let metric = metric.to_uppercase();
    let [trial, name, epoch, value, of_epoch, state] = columns(&metric);
    let mut grid = Grid::new(&[trial, name, epoch, ("RUNG", Column::Text), value, of_epoch, state]);
    for trial in trials {
        let rung = trial.rung.map_or_else(|| "-".to_owned(), |rung| rung.to_string());
        let [number, name, epoch, value, of_epoch, state] = board_fields(trial);
        grid.row([number, name, epoch, rung, value, of_epoch, state]);
    }
    grid
}

/// A leader board without rows; `metric` is the job's.
pub(crate) fn board(metric: &str) -> Grid {
    Grid::new(&columns(&metric.to_uppercase()))
}

fn columns(metric: &str) -> [(&str, Column); 6] {
    [
        ("TRIAL", Column::Number),
        ("NAME", Column::Text),
        ("EPOCH", Column::Number),
        (metric, Column::Number),
        ("OF EPOCH", Column::Number),
        ("STATE", Column::Text),
    ]
}

/// A trial's line of a leader board.
pub(crate) fn board_fields(trial: &TrialView) -> [String; 6] {
    let best = trial.best.as_ref();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        trial.trial.to_string(),
        text::shortened(&text::trial_name(trial), MAX_NAME_CHARS),
        format!("{}/{}", trial.epoch, trial.epochs),
        or_dash(best.map(|best| text::metric(best.value))),
        or_dash(best.map(|best| (best.epoch.0 + 1).to_string())),
        text::trial_state(trial),
    ]
}
