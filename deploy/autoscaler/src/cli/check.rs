//! `sojourn-autoscaler check`: what a file means, or all that is wrong with it.

use super::read;
#[cfg(feature = "ec2")]
use crate::config::Config;
use crate::{clouds, config::words, server::HttpServer};
use sojourn_programs::{exit::Failure, output::line};
use sojourn_protocol::error::error_chain;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file.
    file: PathBuf,
    /// Ask the cloud too, whether image, subnets and types are there, and which types have no list price.
    #[cfg(feature = "ec2")]
    #[arg(long)]
    cloud: bool,
}

#[cfg_attr(not(feature = "ec2"), expect(clippy::unused_async, reason = "there is no cloud to ask"))]
pub(super) async fn run(args: &Args) -> Result<(), Failure> {
    let config = read(&args.file)?;
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
    if let Err(error) = clouds::check(&config) {
        problems.push(wrong(&error));
    }
    if !problems.is_empty() {
        return Err(Failure::calls(problems));
    }
    words(&config).iter().try_for_each(|sentence| line(sentence))?;
    #[cfg(feature = "ec2")]
    if args.cloud {
        ask_cloud(&config).await?;
    }
    Ok(())
}

/// Says what the cloud has of what the file names. Nothing is changed.
#[cfg(feature = "ec2")]
async fn ask_cloud(config: &Config) -> Result<(), Failure> {
    let account = clouds::account(config).await;
    let account = account.map_err(|error| Failure::call(error_chain(&error)))?;
    let regions = account.check().await.map_err(|error| Failure::work(error_chain(&error)))?;
    for of in regions {
        let zones: Vec<&str> = of.subnets.keys().map(String::as_str).collect();
        line(&format!(
            "{}: image {} for {}, subnets in {}, {} types of the file are sold.",
            of.region,
            of.image,
            of.architecture,
            zones.join(", "),
            of.types
        ))?;
        if of.unlisted.is_empty() {
            continue;
        }
        line(&format!(
            "{}: without a list price these aren't bought: {}.",
            of.region,
            of.unlisted.join(", ")
        ))?;
    }
    Ok(())
}
