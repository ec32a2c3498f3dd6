//! `sojourn serve`: starts the server of this machine, which is in `sojourn-server`.

use crate::{
    cli::{
        model::export::live::LiveBoards,
        serve::{
            journal_url::JournalArgs,
            keep_jobs::{KeepJobs, OldJobs, retention},
        },
        terminal::{exit::Failure, local, log::LogArgs, output},
        token::quota::DefaultQuota,
    },
    serve::AssimilatorConfig,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sojourn_client::limits::Size;
use sojourn_core::{CoreConfig, DEFAULT_MOST_ROLLED_BACK, Invariant};
use sojourn_protocol::{error::error_chain, quotas::Quotas, time::Millis};
use sojourn_server::{
    DataUrl, MIN_MAX_DATA_MEMORY, NetworkConfig, PerAddress, ReaderProgram, ServeConfig,
    ServeError, ServeReady, Server, StoreSettings, TlsFiles, Transport, journal::JournalError,
    shell::ShellError,
};
use sojourn_slot::SlotConfig;
use sojourn_workgen::PolicyName;
use std::{net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of journal, blobs and tokens; one server at a time uses it.
    #[arg(long, env = "SOJOURN_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The store of the blobs: an object store as s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX,
    /// or a shared folder as file:///FOLDER. Keys and endpoints come from the environment (AWS_ACCESS_KEY_ID,
    /// AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and the like) [default: the data folder].
    #[arg(long, env = "SOJOURN_BLOBS", value_name = "URL")]
    blobs: Option<String>,
    /// The address to listen on. On another than loopback a certificate is needed, `--behind-proxy`, or `--insecure`.
    #[arg(long, env = "SOJOURN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8642")]
    listen: SocketAddr,
    #[command(flatten)]
    journal: JournalArgs,
    /// The address at which clients and other servers reach this one [default: the address that it listens on].
    #[arg(long, env = "SOJOURN_ADVERTISE", value_name = "URL")]
    advertise: Option<String>,
    /// Serve over TLS with this certificate: a PEM file, the server's own first, then those that lead to
    /// its authority. The server reads a renewed file while it runs.
    #[arg(long, env = "SOJOURN_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file without a passphrase.
    #[arg(long, env = "SOJOURN_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve other machines without encryption, though tokens travel with every request: for a network that you trust.
    #[arg(long, env = "SOJOURN_INSECURE", conflicts_with = "tls_cert")]
    insecure: bool,
    /// A proxy before the server encrypts, and the network between the two is trusted. The proxy says in X-Forwarded-For
    /// for whom it asks.
    #[arg(long, env = "SOJOURN_BEHIND_PROXY", conflicts_with_all = ["tls_cert", "insecure"])]
    behind_proxy: bool,
    /// The most connections from one address, or from one IPv6 network. Those beyond it are told to come again later.
    /// Unlimited with `--behind-proxy` [default: 4096, and at most half of all].
    #[arg(long, env = "SOJOURN_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N", value_parser = at_least_one)]
    max_connections_per_address: Option<usize>,
    /// Seconds without a word from a machine after which its work is given to others.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease_seconds: u64,
    /// A machine that wasn't heard of for this long is forgotten, and its token opens nothing any more: at least a day, at
    /// most a year.
    #[arg(long, env = "SOJOURN_FORGET_HOSTS", value_name = "TIME", default_value = "90d", value_parser = forget_hosts)]
    forget_hosts: Millis,
    /// How hops are assigned to machines: the trial with the most remaining work first (ltrp); by plans computed
    /// ahead, and where they end by ltrp (rollout); or at random (randomized).
    #[arg(long, value_enum, default_value = "rollout")]
    policy: Policy,
    /// The most hops of one trial that a machine may get at once. It then moves the trial's checkpoint once for all
    /// of them [default: as many as make moving it worth while, and as train for 50 ms].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    most_hops: Option<u32>,
    /// Percent of a job's work that may be done twice. A running hop that its job waits for is also given to an idle
    /// machine if that should end it clearly sooner; the first result counts. 0: never.
    #[arg(long, value_name = "PERCENT", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    most_copied: u32,
    /// Percent of a job's work that may be taken back without anybody's word when a host's owner is refuted: what they delivered
    /// and nobody confirmed. Where more would be lost, `sojourn status` asks. 0: it always asks.
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_MOST_ROLLED_BACK,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    most_rolled_back: u32,
    /// Threads of this process that assimilate results: as many as there is work for, from MIN to MAX, or a fixed
    /// number. 0 leaves that to `sojourn assimilate` [default: 1..CORES].
    #[arg(long, value_name = "MIN..MAX")]
    assimilators: Option<Assimilators>,
    /// Serve although the recovered state breaks this invariant. The error at the start names it. May be given several
    /// times.
    #[arg(long, value_name = "ID")]
    accept_violation: Vec<Invariant>,
    /// Keep so much of the disk free: below it running units are finished, and no new work is given out. Below a quarter of
    /// it no checkpoints are taken either. 0: nothing is kept [default: 2GB, or 5 % of the disk where that is less].
    #[arg(long, env = "SOJOURN_DISK_RESERVE", value_name = "SIZE")]
    disk_reserve: Option<Size>,
    /// Checkpoints larger than this are merged in ranges that all assimilators share [default: 256MiB].
    #[arg(long, value_name = "SIZE")]
    split_over: Option<Size>,
    /// Keep no more of jobs that have ended than this: a number of jobs (`100`), those that ended no longer ago (`30d`), or
    /// so many bytes (`50GB`). Several limits with commas between: the first that is reached counts. Jobs that ended first go
    /// first; jobs that run don't count. Looked at each minute [default: all are kept].
    #[arg(long, env = "SOJOURN_KEEP_JOBS", value_name = "LIMITS", value_delimiter = ',')]
    keep_jobs: Vec<KeepJobs>,
    /// The fate of jobs beyond `--keep-jobs`: they lose their data and all checkpoints but the best model, which can
    /// still be exported, and keep their figures (thin); or they are deleted (delete).
    #[arg(
        long,
        env = "SOJOURN_OLD_JOBS",
        value_name = "FATE",
        value_enum,
        default_value = "thin",
        requires = "keep_jobs"
    )]
    old_jobs: OldJobs,
    /// The most that the jobs of a user's token may take, where no quota of its own is set: `jobs=N` that haven't ended,
    /// `trials=N` that are left to train, `bytes=SIZE` in the store, `links=N` to jobs' pages, `failures=N` in a minute.
    /// Several with commas between [default: jobs=20,trials=10000,bytes=20GB,links=20,failures=120].
    #[arg(long, env = "SOJOURN_QUOTAS", value_name = "QUOTAS", value_delimiter = ',')]
    quotas: Vec<DefaultQuota>,
    /// A folder with the programs that bought machines fetch when they start: client and trainer, as `make dist` packs them.
    /// Anybody who reaches the server can fetch them.
    #[arg(long, env = "SOJOURN_PROGRAMS", value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Keep event files of all jobs for TensorBoard in this folder, live: `job-3-digits/` has a run for each trial of job 3. What is
    /// there of an earlier server is gone on with.
    #[arg(long, env = "SOJOURN_TENSORBOARD", value_name = "DIR")]
    tensorboard: Option<PathBuf>,
    /// A file with addresses that are told of what happens: a job is done, a value is the best, a host is lost, a budget is nearly
    /// used up, a job makes no progress.
    #[arg(long, env = "SOJOURN_WEBHOOKS", value_name = "FILE")]
    webhooks: Option<PathBuf>,
    /// Checkpoints that one machine may have uploaded before it reports them. Over that it is refused for a while
    /// [default: 256GiB].
    #[arg(long, value_name = "SIZE")]
    max_host_uploads: Option<Size>,
    /// The same of all machines together [default: 4TiB].
    #[arg(long, value_name = "SIZE")]
    max_uploads: Option<Size>,
    /// Files of data that browsers have sent and whose jobs aren't made yet. 0: none are taken [default: 64GiB].
    #[arg(long, env = "SOJOURN_MAX_DATA_UPLOADS", value_name = "SIZE")]
    max_data_uploads: Option<Size>,
    /// Memory that reading the data of one such job may take [default: 4GiB].
    #[arg(long, env = "SOJOURN_MAX_DATA_MEMORY", value_name = "SIZE")]
    max_data_memory: Option<Size>,
    /// Jobs that administrators begin on the web page may have their data fetched by this server from URLs that begin so:
    /// https://data.example.org/ or s3://bucket/sets/, several with commas between [default: none].
    #[arg(long, env = "SOJOURN_DATA_URLS", value_name = "URL", value_delimiter = ',')]
    data_urls: Vec<DataUrl>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("a number from 1 on is wanted")
}

