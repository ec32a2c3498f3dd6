//! `sojourn serve`: the server of this machine. Everything that it does is in `sojourn-server`.

use crate::{
    cli::{
        serve::journal_url::JournalArgs,
        terminal::{exit::Failure, local, output},
    },
    serve::AssimilatorConfig,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sojourn_client::limits::Size;
use sojourn_core::CoreConfig;
use sojourn_protocol::{error::error_chain, time::Millis};
use sojourn_server::{
    ServeConfig, ServeError, ServeReady, StoreSettings, TlsFiles, Transport, journal::JournalError,
    shell::ShellError,
};
use sojourn_slot::SlotConfig;
use sojourn_workgen::PolicyName;
use std::{net::SocketAddr, path::PathBuf, str::FromStr};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where journal, blobs and tokens lie; for one server at a time.
    #[arg(long, env = "SOJOURN_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the blobs lie: in an object store, as s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX,
    /// or in a folder that others share, as file:///FOLDER. Keys and endpoints come from the environment
    /// (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and the like). Left
    /// out: in the data folder.
    #[arg(long, env = "SOJOURN_BLOBS", value_name = "URL")]
    blobs: Option<String>,
    /// Where to listen. Without a certificate the connection isn't encrypted.
    #[arg(long, env = "SOJOURN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8642")]
    listen: SocketAddr,
    #[command(flatten)]
    journal: JournalArgs,
    /// Where clients and other servers reach this one, where that isn't the address that it listens on.
    #[arg(long, env = "SOJOURN_ADVERTISE", value_name = "URL")]
    advertise: Option<String>,
    /// Serve over TLS with this certificate: a PEM file, the server's own first, then those that lead to
    /// its authority. A renewed file is taken up while the server runs.
    #[arg(long, env = "SOJOURN_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file without a passphrase.
    #[arg(long, env = "SOJOURN_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Seconds after which a machine that isn't heard of loses its work to others.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease_seconds: u64,
    /// Which hop goes to which machine: the trial with the most work left first (ltrp); as plans say that are
    /// worked out ahead, and beyond them as ltrp does (rollout); or by chance (randomized).
    #[arg(long, value_enum, default_value = "rollout")]
    policy: Policy,
    /// Hops of one trial that a machine may get at once: it then moves the trial's checkpoint once for all of
    /// them. Left out: as many as make that worth while.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    most_hops: Option<u32>,
    /// Per cent of a job's work that may be done twice: a running hop that its job waits for goes to a second,
    /// idle machine where that should end it clearly sooner, and the first result counts. 0: never.
    #[arg(long, value_name = "PERCENT", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    most_copied: u32,
    /// Threads of this process that make results versions: as many as there is work for, from MIN to MAX, or a fixed
    /// number. 0 leaves it to `sojourn assimilate` [default: 1..CORES].
    #[arg(long, value_name = "MIN..MAX")]
    assimilators: Option<Assimilators>,
    /// Models with larger checkpoints than this are merged by ranges, which all who assimilate share
    /// [default: 256MiB].
    #[arg(long, value_name = "SIZE")]
    split_over: Option<Size>,
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

/// The policies' words.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Policy {
    Rollout,
    Ltrp,
    Randomized,
}

/// More files than a server needs that hasn't run out of something else before.
const MOST_FILES: u64 = 1 << 20;

/// Has as many files as the system allows: each host that waits is a connection, and the usual limit is 1,024.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(MOST_FILES).min(MOST_FILES);
    let raised = Rlimit { current: limit.current.map(|current| current.max(most)), ..limit };
    // Where that isn't allowed, fewer hosts can wait, and a server for few goes on.
    let _ = setrlimit(Resource::Nofile, raised);
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    raise_file_limit();
    let data = args.data.clone().unwrap_or_else(|| local::data_folder("server"));
    let journals = args.journal.journals(&data)?;
    let mut config = ServeConfig::new(data, args.listen);
    config.journal = journals;
    config.advertise.clone_from(&args.advertise);
    config.blobs.clone_from(&args.blobs);
    config.store = StoreSettings::from_env();
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
    config.tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .map(|(certificate, key)| TlsFiles::new(certificate, key));
    config.shell.core = CoreConfig {
        policy: match args.policy {
            Policy::Rollout => PolicyName::Rollout,
            Policy::Ltrp => PolicyName::Ltrp,
            Policy::Randomized => PolicyName::Randomized,
        },
        most_hops: args.most_hops,
        most_copied: args.most_copied,
        ..CoreConfig::with_lease_term(Millis::from_secs(args.lease_seconds))
    };
    sojourn_server::serve(config, announce).await.map_err(|error| failure(&error))
}

/// Says on stdout where the server is and how machines and people come in.
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
        | ServeError::Store(_)
        | ServeError::Tls(_)
        | ServeError::Tokens(_)
        | ServeError::Shell(ShellError::Journal(
            JournalError::Unreachable { .. } | JournalError::Weak(_),
        )) => Failure::call(message),
        _ => Failure::work(message),
    }
}
