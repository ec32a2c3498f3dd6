//! `sojourn-autoscaler check`: what a file means, or all that is wrong with it.

use super::{account, failure, read};
use crate::{
    clouds,
    config::{Config, words},
    server::HttpServer,
};
use sojourn_clouds::Providers;
use sojourn_programs::{exit::Failure, output::line};
use sojourn_protocol::error::error_chain;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file.
    file: PathBuf,
    /// Ask the cloud too, whether all that its table names is there, and which types have no list price.
    #[arg(long)]
    cloud: bool,
}

pub(super) async fn run(args: &Args, providers: Providers<'_>) -> Result<(), Failure> {
    let config = read(&args.file, providers)?;
    let wrong = |error: &dyn std::error::Error| {
        format!("`{}`: {}", args.file.display(), error_chain(error))
    };
    let mut problems = Vec::new();
    // What the file leaves out is on the server's machine, which isn't this one.
    if !config.has_site
        && let Err(error) = HttpServer::new(&config)
    {
        problems.push(wrong(&error));
    }
    if let Err(error) = clouds::account(&config, providers) {
        problems.push(wrong(&error));
    }
    if !problems.is_empty() {
        return Err(Failure::calls(problems));
    }
    words(&config).iter().try_for_each(|sentence| line(sentence))?;
    if args.cloud {
        ask_cloud(&config, providers).await?;
    }
    Ok(())
}

/// Says what the cloud has of what the file names. Nothing is changed.
async fn ask_cloud(config: &Config, providers: Providers<'_>) -> Result<(), Failure> {
    let holdings = account(config, providers)?.open().await.map_err(failure)?;
    let found = holdings.check().await.map_err(|error| Failure::work(error_chain(&error)))?;
    found.iter().try_for_each(|sentence| line(sentence))
}