/// How many threads assimilate.
#[derive(Debug, Clone, Copy)]
struct Assimilators {
    least: usize,
    most: usize,
}

impl FromStr for Assimilators {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        match (least.trim().parse(), most.trim().parse()) {
            (Ok(least), Ok(most)) if least <= most && most <= 1024 => Ok(Self { least, most }),
            _ => Err("a number up to 1024, or two such as `1..8`, the smaller first, are wanted"),
        }
    }
}

/// The shortest time after which machines may be forgotten: a day.
const MIN_FORGET_HOSTS: Millis = Millis::from_secs(24 * 3600);

fn forget_hosts(text: &str) -> Result<Millis, String> {
    let time: Millis = text.parse()?;
    if time < MIN_FORGET_HOSTS { Err("at least `1d` is wanted".to_owned()) } else { Ok(time) }
}

/// The scheduling policy, as the flag names it.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Policy {
    Rollout,
    Ltrp,
    Randomized,
}

/// The most open files that a server asks the system for.
const MAX_OPEN_FILES: u64 = 1 << 20;

/// Raises the limit of open files as far as the system allows. Each waiting host is a connection, and the usual limit
/// is 1,024.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(MAX_OPEN_FILES).min(MAX_OPEN_FILES);
    let raised = Rlimit { current: limit.current.map(|current| current.max(most)), ..limit };
    // Where that isn't allowed, fewer hosts can wait, and a server for few goes on.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Refuses to serve other machines in the clear unless that was asked for.
