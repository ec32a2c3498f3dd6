//! The subcommands with their one-line helps, and the dispatch to each.

use crate::cli::{
    cloud,
    command_groups::in_groups,
    jobs::{
        backlog, cancel, delete, evaluate, events, extend, host_changes, hosts, job_args::JobArgs,
        list, page_link, pause, resume, rollback, search, set, status, top, traffic, trials,
    },
    lab::{completions, demo, openapi, replay, simulate},
    model::{check, export, predict, report},
    serve::{backup, command as serve_command, gc, migrate, prepare},
    submit::{command as submit_command, init, validate},
    terminal::{
        columns,
        exit::Failure,
        log::{self, Log, LogArgs, Program},
        secrets,
    },
    token,
    work::assimilate,
};
use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};
use sojourn_daemon::{client, service};
use std::process::ExitCode;
use tokio::runtime::{Handle, Runtime};

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
    /// Run the client: this machine trains for a server.
    Client(client::Args),
    /// Check and merge results for a server, in a process of its own.
    Assimilate(assimilate::Args),
    /// Show how many results wait to be assimilated, and which processes assimilate them.
    Backlog(backlog::Args),
    /// Show the server's connections and requests, and what it refused.
    Traffic(traffic::Args),
    /// Install the client as a service of systemd, or remove it completely.
    Service(service::Args),
    /// Look at data, and write a job file for it: a first search.
    ///
    /// The data is read whole. Each column of a table is shown with what it holds and what it is taken for: the label, a feature, a
    /// feature for each word, or nothing, with the reason. The job file has comments, and is accepted by `validate` as it is; whatever
    /// was guessed is a line in it. Nothing is sent, and no server is needed.
    ///
    /// On a terminal the label is asked for unless `--label` says it. Elsewhere `--label` or `--yes` is needed.
    Init(init::Args),
    /// Check a job file and its data, and show what would run.
    Validate(validate::Args),
    /// Cut a job's data into shards, upload what is missing, and start the job.
    ///
    /// If the job file doesn't set the number or the sizes of the shards, they are chosen by the data, the models and
    /// the hosts that the server knows. The choice is printed with its reason, and becomes part of the job.
    Submit(submit_command::Args),
    /// List all jobs.
    ///
    /// DISK says how many bytes of blobs the server keeps because of a job: its data, the models that it starts from, and
    /// the checkpoints of its trials. A blob that several jobs have, such as the shards of the same data, counts for
    /// each of them.
    Jobs(list::Args),
    /// Show a job's progress and its best trials.
    Status(status::Args),
    /// List a job's trials.
    Trials(trials::Args),
    /// Show jobs, trials, hosts and events on the whole terminal, anew each second.
    ///
    /// Where stdout is no terminal, the same is printed once.
    Top(top::Args),
    /// List the machines that work for the server, or forget those that are gone.
    Hosts(hosts::Args),
    /// Give a machine no new work until it is unblocked; what it holds goes on.
    Block(host_changes::Args),
    /// Give a machine work again that was blocked.
    Unblock(host_changes::Args),
    /// End a machine's right to work for the server.
    Revoke(host_changes::Args),
    /// Make, list, replace and revoke tokens: for machines that enrol, and for users.
    Token(token::Args),
    /// Delete the blobs and uploads in the server's store that nothing refers to.
    Gc(gc::Args),
    /// Print a job's history.
    Events(events::Args),
    /// Check a model of your own before it is submitted: what it is as a graph, and whether it is repeatable.
    ///
    /// The model is exported as a graph: its parameters, its checkpoint, its memory and the time of a batch are printed. Eight
    /// batches are trained whole, and cut after four with the rest in another process. Both must give the same bytes; else the
    /// first tensor that differs is named, and the exit code is 1.
    ///
    /// The data is that of `--job`, of the `job.toml` beside the model where there is one, or made up by `--shape`. No server is
    /// needed.
    Check(check::Args),
    /// Write a trial's model into a file, or all trials as tables, for TensorBoard or to MLflow.
    ///
    /// `-o FILE` writes a model. `--csv`, `--parquet` and `--json FILE` write three tables, of trials, of hops and of metrics; several of
    /// these may be given at once. `--tensorboard DIR` writes event files, and `--mlflow URL` pushes to a tracking server.
    Export(export::Args),
    /// Write what came of a job into one HTML file, to be sent to somebody.
    ///
    /// The file has the learning curves, the settings, all trials, the job as submitted, versions and digests, and how efficient the
    /// job was beside what was possible. It loads nothing from elsewhere. With `--replay N` the N best trials are trained again here first,
    /// and the verdicts are in the file.
    Report(report::Args),
    /// Evaluate a trial on the test data, which the search never sees.
    Evaluate(evaluate::Args),
    /// Run an exported model over a data file, on this machine.
    ///
    /// A line of CSV is written for each row of the data: its number, the prediction, and for classes the probability of
    /// each. Columns of a table are found by the names that the model was trained on; what else there is, is ignored. Where the
    /// data has labels, they are compared with the predictions. Rows of a folder of images are named by their files.
    ///
    /// Of a model over columns by name a line has all outputs as they are. Where one column of its data has classes, and there
    /// are as many outputs, the prediction is the class of the largest. Text is cut into the windows of the model, a line for
    /// each.
    Predict(predict::Args),
    /// Train a trial again on this machine and compare every checkpoint.
    Replay(replay::Args),
    /// Pause a job until it is resumed.
    Pause(pause::Args),
    /// Resume a paused job.
    Resume(JobArgs),
    /// Train a job's trials for more epochs, also after they have finished.
    ///
    /// A job that has used up its `wall_time` has it once more, and trials that had to end for it go on, also for the
    /// epochs that they were to have.
    Extend(extend::Args),
    /// Say how far a job's search has got, take further combinations from another space, or end it.
    Search(search::Args),
    /// Change a job's priority, share, machines, budget or deadline while it runs.
    Set(set::Args),
    /// Take trials back to before a result that can't be trusted.
    Rollback(rollback::Args),
    /// Make a link to a job's page, for whoever is to look at it without a token.
    #[command(name = "share")]
    PageLink(page_link::Args),
    /// End a job.
    ///
    /// On a terminal the command says what is lost, and asks. Its figures and checkpoints stay.
    Cancel(cancel::Args),
    /// Delete jobs that have ended, with their data and models.
    ///
    /// A job's figures, its data, its checkpoints and its best model are deleted. Blobs that another job has stay: the
    /// shards of the same data, a model that it starts from. The command says what goes, and asks. The job's number isn't
    /// given again.
    Delete(delete::Args),
    /// Copy a server's data folder, also while the server runs.
    ///
    /// The copy has all events up to one moment, and every blob that they name. A second run copies only what is new. For a
    /// server whose journal and blobs are in its data folder.
    Backup(backup::Args),
    /// Copy a stopped server's journal from a file into Redis, or back.
    Migrate(migrate::Args),
    /// Make a fleet in a cloud, with server and autoscaler, or remove it completely.
    Cloud(cloud::Args),
    /// Simulate hosts and jobs in virtual time, with the server's own scheduling.
    Simulate(simulate::Args),
    /// Run a search on processes that are killed meanwhile, and prove its result by a replay.
    Demo(demo::Args),
    /// Make a job of files that a browser has sent, for the server that runs this command.
    #[command(hide = true)]
    Prepare,
    /// Print the OpenAPI document of the HTTP interface, which a server also serves at /v1/openapi.json.
    Openapi,
    /// Print a completion script for a shell.
    Completions(completions::Args),
}

