//! `sojourn traffic`: connections, requests and bytes of the server since it started, and what it refused.

use crate::cli::{
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_api::endpoints;
use sojourn_protocol::view::TrafficView;

/// Counts since the server started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    simple(
        &args.connection,
        args.json,
        async |client| client.call(endpoints::Traffic::request()).await,
        text,
    )
    .await
}

fn text(view: &TrafficView) -> String {
    let refused = &view.refused;
    let mut grid = Grid::new(&[("SINCE THE START", Column::Text), ("COUNT", Column::Number)]);
    for (name, count) in [
        ("open connections", view.open_connections),
        ("connections", view.connections),
        ("requests", view.requests),
        ("failed authentications", view.failed_authentications),
        ("enrolments", view.enrolments),
        ("checkpoints uploaded by hosts", view.checkpoint_uploads),
        ("blobs downloaded by hosts", view.blob_downloads),
        ("refused: connections beyond all that there may be", refused.connections),
        ("refused: connections beyond those of an address", refused.connections_of_address),
        ("closed at once: connections beyond both", refused.connections_closed),
        ("refused: too many unknown tokens from an address", refused.authentications),
        ("refused: enrolments too fast", refused.enrolments),
        ("refused: bodies beyond the memory for them", refused.bodies),
        ("closed: connections that were too slow", refused.too_slow),
    ] {
        grid.row([name.to_owned(), text::count(count)]);
    }
    let (received, sent) = (text::bytes(view.received_bytes), text::bytes(view.sent_bytes));
    let bodies = text::bytes(view.body_bytes);
    format!(
        "{received} of blobs received, {sent} sent, {bodies} of bodies in memory\n{}",
        grid.text()
    )
}