fn check_encryption(args: &Args) -> Result<(), Failure> {
    let address = args.listen;
    let is_local = address.ip().is_loopback();
    if is_local || args.tls_cert.is_some() || args.behind_proxy {
        return Ok(());
    }
    if !args.insecure {
        return Err(Failure::call(format!(
            "other machines reach {address}, and tokens travel with every request: give a certificate (`--tls-cert` and \
             `--tls-key`), put a proxy that encrypts before the server (`--behind-proxy`), or, in a network that you \
             trust, say `--insecure`"
        )));
    }
    tracing::warn!(
        %address,
        "serving WITHOUT encryption: whoever sees the network's traffic can read tokens, data and models"
    );
    Ok(())
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    check_encryption(args)?;
    raise_file_limit();
    let data = args.data.clone().unwrap_or_else(|| local::data_folder("server"));
    let journals = args.journal.journals(&data).await?;
    let mut config = ServeConfig::new(data, args.listen);
    config.journal = journals;
    config.advertise.clone_from(&args.advertise);
    config.programs.clone_from(&args.programs);
    config.webhooks.clone_from(&args.webhooks);
    config.blobs.clone_from(&args.blobs);
    config.store = StoreSettings::from_env();
    config.disk_reserve = args.disk_reserve.map(|Size(bytes)| bytes);
    config.network = NetworkConfig {
        behind_proxy: args.behind_proxy,
        max_connections_per_address: args
            .max_connections_per_address
            .map_or(PerAddress::Default, PerAddress::Most),
        ..NetworkConfig::default()
    };
    let mut assimilators =
        AssimilatorConfig { trainer: SlotConfig::find().ok(), ..AssimilatorConfig::default() };
    if let Some(Assimilators { least, most }) = args.assimilators {
        if most == 0 && args.blobs.is_none() {
            return Err(Failure::call(
                "`--assimilators 0` leaves results to other processes, which can't reach blobs in the data folder: say \
                 where they are to lie by `--blobs`",
            ));
        }
        assimilators.threads = least..=most;
    }
    if let Some(Size(bytes)) = args.split_over {
        assimilators.split_over = bytes;
    }
    config.assimilators = assimilators.local();
    if let Some(Size(bytes)) = args.max_host_uploads {
        config.upload_limits.host.bytes = bytes;
    }
    if let Some(Size(bytes)) = args.max_uploads {
        config.upload_limits.all.bytes = bytes;
    }
    let reader = ReaderProgram::own(vec!["prepare".into()]).map_err(|error| {
        Failure::work(format!("the system doesn't say which program this is: {error}"))
    })?;
    config.prepare = Some(Arc::new(reader));
    config.data_urls.clone_from(&args.data_urls);
    if let Some(Size(bytes)) = args.max_data_uploads {
        config.max_data_uploads = bytes;
    }
    if let Some(Size(bytes)) = args.max_data_memory {
        if bytes < MIN_MAX_DATA_MEMORY {
            return Err(Failure::call(
                "`--max-data-memory` is at least 256MiB: readers need so much for any data",
            ));
        }
        config.max_data_memory = bytes;
    }
    config.tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .map(|(certificate, key)| TlsFiles::new(certificate, key));
    config.shell.accept = args.accept_violation.iter().copied().collect();
    config.shell.core = CoreConfig {
        policy: match args.policy {
            Policy::Rollout => PolicyName::Rollout,
            Policy::Ltrp => PolicyName::Ltrp,
            Policy::Randomized => PolicyName::Randomized,
        },
        most_hops: args.most_hops,
        most_copied: args.most_copied,
        most_rolled_back: args.most_rolled_back,
        forget_hosts: args.forget_hosts,
        quotas: Quotas::DEFAULT.with(DefaultQuota::all(&args.quotas)),
        retention: retention(&args.keep_jobs, args.old_jobs).map_err(Failure::call)?,
        ..CoreConfig::with_lease_term(Millis::from_secs(args.lease_seconds))
    };
    let boards = args.tensorboard.clone().map(LiveBoards::new);
    let on_ready = |server: &Server| {
        // It ends with the process. What it was writing is gone on with at the next start.
        drop(boards.map(|boards| tokio::spawn(boards.keep(server.shell().clone()))));
        announce(server.ready());
    };
    sojourn_server::serve(config, on_ready).await.map_err(|error| failure(&error))
}

