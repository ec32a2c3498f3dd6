//! `sojourn client`: starts the daemon of this machine, which is in `sojourn-client`.
//!
//! The daemon's settings come from `client.toml`, the environment and flags. Flags override the environment, which overrides
//! the file.

use crate::ctl;
use sojourn_client::{
    CacheFor, ClientConfig, ClientError, GpuChoice, METADATA, Rates, Timing,
    limits::{Allowance, Change, Size},
    log::LogChoice,
};
use sojourn_programs::{
    exit::Failure,
    local::{self, DEFAULT_SERVER, host_name},
    log::LogArgs,
    secrets::secret,
    signals,
    trust::Trust,
};
use sojourn_protocol::{error::error_chain, time::Millis};
use std::{path::PathBuf, str::FromStr, sync::Arc, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
};

/// The log of the client, where `SOJOURN_LOG` says nothing else.
pub const DEFAULT_LOG_FILTER: &str = "info";
/// Size of the cache of blobs in bytes, where no limit is set.
const DEFAULT_CACHE_BYTES: u64 = 20 << 30;
/// Seconds between two copies on disk of what a unit has trained, where no other interval is set.
const DEFAULT_KEEP_SECONDS: u32 = 60;

/// All of these may also be set in `client.toml` in the data folder. Flags override the environment, which overrides the
/// file.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Read this file instead of `client.toml` in the data folder.
    #[arg(long, env = "SOJOURN_CLIENT_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server's address; of several servers, of which one is active, all of them with commas between
    /// [default: http://127.0.0.1:8642].
    #[arg(long, env = "SOJOURN_SERVER", value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// The enrolment token (not the admin token, which SOJOURN_TOKEN is for), needed once. For a server
    /// on this machine, the one in its default data folder if left out.
    #[arg(long, env = "SOJOURN_ENROL_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A file with the enrolment token, which others can't read as they can a command line.
    #[arg(long, env = "SOJOURN_ENROL_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The machine's name, for people; its host name if left out.
    #[arg(long, env = "SOJOURN_NAME")]
    name: Option<String>,
    /// The folder of identity, cache and finished results; one client at a time uses it.
    #[arg(long, env = "SOJOURN_CLIENT_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Units that run at once: a number, or `auto` for one per GPU, and one where there is none [default: auto].
    /// The limit `slots`.
    #[arg(long, value_name = "N|auto")]
    slots: Option<Slots>,
    /// Units that run at once on the cores, beside those on GPUs [default: 0].
    #[arg(long, env = "SOJOURN_CPU_SLOTS", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    cpu_slots: Option<u32>,
    /// GPUs to train on: `auto` (all that can be used, of whatever kinds, else the CPU), `none`, or
    /// numbers such as `0,1` [default: auto]. SOJOURN_TORCH names the folder of a full PyTorch's libraries,
    /// where `python3` doesn't know it.
    #[arg(long, env = "SOJOURN_GPUS", value_name = "GPUS")]
    gpus: Option<GpuChoice>,
    /// Most bytes that cached shards and checkpoints may take [default: 20GiB]. The limit `disk`.
    #[arg(long, value_name = "SIZE")]
    cache: Option<Size>,
    /// A limit of what the client may do on this machine, e.g. `--limit cpu=50 --limit hours=22:00-06:00`; all of
    /// them are listed below.
    #[arg(long = "limit", env = "SOJOURN_LIMITS", value_name = "KEY=VALUE", value_delimiter = ';')]
    limits: Vec<Change>,
    /// Seconds between two copies on disk of what a unit has trained, so that a crash costs no more than that. Longer
    /// where saving would take over 2 % of the time; 0 for never [default: 60].
    #[arg(long, env = "SOJOURN_KEEP_SECONDS", value_name = "N")]
    keep_seconds: Option<u32>,
    /// End when no unit has run for so long, whether there is none or the server can't be reached: for machines that cost
    /// money. `10min`, `1h` [default: wait for work for ever].
    #[arg(long, env = "SOJOURN_EXIT_WHEN_IDLE", value_name = "TIME")]
    exit_when_idle: Option<Millis>,
    /// Address of the metadata service that tells when AWS, GCP or Azure take this machine away; `none` for a
    /// machine that is in no cloud [default: http://169.254.169.254].
    #[arg(long, env = "SOJOURN_METADATA", value_name = "URL")]
    metadata: Option<String>,
    /// The log's files, beside stderr: `daily`, into JSON lines in `log/` in the data folder, the last eight
    /// files of at most 4 MiB, or `none` [default: daily].
    #[arg(long, env = "SOJOURN_LOG_FILE", value_name = "WHERE")]
    log_file: Option<LogChoice>,
    #[command(flatten)]
    log: LogArgs,
    /// The trainer program; looked for beside this program if left out.
    #[arg(long, env = "SOJOURN_TRAINER", value_name = "FILE")]
    trainer: Option<PathBuf>,
}

