//! `sojourn token set`: sets quotas of a user's token.

use super::quota::QuotaArgs;
use crate::cli::terminal::{connection::Connection, exit::Failure, simple::simple};
use sojourn_api::endpoints;
use sojourn_protocol::{figures, ids::TokenId, quotas::QuotaView, tokens::TokenView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The token's number, as `sojourn token list` shows it.
    #[arg(value_name = "TOKEN")]
    number: TokenId,
    #[command(flatten)]
    quotas: QuotaArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let quotas = args.quotas.quotas();
    if quotas.is_empty() {
        return Err(Failure::call(
            "no quota is given: `--jobs N` sets one, `--help` has the others",
        ));
    }
    let call = async |client: &crate::api_client::ApiClient| {
        client.call(endpoints::SetQuotas::request(args.number, &quotas)).await
    };
    simple(&args.connection, args.json, call, sentence).await
}

fn sentence(token: &TokenView) -> String {
    match &token.quotas {
        Some(QuotaView { limits, .. }) => format!(
            "token {} may have {} with {}, {}, {} and {} in a minute; its share is {}",
            token.token,
            figures::counted(limits.jobs.into(), "job"),
            figures::counted(limits.trials.into(), "open trial"),
            figures::bytes(limits.bytes),
            figures::counted(limits.links.into(), "link"),
            figures::counted(limits.failures.into(), "refused request"),
            limits.slot_share
        ),
        None => format!("token {} may administer: only its share counts", token.token),
    }
}