/// Prints the server's address, and how machines and people connect.
fn announce(ready: &ServeReady) {
    let scheme = match ready.transport {
        Transport::Http => "http",
        Transport::Https { .. } => "https",
    };
    let what = if ready.active { "serving" } else { "standing by" };
    let mut text = format!(
        "{what} at {scheme}://{}\n\
         a machine joins with:  {}\n\
         the admin token is in  {}",
        ready.address,
        ready.client_line(),
        ready.admin_token_file.display()
    );
    if let Some(standing) = &ready.journal {
        text.push_str("\nthe journal is in Redis: ");
        text.push_str(standing);
    }
    // The server runs on where nobody reads this.
    let _ = output::line(&text);
}
fn failure(error: &ServeError) -> Failure {
    let message = error_chain(error);
    match error {
        ServeError::AddressInUse(_)
        | ServeError::Listen { .. }
        | ServeError::Folder(_)
        | ServeError::Programs(_)
        | ServeError::Webhooks(_)
        | ServeError::Store(_)
        | ServeError::OtherStore { .. }
        | ServeError::Tls(_)
        | ServeError::Tokens(_)
        | ServeError::Shell(ShellError::Journal(
            JournalError::Unreachable { .. } | JournalError::Refused { .. } | JournalError::Weak(_),
        )) => Failure::call(message),
        _ => Failure::work(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn check(words: &[&str]) -> Result<(), String> {
        let line = Line::try_parse_from([&["serve"], words].concat());
        let args = line.map_err(|error| error.to_string())?.args;
        check_encryption(&args).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn other_machines_are_served_in_the_clear_only_where_that_was_asked_for() {
        let outside = ["--listen", "0.0.0.0:8642"];
        let with = |more: &[&str]| check(&[&outside, more].concat());
        assert!(check(&[]).is_ok() && check(&["--listen", "[::1]:1"]).is_ok());
        for address in ["0.0.0.0:8642", "192.168.0.2:8642", "[::]:1"] {
            let refused = check(&["--listen", address]).unwrap_err();
            assert!(refused.contains("--insecure") && refused.contains(address), "{refused}");
        }
        assert!(with(&["--insecure"]).is_ok() && with(&["--behind-proxy"]).is_ok());
        let tls = ["--tls-cert", "a", "--tls-key", "b"];
        assert!(with(&tls).is_ok());
        assert!(with(&[&tls[..], &["--insecure"]].concat()).is_err(), "one or the other");
    }
}
