//! `sojourn backlog`: how much there is to assimilate, how late it is, and who does it.

use crate::cli::{
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_api::endpoints;
use sojourn_protocol::assimilation::AssimilationsView;

/// Results that wait to become versions, and the assimilators. Whoever starts and stops `sojourn assimilate` can follow
/// `waiting`, `lag` (milliseconds) and `per_second` of the JSON.
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
        async |client| client.call(endpoints::Assimilations::request()).await,
        text,
    )
    .await
}

fn text(view: &AssimilationsView) -> String {
    let text = format!(
        "{} waiting, {} taken, {} behind others of their trials; the oldest for {}\n\
         {} ended, {:.1} a second in the last minute\n\
         {} in the server itself",
        text::count(view.waiting),
        text::count(view.taken),
        text::count(view.behind),
        text::duration(view.lag.0),
        text::count(view.ended),
        view.per_second,
        text::counted(u64::from(view.threads), "thread"),
    );
    if view.assimilators.is_empty() {
        return text;
    }
    let columns =
        [("ASSIMILATOR", Column::Text), ("SILENT", Column::Text), ("TAKEN", Column::Number)];
    let mut grid = Grid::new(&columns);
    for assimilator in &view.assimilators {
        grid.row([
            assimilator.name.clone(),
            text::duration(assimilator.silent.0),
            text::count(assimilator.taken),
        ]);
    }
    format!("{text}\n{}", grid.text())
}
