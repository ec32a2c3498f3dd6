//! `sojourn revoke`: ends a machine's right to work; what it holds goes to others.

use crate::cli::terminal::{connection::Connection, exit::Failure, simple::simple};
use sojourn_protocol::ids::HostId;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The machine's number, as `sojourn hosts` shows it.
    #[arg(value_name = "HOST")]
    host: HostId,
    /// Print the machine as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    simple(
        &args.connection,
        args.json,
        async |client| client.revoke(args.host).await,
        |view| format!("host {} `{}` is {}", view.host, view.name, view.state.name()),
    )
    .await
}
