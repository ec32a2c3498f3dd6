//! `sojourn cloud`: a fleet in a cloud, made by one command and removed by another. Both are the autoscaler's, a program of its
//! own: this one doesn't have the cloud's library.

mod autoscaler;

use crate::cli::terminal::exit::Failure;
use std::{ffi::OsStr, path::PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a fleet's server in the cloud, with its network, its rights and the autoscaler.
    ///
    /// The command says what it would make and what that costs, and asks. Anything that is there already stays as it is: after
    /// a crash, the same command goes on.
    Up(FleetArgs),
    /// Remove a fleet with its server and everything else that has its tag in the account.
    ///
    /// The command says what there is, asks, and waits until nothing is left. The journal, the data and the models are on the
    /// server's disk and go with it.
    Down(FleetArgs),
}

#[derive(Debug, clap::Args)]
struct FleetArgs {
    /// The fleet's file, with a table `[ec2.server]`.
    file: PathBuf,
    /// Don't ask; programs need it.
    #[arg(long, short)]
    yes: bool,
    /// Only say what would be done.
    #[arg(long)]
    preview: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Becomes the autoscaler's program, which prints and ends in place of this one.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (word, args) = match &args.action {
        Action::Up(args) => ("up", args),
        Action::Down(args) => ("down", args),
    };
    let flags = [("--yes", args.yes), ("--preview", args.preview), ("--json", args.json)];
    let said = flags.into_iter().filter(|(_, said)| *said).map(|(flag, _)| flag);
    // A file may be called `-x`.
    let words = [word].into_iter().chain(said).chain(["--"]).map(OsStr::new);
    let words: Vec<&OsStr> = words.chain([args.file.as_os_str()]).collect();
    Err(autoscaler::become_it(&words))
}
