//! `sojourn jobs`: all jobs, a line each.

use crate::cli::{
    jobs::costs,
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_protocol::view::JobView;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show what jobs have cost on bought machines, and each machine, instead of their progress.
    #[arg(long)]
    cost: bool,
    /// Print a JSON array; with `--cost` an object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    if args.cost {
        return costs::run(&args.connection, args.json).await;
    }
    simple(&args.connection, args.json, async |client| client.jobs().await, |jobs| table(jobs))
        .await
}

fn table(jobs: &[JobView]) -> String {
    if jobs.is_empty() {
        return "no jobs yet: `sojourn submit job.toml` makes one".to_owned();
    }
    let mut grid = Grid::new(&[
        ("JOB", Column::Number),
        ("NAME", Column::Text),
        ("STATE", Column::Text),
        ("SUBMITTED", Column::Text),
        ("TRIALS", Column::Number),
        ("HOPS", Column::Number),
        ("DISK", Column::Number),
        ("BEST", Column::Text),
        ("NOTE", Column::Text),
    ]);
    for job in jobs {
        grid.row([
            job.job.to_string(),
            job.name.clone(),
            state(job),
            text::ago(job.submitted_at),
            format!("{}/{}", job.trials_finished, job.trials),
            format!("{}/{}", job.hops, job.hops_expected),
            text::bytes(job.disk_bytes),
            text::best(job),
            text::first_line(&job.note),
        ]);
    }
    let mut lines = vec![grid.text()];
    lines.extend(jobs.iter().filter_map(|job| {
        let reason = job.waiting.as_ref()?;
        Some(format!("job {} waits: {reason}", job.job))
    }));
    lines.join("\n")
}

fn state(job: &JobView) -> String {
    let state = job.state.name();
    if job.thinned { format!("{state}, thinned") } else { state.to_owned() }
}