/// The log of a server. The library says an error of its own for each request that it can't parse, so that anybody could fill
/// the log.
const SERVER_LOG_FILTER: &str = "info,actix_server=warn,actix_http::h1::dispatcher=off";

/// Characters of a wrong value that an error repeats.
const MAX_VALUE_CHARS: usize = 80;

/// Parses the command line, sets up log and runtime, and runs the subcommand.
pub(crate) fn main() -> ExitCode {
    let cli = parse().unwrap_or_else(|error| with_short_value(error).exit());
    secrets::warn_of_arguments();
    let runtime = match &cli.command {
        Command::Client(_) => client::runtime(),
        _ => runtime(),
    };
    let result = runtime.and_then(|runtime| {
        let log = start_log(&cli.command, runtime.handle())?;
        let result = runtime.block_on(run(cli.command));
        log.end();
        result
    });
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// The command line as clap knows it.
#[cfg(test)]
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = in_groups(columns::fitted(Cli::command()));
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn start_log(command: &Command, runtime: &Handle) -> Result<Log, Failure> {
    let text = LogArgs::default();
    let (program, filter, args) = match command {
        Command::Serve(args) => (Program::Server, SERVER_LOG_FILTER, &args.log),
        Command::Client(args) => {
            let program = Program::Client { keep: sojourn_client::log::keep };
            (program, client::DEFAULT_LOG_FILTER, args.log())
        }
        Command::Assimilate(args) => (Program::Assimilator, "info", &args.log),
        _ => (Program::Other, "warn", &text),
    };
    log::start_with_traces(program, filter, args, runtime)
}

/// The error, which repeats no more of the wrong value than a line holds.
fn with_short_value(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && value.chars().count() > MAX_VALUE_CHARS
    {
        let begins: String = value.chars().take(MAX_VALUE_CHARS).collect();
        error.insert(ContextKind::InvalidValue, ContextValue::String(format!("{begins}...")));
    }
    error
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
        Command::Traffic(args) => traffic::run(&args).await,
        Command::Service(args) => service::run(&args),
        Command::Init(args) => tokio::task::block_in_place(|| init::run(&args)),
        Command::Validate(args) => validate::run(&args).await,
        Command::Submit(args) => submit_command::run(&args).await,
        Command::Jobs(args) => list::run(&args).await,
        Command::Status(args) => status::run(&args).await,
        Command::Trials(args) => trials::run(&args).await,
        Command::Top(args) => top::run(&args).await,
        Command::Hosts(args) => hosts::run(&args).await,
        Command::Block(args) => host_changes::block(&args).await,
        Command::Unblock(args) => host_changes::unblock(&args).await,
        Command::Revoke(args) => host_changes::revoke(&args).await,
        Command::Token(args) => token::run(&args).await,
        Command::Gc(args) => gc::run(&args).await,
        Command::Events(args) => events::run(&args).await,
        Command::Check(args) => check::run(&args).await,
        Command::Export(args) => export::run(&args).await,
        Command::Report(args) => report::run(&args).await,
        Command::Evaluate(args) => evaluate::run(&args).await,
        Command::Predict(args) => predict::run(&args).await,
        Command::Replay(args) => replay::run(&args).await,
        Command::Pause(args) => pause::run(&args).await,
        Command::Resume(args) => resume::run(&args).await,
        Command::Extend(args) => extend::run(&args).await,
        Command::Rollback(args) => rollback::run(&args).await,
        Command::Search(args) => search::run(&args).await,
        Command::Set(args) => set::run(&args).await,
        Command::PageLink(args) => page_link::run(&args).await,
        Command::Cancel(args) => cancel::run(&args).await,
        Command::Delete(args) => delete::run(&args).await,
        Command::Backup(args) => backup::run(&args).await,
        Command::Migrate(args) => migrate::run(&args).await,
        Command::Cloud(args) => cloud::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Demo(args) => demo::run(&args).await,
        Command::Prepare => tokio::task::block_in_place(prepare::run),
        Command::Openapi => openapi::run(),
        Command::Completions(args) => completions::run::<Cli>(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