impl Args {
    /// How its log is written.
    #[must_use]
    pub const fn log(&self) -> &LogArgs {
        &self.log
    }
}

/// How many units run at once.
#[derive(Debug, Clone, Copy)]
enum Slots {
    Auto,
    Number(u32),
}

impl FromStr for Slots {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(number @ 1..=1024)) => Ok(Self::Number(number)),
            _ => Err("a number from 1 to 1024, or `auto`, is wanted".to_owned()),
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Speak with the client that runs on this machine.
    Ctl(ctl::Args),
}

const AFTER_HELP: &str = "\
client.toml may set server, ca, name, gpus, cpu_slots, cache_for (\"speed\", or \"room\"
for shards that are kept packed), keep_seconds, metadata, log, send_log, trainer,
timezone, and in its table [limits]:
  cpu = 50                      percent of the cores, or of those that `threads` allows
  cpu = { \"mon-fri 09:00-17:00\" = 25, else = 100 }
                                by the hour; also gpu, download and upload
  gpu = 80                      percent of the time in which slots on a GPU compute; the
                                lower of both holds
  threads = 4                   of all slots together
  slots = 2                     units that run at once; next start
  memory = \"8GiB\"               of all trainers together; one that is in the way is ended
  gpu_memory = \"10GiB\"          of each GPU, or \"50%\"; next start
  disk = \"20GiB\"                cached shards and checkpoints
  disk_reserve = \"5GB\"          of the disk stay free, or no unit is begun
  download = \"2MB/s\"            and upload = \"1MB/s\"
  monthly = \"100GB\"             of blobs down and up in a calendar month, by local time
  hours = \"mon-fri 22:00-06:00, sat-sun 00:00-24:00\"
  idle_minutes = 10             only once nobody has used the machine for so long
  not_on_battery = true
  pause_while = \"steam, blender\"    names of programs
  nice = 19                     of the trainers
  give_back_after = \"2min\"      of a pause: then what runs ends early
  cgroup = false                no control groups, which keep cpu, threads and memory where
                                they can be used; next start
SOJOURN_LIMITS takes several, with `;` between them.
`sojourn client ctl limits` changes them while the client runs.";

/// Signals that come within this time after the first count as one with it.
const SIGNAL_MERGE_INTERVAL: Duration = Duration::from_secs(1);

/// The runtime of the daemon: one thread moves all bytes, since the cores belong to the trainers.
///
/// # Errors
/// Where the system refuses threads or file handles.
pub fn runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::work(format!("no runtime: {error}")))
}

