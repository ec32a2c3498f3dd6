//! `sojourn token list`: the tokens that were made, a line each.

use crate::cli::{
    render::{
        tables::{Column, Grid},
        text,
    },
    terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    quotas::QuotaView,
    tokens::{TokenGrant, TokenState, TokenView},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let call = async |client: &crate::api_client::ApiClient| {
        client.call(endpoints::Tokens::request()).await
    };
    simple(&args.connection, args.json, call, |tokens| table(tokens)).await
}

fn table(tokens: &[TokenView]) -> String {
    if tokens.is_empty() {
        return "no tokens but the server's own yet: `sojourn token new` makes one".to_owned();
    }
    let mut grid = Grid::new(&[
        ("TOKEN", Column::Number),
        ("NAME", Column::Name),
        ("OPENS", Column::Text),
        ("OWNER", Column::Name),
        ("HOSTS", Column::Text),
        ("STATE", Column::Text),
        ("MADE", Column::Text),
        ("UNTIL", Column::Text),
        ("JOBS", Column::Text),
        ("TRIALS", Column::Text),
        ("BYTES", Column::Text),
        ("LINKS", Column::Text),
        ("FAILURES", Column::Text),
        ("SHARE", Column::Text),
    ]);
    for token in tokens {
        let (opens, owner, hosts) = match &token.grant {
            TokenGrant::Enrol { owner, hosts, machine: _, trusted } => {
                let hosts = format!("{}/{hosts}", token.enrolled);
                let trusted = if *trusted { " (trusted)" } else { "" };
                ("enrol".to_owned(), format!("{}{trusted}", text::owner(owner)), hosts)
            }
            TokenGrant::Access { rights } => {
                (rights.name().to_owned(), "-".to_owned(), "-".to_owned())
            }
            TokenGrant::PageLink { job } => {
                (format!("page of job {job}"), "-".to_owned(), "-".to_owned())
            }
        };
        let until = token.expires_at.map_or_else(|| "-".to_owned(), text::timestamp);
        let [jobs, trials, bytes, links, failures, slot_share] = quotas(token);
        grid.row([
            token.token.to_string(),
            token.label.to_string(),
            opens,
            owner,
            hosts,
            state(token.state).to_owned(),
            text::timestamp(token.created_at),
            until,
            jobs,
            trials,
            bytes,
            links,
            failures,
            slot_share,
        ]);
    }
    grid.text()
}

/// How much of its quotas a user's token has used, and its slot share.
fn quotas(token: &TokenView) -> [String; 6] {
    let Some(QuotaView { limits, used }) = &token.quotas else {
        return [(); 6].map(|()| "-".to_owned());
    };
    let of = |used: u32, most: u32| format!("{used}/{most}");
    [
        of(used.jobs, limits.jobs),
        of(used.trials, limits.trials),
        format!("{}/{}", text::bytes(used.bytes), text::bytes(limits.bytes)),
        of(used.links, limits.links),
        of(used.failures, limits.failures),
        limits.slot_share.to_string(),
    ]
}

const fn state(state: TokenState) -> &'static str {
    match state {
        TokenState::Valid => "valid",
        TokenState::Used => "used",
        TokenState::Expired => "expired",
        TokenState::Revoked => "revoked",
    }
}
