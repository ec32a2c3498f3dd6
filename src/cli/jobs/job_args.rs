//! The arguments of the commands that change one job and print it.

use crate::{
    api_client::ApiClient,
    cli::{
        render::text,
        terminal::{connection::Connection, exit::Failure, simple::simple},
    },
};
use serde::Serialize;
use sojourn_http::CallError;
use sojourn_protocol::{ids::JobId, view::JobView};

// No doc comment: it would become the help of each command.
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// The job's number.
    #[arg(value_name = "JOB")]
    pub(crate) job: JobId,
    /// Print the job as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl JobArgs {
    /// Makes one call, and prints its answer: as JSON, or as the text that `text` makes of it.
    pub(crate) async fn call<A: Serialize>(
        &self,
        call: impl AsyncFnOnce(&ApiClient) -> Result<A, CallError>,
        text: impl FnOnce(&A) -> String,
    ) -> Result<(), Failure> {
        simple(&self.connection, self.json, call, text).await
    }
}

/// `job 3 `digits` is paused`.
pub(crate) fn state_text(view: &JobView) -> String {
    format!("job {} `{}` is {}", view.job, view.name, text::job_state(view.state))
}
