//! `sojourn resume`: resumes a paused job.

use crate::cli::{
    jobs::job_args::{JobArgs, state_text},
    terminal::exit::Failure,
};

pub(crate) async fn run(args: &JobArgs) -> Result<(), Failure> {
    args.call(async |client, job| client.resume(job).await, state_text).await
}
