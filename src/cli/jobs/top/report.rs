//! All jobs and hosts of a server as one JSON object.

use crate::{
    api_client::ApiClient,
    cli::terminal::{connection::Connection, exit::Failure, output},
};
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_protocol::view::{HostView, JobView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object with all jobs and hosts, and end.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// The answer of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    jobs: Vec<JobView>,
    hosts: Vec<HostView>,
}

/// Prints it.
pub(super) async fn print(client: &ApiClient) -> Result<(), Failure> {
    let (jobs, hosts) = tokio::try_join!(
        client.call(endpoints::Jobs::request()),
        client.call(endpoints::Hosts::request())
    )?;
    output::json(&Report { jobs, hosts })
}
