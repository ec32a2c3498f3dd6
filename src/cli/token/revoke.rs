//! `sojourn token revoke`: takes a token away, with the machines that have enrolled with it.

use crate::cli::terminal::{connection::Connection, exit::Failure, simple::simple};
use sojourn_api::endpoints;
use sojourn_protocol::{ids::TokenId, tokens::ServerToken};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The token's number, as `sojourn token list` shows it.
    #[arg(value_name = "TOKEN", value_parser = issued)]
    revoked: TokenId,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// A token that can be revoked: the server can't be without its own.
fn issued(text: &str) -> Result<TokenId, String> {
    if ServerToken::ALL.iter().any(|own| own.name() == text) {
        return Err(format!(
            "the server's own tokens aren't revoked but replaced: `sojourn token rotate {text}`"
        ));
    }
    let number = text.parse::<TokenId>();
    number.map_err(|_| "a token's number is wanted, as `sojourn token list` shows it".to_owned())
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let call = async |client: &crate::api_client::ApiClient| {
        client.call(endpoints::RevokeToken::request(args.revoked)).await
    };
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
