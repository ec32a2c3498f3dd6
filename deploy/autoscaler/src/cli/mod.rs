//! The commands: what is parsed, and where it goes.

mod check;
mod down;
mod removal;
mod removal_server;
mod remove;
mod run;
mod show;
mod site;
mod status;
mod up;

use crate::{
    clouds,
    config::{Config, ConfigError},
};
use clap::{Parser, Subcommand};
use sojourn_clouds::{Account, ProviderError, Providers};
use sojourn_programs::{exit::Failure, log::FormArgs};
use std::path::Path;

/// Buys preemptible machines for a Sojourn server while it has work for them, and gives them back.
#[derive(Debug, Parser)]
#[command(name = "sojourn-autoscaler", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Beneath the help.
const AFTER_HELP: &str = "\
Environment:
  SOJOURN_LOG          what is logged, e.g. `debug` or `sojourn_autoscaler=trace`
  SOJOURN_LOG_FORMAT   the form of the log of `run`, instead of `--log-format`
  SOJOURN_TOKEN_FILE   a file with the token, instead of the file's `token_file`
  NO_COLOR             no colours

Exit codes: 0 done, 1 the work failed, 2 the file or the call is wrong, 3 no server.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Say what a fleet's file means, or all that is wrong with it.
    ///
    /// The server isn't asked, and the cloud only with `--cloud`.
    Check(check::Args),
    /// Buy and give back machines, until SIGTERM, SIGINT or SIGHUP.
    ///
    /// Several may run for a fleet: one of them leads, and another takes over when it ends. Machines stay when it ends; a
    /// machine without work ends itself.
    Run(run::Args),
    /// Show the machines of a fleet, what they have cost, and what the cloud asks now.
    Status(status::Args),
    /// End all machines of a fleet, and remove whatever else has its tag in the account.
    ///
    /// The command says what there is, asks, and waits until nothing is left. No autoscaler of the fleet may run meanwhile.
    Remove(remove::Args),
    /// Make a fleet's server in the cloud, with its network, its rights and the autoscaler.
    ///
    /// The command says what it would make and what that costs, and asks. What is there already stays as it is: after a crash,
    /// the same command goes on.
    Up(up::Args),
    /// Remove a fleet with its server and everything else that has its tag in the account.
    ///
    /// The command says what there is, asks, and waits until nothing is left. The journal, the data and the models are on the
    /// server's disk and go with it.
    Down(down::Args),
}

impl Cli {
    /// How the log is written.
    #[must_use]
    pub fn log(&self) -> FormArgs {
        match &self.command {
            Command::Run(args) => args.log,
            _ => FormArgs::default(),
        }
    }

    /// Carries the command out, for a file with the table of one of these clouds.
    ///
    /// # Errors
    /// With what is to be printed.
    pub async fn run(self, providers: Providers<'_>) -> Result<(), Failure> {
        match self.command {
            Command::Check(args) => check::run(&args, providers).await,
            Command::Run(args) => run::run(&args, providers).await,
            Command::Status(args) => status::run(&args, providers).await,
            Command::Remove(args) => remove::run(&args, providers).await,
            Command::Up(args) => up::run(&args, providers).await,
            Command::Down(args) => down::run(&args, providers).await,
        }
    }
}

/// Reads a fleet's file.
fn read(path: &Path, providers: Providers<'_>) -> Result<Config, Failure> {
    Config::read(path, providers).map_err(|error| match &error {
        ConfigError::Unread { .. } => Failure::call(error.to_string()),
        ConfigError::Wrong { .. } => {
            Failure::calls(error.to_string().lines().map(str::to_owned).collect())
        }
    })
}

/// The account that a fleet's file describes.
fn account(config: &Config, providers: Providers<'_>) -> Result<Box<dyn Account>, Failure> {
    clouds::account(config, providers).map_err(|error| Failure::call(error.to_string()))
}

/// A failure of a provider: the file's or the call's fault, or the cloud's.
fn failure(error: ProviderError) -> Failure {
    match error {
        ProviderError::File(text) => Failure::call(text),
        ProviderError::Work(text) => Failure::work(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
