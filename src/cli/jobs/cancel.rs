//! `sojourn cancel`: ends a job; what it has made so far stays.

use crate::cli::{
    jobs::job_args::{JobArgs, state_text},
    terminal::exit::Failure,
};
use sojourn_api::endpoints;

pub(crate) async fn run(args: &JobArgs) -> Result<(), Failure> {
    args.call(async |client, job| client.call(endpoints::CancelJob::request(job)).await, state_text)
        .await
}
