//! `sojourn token`: tokens for machines that enrol and for users.

mod list;
mod new;
pub(crate) mod quota;
mod revoke;
mod rotate;
mod set;

use crate::cli::terminal::exit::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a token, and print it once: for machines to enrol with, or for a user.
    New(new::Args),
    /// List the tokens that were made.
    List(list::Args),
    /// Set quotas of a user's token: how much its jobs may take.
    Set(set::Args),
    /// Take a token away, with all machines that have enrolled with it.
    Revoke(revoke::Args),
    /// Replace a token by another one, or one of the server's own.
    Rotate(rotate::Args),
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::New(args) => new::run(args).await,
        Action::List(args) => list::run(args).await,
        Action::Set(args) => set::run(args).await,
        Action::Revoke(args) => revoke::run(args).await,
        Action::Rotate(args) => rotate::run(args).await,
    }
}
