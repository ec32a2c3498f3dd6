//! The command line: one file a subcommand, and what they share.
//!
//! | file | is about |
//! |---|---|
//! | `local` | what this machine knows of itself |
//! | `connection`, `trust` | which server, with which token, believed by which certificates |
//! | `failure`, `causes` | messages and exit codes |
//! | `output`, `grid` | JSON, colours and tables on stdout |
//! | `meter` | progress on stderr |
//! | `reading` | progress of reading data |
//! | `cutting` | how many shards, and how large |
//! | `course` | how trials meet machines, and when they end |
//! | `journal` | where a server keeps its journal |
//! | `figures`, `words` | how sizes, times and states are written |
//!
//! Every subcommand has `Args` and `run`. Exit codes: 0 done, 1 the work failed, 2 the call was wrong,
//! 3 the server could not be reached.
//!
//! Without the feature `full` there is but the daemon: `small.rs` stands in for this file then.

mod assimilate;
mod backlog;
mod cancel;
mod causes;
mod client;
mod completions;
mod connection;
mod course;
mod ctl;
mod cutting;
mod demo;
mod evaluate;
mod events;
mod export;
mod extend;
mod failure;
mod figures;
mod gc;
mod given;
mod grid;
mod hosts;
mod jobfile;
mod jobs;
mod journal;
mod local;
mod log;
mod meter;
mod migrate;
mod modelfile;
mod newfile;
mod openapi;
mod otherfile;
mod output;
mod pause;
mod predict;
mod reading;
mod replay;
mod resume;
mod revoke;
mod rollback;
mod scores;
mod serve;
mod service;
mod set;
mod shutdown;
mod simulate;
mod status;
mod submit;
mod trials;
mod trust;
mod validate;
mod wait;
pub(crate) mod words;
mod workspace;

pub(crate) use failure::Failure;
pub(crate) use grid::{Column, Grid};
pub(crate) use meter::{Meter, Unit};
pub(crate) use replay::{of_trial as replay_trial, text as replay_text};

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Trains many deep-learning models on machines that come and go.
#[derive(Debug, Parser)]
#[command(name = "sojourn", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: jobs, leases, blobs, assimilation.
    Serve(serve::Args),
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
    Submit(submit::Args),
    /// List all jobs.
    Jobs(jobs::Args),
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
        Command::Client(_) => log::start(log::Program::Client, "info"),
        Command::Assimilate(_) => log::start(log::Program::Other, "info"),
        _ => log::start(log::Program::Other, "warn"),
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Command::Client(_) = &cli.command {
        // The cores are the trainers'; bytes are moved by one thread, which needs to wake no other.
        runtime.worker_threads(1);
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::work(format!("no runtime: {error}")).report(),
    };
    match runtime.block_on(run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(&args).await,
        Command::Client(args) => client::run(&args).await,
        Command::Assimilate(args) => assimilate::run(&args).await,
        Command::Backlog(args) => backlog::run(&args).await,
        Command::Service(args) => service::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Submit(args) => submit::run(&args).await,
        Command::Jobs(args) => jobs::run(&args).await,
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
        Command::Completions(args) => completions::run(&args),
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
