//! `sojourn-autoscaler remove`: ends a fleet's machines, and removes whatever else has its tag in the account.

use super::{
    Failure, line, read,
    removal::{confirmed, until_gone},
    removal_server::RemovalServer,
    run::OUTSIDE,
};
use crate::{clouds, server::HttpServer};
use sojourn_ec2::{Ec2, Leaving};
use sojourn_protocol::error::error_chain;
use std::path::PathBuf;

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
    let server = HttpServer::new(&config).map_err(|error| Failure::call(error_chain(&error)))?;
    let mut server = RemovalServer::new(server, OUTSIDE, &config.fleet);
    server.acquire().await?;
    until_gone(async || {
        server.renew().await?;
        account.remove_all().await.map_err(|error| Failure::work(error_chain(&error)))
    })
    .await?;
    line("all of it is gone")
}

async fn leavings(account: &Ec2) -> Result<Vec<Leaving>, Failure> {
    account.leavings().await.map_err(|error| Failure::work(error_chain(&error)))
}
