//! The subcommands with their one-line helps, and the dispatch to each.

use crate::cli::{
    jobs::{
        backlog, cancel, evaluate, events, extend, hosts, list, pause, resume, revoke, rollback,
        set, status, trials,
    },
    lab::{completions, demo, openapi, replay, simulate},
    model::{export, predict},
    serve::{command as serve_command, gc, migrate},
    submit::{command as submit_command, validate},
    terminal::{exit::Failure, log},
    work::assimilate,
};
use clap::{Parser, Subcommand};
use sojourn_daemon::{client, service};
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// Trains many deep-learning models on machines that come and go.
#[derive(Debug, Parser)]
#[command(name = "sojourn", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: jobs, leases, blobs, assimilation.
    Serve(serve_command::Args),
    /// Let this machine work for a server.
    Client(client::Args),
    /// Make results versions for a server, in a process of its own.
    Assimilate(assimilate::Args),
    /// Show how many results wait to become versions, and who makes them.
    Backlog(backlog::Args),
    /// Have systemd run the client, or end that without a trace.
    Service(service::Args),
    /// Check a job file and its data, and say what would be run.
    Validate(validate::Args),
    /// Cut a job's data into shards, upload what is missing, and start the job.
    ///
    /// Where the job file leaves open how many shards, or how large, that follows from the data, the models and the
    /// hosts that the server knows; it is said, with the reason, and is part of the job then.
    Submit(submit_command::Args),
    /// List all jobs.
    Jobs(list::Args),
    /// Show how far a job is, with its best trials.
    Status(status::Args),
    /// List a job's trials.
    Trials(trials::Args),
    /// List the machines that work for the server.
    Hosts(hosts::Args),
    /// End a machine's right to work for the server.
    Revoke(revoke::Args),
    /// Throw away what lies in the server's store and nobody knows of.
    Gc(gc::Args),
    /// Print a job's history.
    Events(events::Args),
    /// Write a trial's model into a file.
    Export(export::Args),
    /// Evaluate a trial on the test data, which the search never sees.
    Evaluate(evaluate::Args),
    /// Run an exported model over a data file, on this machine.
    Predict(predict::Args),
    /// Train a trial again on this machine and compare every checkpoint.
    Replay(replay::Args),
    /// Let a job stand still until it is resumed.
    Pause(pause::Args),
    /// Let a paused job go on.
    Resume(resume::Args),
    /// Train a job's trials for more epochs, also after they have finished.
    Extend(extend::Args),
    /// Change a job's priority, share or number of machines while it runs.
    Set(set::Args),
    /// Take trials back to before what can't be trusted.
    Rollback(rollback::Args),
    /// End a job.
    Cancel(cancel::Args),
    /// Copy a stopped server's journal into another place: from a file into Redis, or back.
    Migrate(migrate::Args),
    /// Simulate hosts and jobs in virtual time, with the server's own scheduling.
    Simulate(simulate::Args),
    /// Watch a search on machines that are killed under it, and its proof.
    Demo(demo::Args),
    /// Print the OpenAPI document of the HTTP interface, as a server gives it at /v1/openapi.json.
    Openapi,
    /// Print a completion script for a shell.
    Completions(completions::Args),
}

/// Parses the command line and does what it says.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Command::Serve(_) => log::start(log::Program::Other, "info,actix_server=warn"),
        Command::Client(_) => log::start(log::Program::Client, client::DEFAULT_LOG_FILTER),
        Command::Assimilate(_) => log::start(log::Program::Other, "info"),
        _ => log::start(log::Program::Other, "warn"),
    }
    let runtime = match &cli.command {
        Command::Client(_) => client::runtime(),
        _ => runtime(),
    };
    let result = runtime.and_then(|runtime| runtime.block_on(run(cli.command)));
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| Failure::work(format!("no runtime: {error}")))
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve_command::run(&args).await,
        Command::Client(args) => client::run(&args).await,
        Command::Assimilate(args) => assimilate::run(&args).await,
        Command::Backlog(args) => backlog::run(&args).await,
        Command::Service(args) => service::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Submit(args) => submit_command::run(&args).await,
        Command::Jobs(args) => list::run(&args).await,
        Command::Status(args) => status::run(&args).await,
        Command::Trials(args) => trials::run(&args).await,
        Command::Hosts(args) => hosts::run(&args).await,
        Command::Revoke(args) => revoke::run(&args).await,
        Command::Gc(args) => gc::run(&args).await,
        Command::Events(args) => events::run(&args).await,
        Command::Export(args) => export::run(&args).await,
        Command::Evaluate(args) => evaluate::run(&args).await,
        Command::Predict(args) => predict::run(&args).await,
        Command::Replay(args) => replay::run(&args).await,
        Command::Pause(args) => pause::run(&args).await,
        Command::Resume(args) => resume::run(&args).await,
        Command::Extend(args) => extend::run(&args).await,
        Command::Rollback(args) => rollback::run(&args).await,
        Command::Set(args) => set::run(&args).await,
        Command::Cancel(args) => cancel::run(&args).await,
        Command::Migrate(args) => migrate::run(&args).await,
        Command::Simulate(args) => simulate::run(&args),
        Command::Demo(args) => demo::run(&args).await,
        Command::Openapi => openapi::run(),
        Command::Completions(args) => completions::run::<Cli>(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
