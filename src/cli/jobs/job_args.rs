//! The arguments of the commands that change one job and print it.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_ref::JobRef,
        terminal::{connection::Connection, exit::Failure, simple::show},
    },
};
use serde::Serialize;
use sojourn_http::CallError;
use sojourn_protocol::{api::MAX_NOTE_CHARS, ids::JobId, text::is_plain_line, view::JobView};

// No doc comment: it would become the help of each command.
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    pub(crate) job: JobRef,
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
        call: impl AsyncFnOnce(&ApiClient, JobId) -> Result<A, CallError>,
        text: impl FnOnce(&A) -> String,
    ) -> Result<(), Failure> {
        let client = self.connection.client()?;
        let job = self.job.find(&client).await?;
        show(&call(&client, job).await?, self.json, text)
    }
}

/// A note about a job: one line.
pub(crate) fn note(text: &str) -> Result<String, String> {
    if is_plain_line(text, MAX_NOTE_CHARS) {
        return Ok(text.to_owned());
    }
    Err(format!("a note is one line of at most {MAX_NOTE_CHARS} characters"))
}

/// `job 3 `digits` is paused`.
pub(crate) fn state_text(view: &JobView) -> String {
    format!("job {} `{}` is {}", view.job, view.name, view.state.name())
}