/// Runs the daemon until a signal ends it, or does what `client ctl` is asked to do.
///
/// # Errors
/// A call that is wrong, or a fault of this machine that ends the daemon.
pub async fn run(args: &Args) -> Result<(), Failure> {
    let data = args.data.clone().unwrap_or_else(|| local::data_folder("client"));
    if let Some(Action::Ctl(ctl)) = &args.action {
        return ctl::run(ctl, &data).await;
    }
    let config = config(args, data)?;
    // On the runtime's own thread, beside everything that it starts.
    let stopping = Arc::new(Notify::new());
    let notifier = Arc::clone(&stopping);
    let shutdown = signals::requested();
    let daemon = tokio::spawn(sojourn_client::run(config, async move {
        shutdown.await;
        notifier.notify_one();
    }));
    let again = async {
        stopping.notified().await;
        // One request may come as two signals: from the terminal, and from a program in between.
        tokio::time::sleep(SIGNAL_MERGE_INTERVAL).await;
        signals::requested().await;
    };
    tokio::select! {
        ended = daemon => match ended {
            Ok(ended) => ended.map_err(|error| failure(&error)),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
        () = again => Err(Failure::interrupted(
            "ended at once; what isn't sent yet is kept for the next start",
        )),
    }
}

/// The configuration from flags, environment and file.
fn config(args: &Args, data: PathBuf) -> Result<ClientConfig, Failure> {
    let mut limits = args.limits.clone();
    limits.extend(args.slots.and_then(|slots| match slots {
        Slots::Auto => "slots=".parse().ok(),
        Slots::Number(slots) => Some(Change::new("slots", &slots.to_string())),
    }));
    limits.extend(args.cache.map(|size| Change::new("disk", &size.to_string())));
    let allowance = Allowance::read(args.config.as_deref(), &data, limits);
    let allowance = allowance.map_err(|error| Failure::call(error_chain(&error)))?;
    let file = allowance.settings();
    let wrong = |key: &str, why: String| {
        let path = allowance.path().map(|path| path.display().to_string()).unwrap_or_default();
        Failure::call(format!("`{path}`, `{key}`: {why}"))
    };
    let gpus = file.gpus.as_deref().map(str::parse::<GpuChoice>).transpose();
    let gpus = gpus.map_err(|why| wrong("gpus", why))?;
    let log = file.log.as_deref().map(str::parse::<LogChoice>).transpose();
    let log = log.map_err(|why| wrong("log", why))?;
    let cache_for = file.cache_for.as_deref().map(str::parse::<CacheFor>).transpose();
    let cache_for = cache_for.map_err(|why| wrong("cache_for", why))?.unwrap_or_default();
    let server = args.server.clone().or_else(|| file.server.clone());
    let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
    let given = secret("--token", args.token.as_deref(), args.token_file.as_deref())?;
    let metadata = [&args.metadata, &file.metadata].into_iter().flatten();
    let metadata = metadata.map(String::as_str).find(|address| !address.is_empty());
    let metadata = metadata.unwrap_or(METADATA).to_owned();
    let keep_seconds = args.keep_seconds.or(file.keep_seconds).unwrap_or(DEFAULT_KEEP_SECONDS);
    Ok(ClientConfig {
        ca: args.trust.file().or_else(|| file.ca.clone()),
        token: given.or_else(|| local::local_token(&server, "enrol-token")),
        server,
        name: args.name.clone().or_else(|| file.name.clone()).unwrap_or_else(host_name),
        data,
        slots: file.limits.slots,
        cpu_slots: args.cpu_slots.or(file.cpu_slots).unwrap_or(0),
        gpus: args.gpus.clone().or(gpus).unwrap_or_default(),
        cache_bytes: DEFAULT_CACHE_BYTES,
        cache_for,
        rates: Rates::default(),
        log: args.log_file.or(log).unwrap_or_default(),
        trainer: args.trainer.clone().or_else(|| file.trainer.clone()),
        metadata: (metadata != "none").then_some(metadata),
        send_log: file.send_log.unwrap_or(true),
        timing: Timing {
            keep_every: (keep_seconds > 0).then(|| Duration::from_secs(u64::from(keep_seconds))),
            exit_when_idle: args.exit_when_idle.map(|time| Duration::from_millis(time.0)),
            ..Timing::default()
        },
        allowance,
    })
}

/// The exit code of an error that ends the daemon. Temporary faults never end it.
fn failure(error: &ClientError) -> Failure {
    let message = error_chain(error);
    match error {
        ClientError::NoToken => Failure::call(format!(
            "{message}: pass the file that `sojourn serve` names as --token-file, or a token as SOJOURN_ENROL_TOKEN"
        )),
        ClientError::Metadata { .. } => Failure::call(format!(
            "{message}; `--metadata none` is for a machine that is in no cloud"
        )),
        ClientError::Folder { .. }
        | ClientError::FolderGone { .. }
        | ClientError::Trainer(_)
        | ClientError::Unlike(_)
        | ClientError::Http(_)
        | ClientError::Gpus(_) => Failure::work(message),
        _ => Failure::call(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn given(data: &std::path::Path, arguments: &[&str]) -> Result<ClientConfig, Failure> {
        let line = ["client", "--server", "http://a"].iter().chain(arguments);
        config(&Line::try_parse_from(line).unwrap().args, data.to_owned())
    }

    #[test]
    fn flags_override_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = "server = 'http://b'\nname = 'lab'\nlog = 'none'\nkeep_seconds = 5\n[limits]\nslots = 2\ndisk = '1GiB'\ncpu = 50\n";
        fs::write(folder.path().join("client.toml"), file).unwrap();
        let config = given(folder.path(), &["--slots", "3", "--limit", "nice=19"]).unwrap();
        assert_eq!((config.server.as_str(), config.name.as_str()), ("http://a", "lab"));
        assert_eq!(config.timing.keep_every, Some(Duration::from_secs(5)));
        assert_eq!(config.log, LogChoice::Off);
        let limits = config.allowance.limits();
        assert_eq!((config.slots, limits.disk), (Some(3), Some(Size(1 << 30))));
        assert_eq!(limits.cpu.as_ref().map(|ratio| ratio.lowest().get()), Some(50));
        assert_eq!(limits.nice.map(|level| level.get()), Some(19));
    }

    #[test]
    fn an_empty_address_counts_as_unset() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = |arguments: &[&str]| given(folder.path(), arguments).unwrap().metadata;
        assert_eq!(metadata(&["--metadata", ""]).as_deref(), Some(METADATA));
        assert_eq!(metadata(&["--metadata", "none"]), None);
        fs::write(folder.path().join("client.toml"), "metadata = 'http://a'\n").unwrap();
        assert_eq!(metadata(&["--metadata", ""]).as_deref(), Some("http://a"));
        fs::write(folder.path().join("client.toml"), "metadata = ''\n").unwrap();
        assert_eq!(metadata(&[]).as_deref(), Some(METADATA));
    }

    #[test]
    fn an_invalid_setting_is_named_with_its_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let failure = given(folder.path(), &["--limit", "cpu=0"]).unwrap_err();
        assert!(failure.messages()[0].starts_with("limit `cpu=0`: `0`: 1 to 100"), "{failure:?}");
        fs::write(folder.path().join("client.toml"), "\nnname = 'lab'\n").unwrap();
        let failure = given(folder.path(), &[]).unwrap_err();
        assert!(
            failure.messages()[0].contains("client.toml`, line 2, `nname`: unknown field"),
            "{failure:?}"
        );
        fs::write(folder.path().join("client.toml"), "gpus = 'many'\n").unwrap();
        let failure = given(folder.path(), &[]).unwrap_err();
        assert!(failure.messages()[0].contains("client.toml`, `gpus`: `auto`"), "{failure:?}");
        fs::write(folder.path().join("client.toml"), "log = 'weekly'\n").unwrap();
        let failure = given(folder.path(), &[]).unwrap_err();
        assert!(failure.messages()[0].contains("client.toml`, `log`: `daily`"), "{failure:?}");
    }
}
