//! `sojourn resume`: a paused job goes on.

use crate::cli::{
    render::text,
    terminal::{connection::Connection, exit::Failure, output},
};
use sojourn_protocol::ids::JobId;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// Print the job as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let view = args.connection.client()?.resume(args.job).await?;
    if args.json {
        return output::json(&view);
    }
    output::line(&format!("job {} `{}` is {}", view.job, view.name, text::job_state(view.state)))
}
