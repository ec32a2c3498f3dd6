//! `sojourn block`, `unblock` and `revoke`: a machine gets no new work, gets work again, or loses its right to work, and others do what
//! it holds.

use crate::{
    api_client::ApiClient,
    cli::terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_api::endpoints;
use sojourn_http::CallError;
use sojourn_protocol::{ids::HostId, view::HostView};

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

pub(crate) async fn block(args: &Args) -> Result<(), Failure> {
    call(args, async |client| client.call(endpoints::BlockHost::request(args.host)).await).await
}

pub(crate) async fn unblock(args: &Args) -> Result<(), Failure> {
    call(args, async |client| client.call(endpoints::UnblockHost::request(args.host)).await).await
}

pub(crate) async fn revoke(args: &Args) -> Result<(), Failure> {
    call(args, async |client| client.call(endpoints::RevokeHost::request(args.host)).await).await
}

async fn call(
    args: &Args,
    call: impl AsyncFnOnce(&ApiClient) -> Result<HostView, CallError>,
) -> Result<(), Failure> {
    simple(&args.connection, args.json, call, |view| {
        format!("host {} `{}` is {}", view.host, view.name, view.status())
    })
    .await
}
