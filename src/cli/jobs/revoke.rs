//! `sojourn revoke`: ends a machine's right to work; what it holds goes to others.

use crate::cli::{
    render::text,
    terminal::{connection::Connection, exit::Failure, output},
};
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
    let view = args.connection.client()?.revoke(args.host).await?;
    if args.json {
        return output::json(&view);
    }
    output::line(&format!("host {} `{}` is {}", view.host, view.name, text::host_state(view.state)))
}
