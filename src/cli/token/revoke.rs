//! `sojourn token revoke`: takes a token away, with the machines that have enrolled with it.

use crate::cli::terminal::{connection::Connection, exit::Failure, simple::simple};
use sojourn_protocol::ids::TokenId;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The token's number, as `sojourn token list` shows it.
    #[arg(value_name = "TOKEN")]
    revoked: TokenId,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let call =
        async |client: &crate::api_client::ApiClient| client.revoke_token(args.revoked).await;
    simple(&args.connection, args.json, call, |revoked| {
        let hosts = match revoked.hosts.len() {
            0 => String::new(),
            1 => ", and the machine that had enrolled with it".to_owned(),
            hosts => format!(", and the {hosts} machines that had enrolled with it"),
        };
        format!("token {} is revoked{hosts}", revoked.token.token)
    })
    .await
}
