//! `sojourn gc`: deletes the objects in the server's store that nothing refers to.

use crate::{
    api_client::ApiClient,
    cli::{
        render::text,
        terminal::{connection::Connection, exit::Failure, simple::simple},
    },
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{CollectAnswer, CollectRequest, Found},
    time::Millis,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Objects younger than this stay, since a client may be about to use them.
    #[arg(long, value_name = "HOURS", default_value_t = 24,
          value_parser = clap::value_parser!(u64).range(0..=100_000))]
    grace: u64,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let grace = Millis::from_secs(args.grace.saturating_mul(3600));
    let request = CollectRequest { dry_run: args.dry_run, grace };
    let call =
        async |client: &ApiClient| client.call(endpoints::CollectBlobs::request(&request)).await;
    simple(&args.connection, args.json, call, text).await
}

fn text(answer: &CollectAnswer) -> String {
    let verb = if answer.dry_run { "would go" } else { "gone" };
    let figures = |found: Found, what: &str| {
        format!("{} ({})", text::counted(found.objects, what), text::bytes(found.bytes))
    };
    format!(
        "{verb}: {} and {}; {} stay",
        figures(answer.unknown, "unknown blob"),
        figures(answer.uploads, "unwanted upload"),
        figures(answer.kept, "blob"),
    )
}
