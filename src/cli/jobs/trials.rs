//! `sojourn trials`: all trials of a job, as a leader board.

use crate::cli::{
    render::{
        scores,
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, output},
};
use sojourn_protocol::{ids::JobId, view::TrialView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// Print a JSON array, with learning curves, in the order of trials.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let mut trials = client.trials(args.job).await?;
    if args.json {
        return output::json(&trials);
    }
    let detail = client.job(args.job).await?;
    trials.sort_by(|a, b| text::leader_board(detail.spec.search.goal, a, b));
    let mut grid = board(&detail.summary.metric);
    for trial in &trials {
        grid.row(board_fields(trial));
    }
    let mut lines = vec![grid.text()];
    let tests: Vec<String> =
        trials.iter().filter_map(|trial| trial.test.as_ref()).map(scores::test).collect();
    if !tests.is_empty() {
        lines.push("\non the test data".to_owned());
        lines.extend(tests);
    }
    output::line(&lines.join("\n"))
}

/// A leader board without rows; `metric` is the job's.
pub(crate) fn board(metric: &str) -> Grid {
    Grid::new(&[
        ("TRIAL", Column::Number),
        ("ARCH", Column::Text),
        ("CHOICES", Column::Text),
        ("EPOCH", Column::Number),
        (&metric.to_uppercase(), Column::Number),
        ("OF EPOCH", Column::Number),
        ("STATE", Column::Text),
    ])
}

/// A trial's line of a leader board.
pub(crate) fn board_fields(trial: &TrialView) -> [String; 7] {
    let best = trial.best.as_ref();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        trial.trial.to_string(),
        trial.arch.clone(),
        text::choices(&trial.choices),
        format!("{}/{}", trial.epoch, trial.epochs),
        or_dash(best.map(|best| text::metric(best.value))),
        or_dash(best.map(|best| (best.epoch.0 + 1).to_string())),
        text::trial_state(trial),
    ]
}
