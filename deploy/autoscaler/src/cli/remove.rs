//! `sojourn-autoscaler remove`: ends a fleet's machines, and removes whatever else has its tag in the account.

use super::{
    Failure, line, read,
    removal::{confirmed, until_gone},
};
use crate::{
    clouds,
    config::Config,
    leader::Lease,
    server::{HttpServer, Server as _},
};
use sojourn_ec2::{Ec2, Leaving};
use sojourn_protocol::error::error_chain;
use std::path::PathBuf;
use tracing::warn;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file.
    file: PathBuf,
    /// Don't ask; programs need it.
    #[arg(long, short)]
    yes: bool,
    /// Only say what would go.
    #[arg(long)]
    preview: bool,
}

pub(super) async fn run(args: &Args) -> Result<(), Failure> {
    let config = read(&args.file)?;
    let account = clouds::account(&config).await;
    let account = account.map_err(|error| Failure::call(error_chain(&error)))?;
    let found = leavings(&account).await?;
    if found.is_empty() {
        return line(&format!("nothing has the tag of the fleet `{}`", config.fleet));
    }
    found.iter().try_for_each(|leaving| line(&leaving.to_string()))?;
    if args.preview || !(args.yes || confirmed(&format!("remove all {}?", found.len()))?) {
        return line("nothing was removed");
    }
    stop_buying(&config).await?;
    until_gone(async || {
        account.remove_all().await.map_err(|error| Failure::work(error_chain(&error)))
    })
    .await?;
    line("all of it is gone")
}

async fn leavings(account: &Ec2) -> Result<Vec<Leaving>, Failure> {
    account.leavings().await.map_err(|error| Failure::work(error_chain(&error)))
}

/// Takes the lease, so that nobody buys meanwhile. It ends by itself. A server that is away can't be asked.
async fn stop_buying(config: &Config) -> Result<(), Failure> {
    let server = HttpServer::new(config).map_err(|error| Failure::call(error_chain(&error)))?;
    let lease = Lease::new(&config.fleet, format!("remove-{}", std::process::id()));
    let Some(request) = lease.request(sojourn_protocol::time::UnixMillis(0)) else { return Ok(()) };
    match server.lead(&request).await {
        Ok(answer) if answer.leads || answer.holder.is_none() => Ok(()),
        Ok(answer) => Err(Failure::call(format!(
            "{} buys machines for this fleet: end `sojourn-autoscaler run` first",
            answer.holder.unwrap_or_default()
        ))),
        Err(error) => {
            warn!(error = %error_chain(&error), "the server doesn't say whether anybody buys");
            Ok(())
        }
    }
}
