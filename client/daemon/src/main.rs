//! The small daemon: `client` and `service` as the command `sojourn` has them, and nothing else. For machines
//! that only train.

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sojourn_client::log::keep;
use sojourn_daemon::{client, service};
use sojourn_programs::{
    columns,
    exit::Failure,
    log::{self, Program},
    secrets::warn_of_arguments,
};
use std::process::ExitCode;

/// Trains deep-learning models for a Sojourn server.
#[derive(Debug, Parser)]
#[command(name = "sojourn", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the client: this machine trains for a server.
    Client(Box<client::Args>),
    /// Install the client as a service of systemd, or remove it completely.
    Service(service::Args),
}

fn main() -> ExitCode {
    // Both reqwest and rustls are built without a provider of their own; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = parse().unwrap_or_else(|error| error.exit());
    warn_of_arguments();
    let result = match cli.command {
        Command::Client(args) => client::runtime().and_then(|runtime| {
            let handle = runtime.handle();
            let program = Program::Client { keep };
            let filter = client::DEFAULT_LOG_FILTER;
            let log = log::start_with_traces(program, filter, args.log(), handle)?;
            let result = runtime.block_on(client::run(&args));
            log.end();
            result
        }),
        Command::Service(args) => service::run(&args),
    };
    result.map_or_else(|failure: Failure| failure.report(), |()| ExitCode::SUCCESS)
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = columns::fitted(Cli::command());
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
