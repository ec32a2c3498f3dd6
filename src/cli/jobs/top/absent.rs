//! `sojourn top` in a program that was built without the screen: JSON alone.

#[path = "report.rs"]
mod report;

use crate::{
    api_client::ApiClient,
    cli::terminal::{connection::Connection, exit::Failure},
};
pub(crate) use report::Args;
use sojourn_protocol::{ids::JobId, view::JobView};

/// Why nothing is drawn.
const NOT_BUILT: &str = "this program was built without the screen: `--json` works, `sojourn jobs` and `sojourn hosts` print tables, and `make build` builds the whole";

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    server(&args.connection, args.json).await
}

/// Is there a terminal to show it on?
pub(crate) fn is_possible() -> bool {
    false
}

/// Prints a server as JSON; else refuses.
pub(crate) async fn server(connection: &Connection, json: bool) -> Result<(), Failure> {
    match json {
        true => report::print(&connection.client()?).await,
        false => Err(Failure::call(NOT_BUILT)),
    }
}

/// Refuses to show a job.
pub(crate) async fn job(_: ApiClient, _: JobId) -> Result<Option<JobView>, Failure> {
    Err(Failure::call(NOT_BUILT))
}
