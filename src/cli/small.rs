//! The command line of the daemon alone: `sojourn client` as [`Cli`] of the full command has it, for
//! machines that only train. Built with `--no-default-features --features client` (`make daemon`).

mod render {
    #[expect(dead_code, reason = "the full command uses all of it")]
    pub(crate) mod figures;
}
mod terminal {
    #[expect(dead_code, reason = "the full command uses all of it")]
    pub(crate) mod exit;
    pub(crate) mod local;
    pub(crate) mod log;
    pub(crate) mod output;
    pub(crate) mod signals;
    pub(crate) mod stderr;
    pub(crate) mod trust;
}
mod work {
    pub(crate) mod client;
    pub(crate) mod ctl;
    pub(crate) mod service;
}

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use terminal::{exit::Failure, log};
use work::{client, service};

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
