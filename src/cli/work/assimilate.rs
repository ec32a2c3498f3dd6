//! `sojourn assimilate`: assimilates hosts' results in a process of its own. The work is in `sojourn-assimilator`.

use crate::cli::terminal::{
    connection::{servers, token},
    exit::Failure,
    local::{DEFAULT_SERVER, host_name},
    log::LogArgs,
    signals,
    trust::Trust,
};
use sojourn_assimilator::{DEFAULT_SPLIT_OVER, HttpQueueError, ProcessConfig, ProcessError};
use sojourn_blobs::StoreSettings;
use sojourn_client::limits::Size;
use sojourn_http::{CallError, HttpClient, HttpConfig};
use sojourn_protocol::error::{ErrorKind, Retry, error_chain};
use sojourn_slot::SlotConfig;
use std::{num::NonZero, path::PathBuf};

/// The file of a server's data folder that holds the assimilators' token.
const TOKEN_FILE: &str = "assimilator-token";

/// Takes hosts' results one at a time from the server, checks them, merges them where a job asks for that, and puts
/// what comes of them where the blobs are. Any number of such processes may work for one server, and each may die at
/// any moment: another does its work again. Ends after the units at hand when it is told to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server's address; of several servers, of which one is active, all of them with commas between.
    #[arg(long, env = "SOJOURN_SERVER", value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// The assimilators' token, in the server's file `assimilator-token`. For a server on this machine, the one in
    /// its default data folder if left out.
    #[arg(long, env = "SOJOURN_ASSIMILATOR_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A file with the token, which others can't read as they can a command line.
    #[arg(long, env = "SOJOURN_ASSIMILATOR_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
    /// Where the server's blobs are, as `serve` was told: s3://, gs:// or az:// with bucket and prefix, or a
    /// file:// folder that both reach. Keys and endpoints come from the environment.
    #[arg(long, env = "SOJOURN_BLOBS", value_name = "URL")]
    blobs: String,
    /// Units at once; as many as there are cores if left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Models with larger checkpoints than this are merged by ranges, which all who assimilate share
    /// [default: 256MiB].
    #[arg(long, value_name = "SIZE")]
    split_over: Option<Size>,
    /// The process' name, for people; its machine's name and its number if left out.
    #[arg(long)]
    name: Option<String>,
    /// The trainer program, for jobs that have the losses of results looked at; looked for beside this program if left
    /// out.
    #[arg(long, env = "SOJOURN_TRAINER", value_name = "FILE")]
    trainer: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let shutdown = signals::requested();
    sojourn_assimilator::run(config(args)?, shutdown).await.map_err(|error| failure(&error))
}

fn config(args: &Args) -> Result<ProcessConfig, Failure> {
    let servers = servers(&args.server, args.trust.file().is_some())?;
    let given = (args.token.as_deref(), args.token_file.as_deref());
    let token = token(given, &args.server, TOKEN_FILE)?.ok_or_else(|| {
        Failure::call("a token is needed: `--token-file`, or SOJOURN_ASSIMILATOR_TOKEN; it is in the server's file `assimilator-token`")
    })?;
    let authorities = args.trust.authorities()?;
    let http = HttpConfig { authorities: authorities.as_ref(), ..HttpConfig::default() };
    let http = HttpClient::new(servers, &http);
    let trainer = match &args.trainer {
        Some(trainer) if !trainer.is_file() => {
            return Err(Failure::call(format!("there is no trainer at `{}`", trainer.display())));
        }
        Some(trainer) => Some(SlotConfig::new(trainer.clone())),
        None => SlotConfig::find().ok(),
    };
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    Ok(ProcessConfig {
        http: http.map_err(|error| Failure::work(error_chain(&error)))?.with_token(token),
        name: args
            .name
            .clone()
            .unwrap_or_else(|| format!("{}-{}", host_name(), std::process::id())),
        blobs: args.blobs.clone(),
        settings: StoreSettings::from_env(),
        threads: args.threads.map_or_else(cores, usize::from),
        trainer,
        split_over: args.split_over.map_or(DEFAULT_SPLIT_OVER, |Size(bytes)| bytes),
    })
}

fn failure(error: &ProcessError) -> Failure {
    let message = error_chain(error);
    match error {
        ProcessError::Server(HttpQueueError::Call(error))
            if error.is_refused_by_proxy() || matches!(error, CallError::Protocol { .. }) =>
        {
            Failure::call(message)
        }
        ProcessError::Server(HttpQueueError::Refused { error, .. }) => match error.kind.retry() {
            Retry::Later if error.kind == ErrorKind::Unavailable => Failure::server(message),
            Retry::Later => Failure::work(message),
            Retry::Mended | Retry::Never => Failure::call(message),
        },
        ProcessError::Server(_) => Failure::server(message),
        ProcessError::OwnFolder | ProcessError::OtherBlobs { .. } | ProcessError::Blobs(_) => {
            Failure::call(message)
        }
        _ => Failure::work(message),
    }
}
