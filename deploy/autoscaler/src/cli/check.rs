//! `sojourn-autoscaler check`: what a file means, or all that is wrong with it.

use super::{Failure, line, read};
use crate::{clouds, config::words, server::HttpServer};
use sojourn_protocol::error::error_chain;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file.
    file: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
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
    words(&config).iter().try_for_each(|sentence| line(sentence))
}
