//! `sojourn jobs`: all jobs, a line each.

use crate::cli::{
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, output},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let jobs = args.connection.client()?.jobs().await?;
    if args.json {
        return output::json(&jobs);
    }
    if jobs.is_empty() {
        return output::line("no jobs yet: `sojourn submit job.toml` makes one");
    }
    let mut grid = Grid::new(&[
        ("JOB", Column::Number),
        ("NAME", Column::Text),
        ("STATE", Column::Text),
        ("SUBMITTED", Column::Text),
        ("TRIALS", Column::Number),
        ("HOPS", Column::Number),
        ("BEST", Column::Text),
    ]);
    for job in &jobs {
        grid.row([
            job.job.to_string(),
            job.name.clone(),
            text::job_state(job.state).to_owned(),
            text::ago(job.submitted_at),
            format!("{}/{}", job.trials_finished, job.trials),
            format!("{}/{}", job.hops, job.hops_expected),
            text::best(job),
        ]);
    }
    output::line(&grid.text())
}
