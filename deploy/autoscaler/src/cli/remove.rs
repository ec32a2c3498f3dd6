//! `sojourn-autoscaler remove`: ends a fleet's machines, and removes whatever else has its tag in the account.

use super::{
    account, failure, read,
    removal::{confirmed, until_gone},
    removal_server::RemovalServer,
    run::OUTSIDE,
};
use crate::{config::Config, driver::Outside, server::HttpServer};
use sojourn_clouds::{Holdings, Leaving, Providers};
use sojourn_programs::{exit::Failure, output::line};
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

pub(super) async fn run(args: &Args, providers: Providers<'_>) -> Result<(), Failure> {
    let config = read(&args.file, providers)?;
    let holdings = account(&config, providers)?.open().await.map_err(failure)?;
    let found = leavings(&*holdings).await?;
    if found.is_empty() {
        line(&if config.has_site {
            format!(
                "no machine of the fleet `{}` is there; its server goes with `sojourn cloud down`",
                config.fleet
            )
        } else {
            format!("nothing has the tag of the fleet `{}`", config.fleet)
        })?;
        if !args.preview {
            // The server may have been away when a removal before ended machines.
            match HttpServer::new(&config) {
                Ok(server) => of_server(server, &config).report_last(&*holdings).await,
                Err(error) => warn!(error = %error_chain(&error), "the server isn't asked"),
            }
        }
        return Ok(());
    }
    found.iter().try_for_each(|leaving| line(&leaving.to_string()))?;
    if args.preview || !(args.yes || confirmed(&format!("remove all {}?", found.len()))?) {
        return line("nothing was removed");
    }
    let server = HttpServer::new(&config).map_err(|error| Failure::call(error_chain(&error)))?;
    let mut server = of_server(server, &config);
    server.acquire().await?;
    let removed = until_gone(async || {
        server.renew().await?;
        let found = holdings.remove_all().await;
        let found = found.map_err(|error| Failure::work(error_chain(&error)))?;
        server.report(&*holdings).await;
        Ok(found)
    });
    let removed = removed.await;
    server.report_last(&*holdings).await;
    removed?;
    line("all of it is gone")
}

fn of_server(server: HttpServer, config: &Config) -> RemovalServer<HttpServer, Outside> {
    RemovalServer::new(server, OUTSIDE, &config.fleet, config.settings.clone())
}

async fn leavings(holdings: &dyn Holdings) -> Result<Vec<Leaving>, Failure> {
    holdings.leavings().await.map_err(|error| Failure::work(error_chain(&error)))
}
