//! `sojourn resume`: resumes a paused job.

use crate::cli::{
    render::text,
    terminal::{connection::Connection, exit::Failure, simple::simple},
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
    simple(
        &args.connection,
        args.json,
        async |client| client.resume(args.job).await,
        |view| format!("job {} `{}` is {}", view.job, view.name, text::job_state(view.state)),
    )
    .await
}
