//! `sojourn client ctl`: asks and controls the client that runs on this machine.

mod log;
mod show;
mod watch;

use sojourn_client::{
    control::{Answer, Ask, CallError, Pause, call},
    limits::{Change, Span},
};
use sojourn_programs::{exit::Failure, output};
use sojourn_protocol::error::error_chain;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// As `status --watch`.
    #[arg(long)]
    watch: bool,
    /// The client's data folder.
    #[arg(long, env = "SOJOURN_CLIENT_DATA", value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Print the client's answer as JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show slots, units, limits, and why nothing computes where nothing does; the same as `ctl` alone.
    Status {
        /// Show it on the whole terminal, with transfers and the log, until `q`; keys pause, resume and drain. Where
        /// stdout is no terminal, a line a second; with --json, one of JSON.
        #[arg(long)]
        watch: bool,
    },
    /// Stop computing until `resume`, also after restarts of the client and of the machine. Running units pause after their current
    /// batch.
    Pause {
        /// The length of the pause: `90s`, `30min`, `2h`.
        #[arg(long = "for", value_name = "TIME")]
        length: Option<Span>,
    },
    /// End a pause. Limits may cause another.
    Resume,
    /// Finish the running units, take no new ones, and end with exit code 0. A paused client sends what it has trained
    /// instead, and ends at once.
    Drain,
    /// Show the limits, or change them and write them into the client's file.
    Limits {
        /// `cpu=50`; without a value (`cpu=`), to take the limit away. They hold over the same flags of later starts.
        #[arg(value_name = "KEY=VALUE", value_parser = checked_change)]
        changes: Vec<String>,
    },
    /// Show how full the cache is.
    Cache {
        #[command(subcommand)]
        action: Option<CacheAction>,
    },
    /// Let the server send this machine to a store that it hadn't named when the machine enrolled. `status` shows which one was
    /// refused.
    AcceptStore {
        /// As `status` shows it: `https://HOST`, with `:PORT` where it has one.
        #[arg(value_name = "STORE")]
        store: String,
    },
    /// Print the end of the client's log, also where the client has ended.
    Log(log::Args),
}

/// Limits that take effect at the client's next start.
const AT_NEXT_START: &[&str] = &["slots", "gpu_memory", "cgroup"];

#[derive(Debug, clap::Subcommand)]
enum CacheAction {
    /// Delete all blobs that no current unit needs.
    Clear,
}

/// The text of a limit's change, where it is one.
fn checked_change(text: &str) -> Result<String, String> {
    text.parse::<Change>().map(|_| text.to_owned())
}

/// `default`: the data folder where none is named.
pub(crate) async fn run(args: &Args, default: &Path) -> Result<(), Failure> {
    let data = args.data.as_deref().unwrap_or(default);
    let action = args.action.as_ref().unwrap_or(&Action::Status { watch: false });
    let ask = match action {
        Action::Status { watch } if *watch || args.watch => {
            return watch::run(data, args.json).await;
        }
        _ if args.watch => {
            return Err(Failure::call("`--watch` shows the status, and goes with nothing else"));
        }
        Action::Status { .. } => Ask::Status,
        Action::Pause { length } => {
            Ask::Pause(Pause { seconds: length.map(|length| length.0.as_secs()) })
        }
        Action::Resume => Ask::Resume,
        Action::Drain => Ask::Drain,
        Action::Limits { changes } if changes.is_empty() => Ask::Limits,
        Action::Limits { changes } => Ask::SetLimits(changes.clone()),
        Action::Cache { action: None } => Ask::Cache,
        Action::Cache { action: Some(CacheAction::Clear) } => Ask::ClearCache,
        Action::AcceptStore { store } => Ask::AcceptStore(store.clone()),
        Action::Log(of) => return log::run(of, data, args.json),
    };
    let answer = asked(data, &ask)?;
    if let Ask::SetLimits(changes) = &ask {
        let later = |change: &&String| {
            AT_NEXT_START.contains(&change.split('=').next().unwrap_or_default())
        };
        let later: Vec<&str> = changes.iter().filter(later).map(String::as_str).collect();
        if !later.is_empty() {
            let later = later.join(", ");
            output::remark(&format!("from the client's next start: {later}"));
        }
    }
    if args.json {
        return match &answer {
            Answer::Status(status) => output::json(status),
            Answer::Limits(limits) => output::json(limits),
            Answer::Cache(cache) => output::json(cache),
            Answer::Log(_) | Answer::Refused(_) => Ok(()),
        };
    }
    output::line(&show::answer(&answer))
}

/// The client's answer, unless it refuses.
fn asked(data: &Path, ask: &Ask) -> Result<Answer, Failure> {
    match call(data, ask).map_err(|error| unanswered(&error))? {
        Answer::Refused(why) => Err(Failure::call(why)),
        answer => Ok(answer),
    }
}

fn unanswered(error: &CallError) -> Failure {
    match error {
        CallError::Nobody { .. } | CallError::NotYours { .. } => Failure::call(error_chain(error)),
        CallError::Ended { .. } | CallError::Silent { .. } => Failure::work(error_chain(error)),
    }
}
