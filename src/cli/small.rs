//! The command line of the daemon alone: `sojourn client` as [`Cli`] of the full command has it, for
//! machines that only train. Built with `--no-default-features --features client` (`make daemon`).

mod client;
mod ctl;
#[expect(dead_code, reason = "the full command uses all of it")]
mod failure;
#[expect(dead_code, reason = "the full command uses all of it")]
mod figures;
mod local;
mod log;
mod output;
mod service;
mod shutdown;
mod trust;

use clap::{Parser, Subcommand};
use failure::Failure;
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
    /// Let this machine work for a server.
    Client(Box<client::Args>),
    /// Have systemd run the client, or end that without a trace.
    Service(service::Args),
}

/// Parses the command line and does what it says.
pub(crate) fn main() -> ExitCode {
    let args = match Cli::parse().command {
        Command::Client(args) => args,
        Command::Service(args) => {
            return service::run(&args)
                .map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
        }
    };
    log::start(log::Program::Client, "info");
    // The cores are the trainers'; bytes are moved by one thread, which needs to wake no other.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = match runtime.worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::work(format!("no runtime: {error}")).report(),
    };
    match runtime.block_on(client::run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
