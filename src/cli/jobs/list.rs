//! `sojourn jobs`: all jobs, a line each.

use crate::cli::{
    jobs::costs,
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, output},
};
use sojourn_api::endpoints;
use sojourn_protocol::view::JobView;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List only the jobs that were submitted with your token.
    #[arg(long, conflicts_with = "cost")]
    mine: bool,
    /// List only the jobs of this owner: the name or the number of a token, or `admin`.
    #[arg(long, value_name = "NAME", conflicts_with = "cost")]
    owner: Option<String>,
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
    let client = args.connection.client()?;
    let mut jobs = if args.mine {
        client.call(endpoints::Jobs::request().mine(true)).await?
    } else {
        client.call(endpoints::Jobs::request()).await?
    };
    if args.mine && jobs.iter().any(|job| job.owner.is_none()) {
        let message =
            "this server doesn't know whose jobs are whose: it is older than this command";
        return Err(Failure::work(message));
    }
    if let Some(name) = &args.owner {
        jobs.retain(|job| job.owner.as_ref().is_some_and(|owner| owner.is_called(name)));
    }
    if args.json {
        return output::json(&jobs);
    }
    let none = match (&args.owner, args.mine) {
        (Some(name), _) => format!("no jobs of `{name}`"),
        (None, true) => "no jobs of your token yet: `sojourn submit job.toml` makes one".to_owned(),
        (None, false) => "no jobs yet: `sojourn submit job.toml` makes one".to_owned(),
    };
    output::line(&if jobs.is_empty() { none } else { table(&jobs) })
}

fn table(jobs: &[JobView]) -> String {
    let owner = |job: &JobView| match &job.owner {
        Some(owner) => owner.to_string(),
        None => "-".to_owned(),
    };
    let first = jobs.first().map(owner);
    // With one owner, the column would say the same in each line.
    let has_owners = jobs.iter().any(|job| Some(owner(job)) != first);
    let owner_column = has_owners.then_some(("OWNER", Column::Name));
    let mut columns = vec![("JOB", Column::Number), ("NAME", Column::Name)];
    columns.extend(owner_column);
    columns.extend([
        ("STATE", Column::Text),
        ("SUBMITTED", Column::Text),
        ("TRIALS", Column::Number),
        ("HOPS", Column::Number),
        ("DISK", Column::Number),
        ("BEST", Column::Text),
        ("NOTE", Column::Text),
    ]);
    let mut grid = Grid::new(&columns);
    for job in jobs {
        let mut row = vec![job.job.to_string(), job.name.clone()];
        row.extend(has_owners.then(|| owner(job)));
        row.extend([
            state(job),
            text::ago(job.submitted_at),
            format!("{}/{}", job.trials_finished, job.trials),
            format!("{}/{}", job.hops, job.hops_expected),
            text::bytes(job.disk_bytes),
            text::best(job),
            text::first_line(&job.note),
        ]);
        grid.row(row);
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
