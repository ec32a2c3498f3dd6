//! `sojourn share`: makes a link to a job's page that needs no token of a user.

use crate::cli::{
    jobs::job_ref::JobRef,
    terminal::{connection::Connection, exit::Failure, output},
};
use sojourn_api::endpoints;
use sojourn_protocol::{names::TokenLabel, time::Millis, tokens::PageLinkRequest};

/// A guest with the link sees the job's page as it moves, and nothing else: no buttons, no other jobs, no names of hosts. The
/// page lists the links to it, and revokes them; so does `sojourn token revoke`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// How long it is good for, e.g. `12h` or `7d`, up to a year [default: until it is revoked].
    #[arg(long = "for", value_name = "TIME")]
    lifetime: Option<Millis>,
    /// A name for the link, for people.
    #[arg(long, value_name = "TEXT")]
    label: Option<TokenLabel>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    let label = args.label.clone().unwrap_or_default();
    let made = client
        .call(endpoints::ShareJob::request(
            job,
            &PageLinkRequest { label, lifetime: args.lifetime },
        ))
        .await?;
    if args.json {
        return output::json(&made);
    }
    // Browsers send what is behind the `#` to nobody: it is in no log and no referrer.
    output::line(&format!("{}/share#{}", client.server(), made.secret))?;
    let token = made.token.token;
    output::remark(&format!(
        "this link is token {token}, and it isn't shown again; `sojourn token revoke {token}` or the job's page takes it away"
    ));
    Ok(())
}
