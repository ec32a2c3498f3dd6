//! The whole server: folder, journal, core, blobs, assimilators, HTTP; started and stopped in order.

use crate::{
    errands,
    folder::{DataFolder, FolderError},
    http::{self, Site, Tokens},
    journal::{Journal, JournalError, OpenJournal, SqliteJournal},
    keeper::Keeper,
    queue::CoreQueue,
    shell::{Clock, Errand, Shell, ShellConfig, ShellError, ShellHandle, SteadyClock},
    spooled::Spooled,
    tls::{Certificates, TlsError, TlsFiles},
    tokens::{SharedTokens, TokensError, settle_tokens},
};
use actix_web::{App, HttpServer, dev::ServerHandle, middleware::from_fn, web};
use rustls::ServerConfig;
use sojourn_assimilator::{Assimilator, SPLIT_OVER, StagedUploads, Trainer, Workers};
use sojourn_blobs::{
    BlobError, BlobStore, ConnectError, Disk, RealDisk, StoreSettings, UploadError, Uploads,
};
use sojourn_slot::SlotConfig;
use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    num::NonZero,
    ops::RangeInclusive,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::{
    runtime::Handle,
    signal::unix::{SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
    task::JoinHandle,
};

/// Connections of one worker: so many that other limits come first.
const MOST_CONNECTIONS: usize = 1 << 20;

/// How to serve.
pub struct ServeConfig {
    /// The data folder; one server at a time.
    pub data: PathBuf,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Certificate and key; `None` serves in the clear.
    pub tls: Option<TlsFiles>,
    /// The shell's and the core's settings.
    pub shell: ShellConfig,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where the journal is; `None` is the SQLite file in the data folder.
    pub journal: Option<Arc<dyn OpenJournal>>,
    /// Where clients and other servers reach this one, where that isn't the address that it listens on.
    pub advertise: Option<String>,
    /// What uploads are written through.
    pub disk: Arc<dyn Disk>,
    /// How a trainer is started on this machine, for jobs that have results evaluated before they are merged.
    pub trainer: Option<SlotConfig>,
    /// Where the blobs are, as a URL of an object store; `None` is a folder in the data folder.
    pub blobs: Option<String>,
    /// How the object store is reached.
    pub store: StoreSettings,
    /// Threads that assimilate in this process: at least and at most so many; none where processes of their own do it.
    pub assimilators: RangeInclusive<usize>,
    /// Models with larger checkpoints than this are merged by ranges, which all who assimilate share.
    pub split_over: u64,
}

impl fmt::Debug for ServeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data, listen, .. } = self;
        f.debug_struct("ServeConfig").field("data", data).field("listen", listen).finish()
    }
}

impl ServeConfig {
    /// The defaults for a folder and an address.
    #[must_use]
    pub fn new(data: PathBuf, listen: SocketAddr) -> Self {
        let clock = Arc::new(SteadyClock::machine());
        let (shell, disk) = (ShellConfig::default(), Arc::new(RealDisk));
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            data,
            listen,
            tls: None,
            shell,
            clock,
            journal: None,
            advertise: None,
            disk,
            trainer: None,
            blobs: None,
            store: StoreSettings::default(),
            assimilators: 1..=cores,
            split_over: SPLIT_OVER,
        }
    }
}

/// Why the server can't start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The data folder can't be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The state can't be brought back.
    #[error("can't go on from the data folder's journal")]
    Shell(#[from] ShellError),
    /// The tokens can't be settled on.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The blobs can't be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The object store can't be used.
    #[error(transparent)]
    Store(#[from] ConnectError),
    /// The certificate can't be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The uploads can't be used.
    #[error(transparent)]
    Uploads(#[from] UploadError),
    /// Something listens there already.
    #[error("another program listens on {0}: give another address or port")]
    AddressInUse(SocketAddr),
    /// The address can't be listened on.
    #[error("can't listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Threads or signals can't be had.
    #[error("the system refused")]
    System(#[source] io::Error),
    /// The core's thread has ended by a fault of the program.
    #[error("the core has ended; its log says why")]
    CoreEnded,
}

/// How connections are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// In the clear.
    Http,
    /// Over TLS.
    Https {
        /// A name that the certificate has, the address itself where it can be called by that.
        name: Option<String>,
        /// The certificate's file, where it signed itself and so is what clients must trust.
        own_authority: Option<PathBuf>,
    },
}

/// What whoever started the server wants to tell people.
#[derive(Debug, Clone)]
pub struct ServeReady {
    /// Where it listens.
    pub address: SocketAddr,
    /// How connections are made.
    pub transport: Transport,
    /// The token with which machines become hosts.
    pub enrol_token: String,
    /// The file with the token of users.
    pub admin_token_file: PathBuf,
    /// Whether it is the active server, and not one that stands by for it.
    pub active: bool,
    /// What of the journal a power cut could lose, where that was chosen.
    pub journal: Option<String>,
}

impl ServeReady {
    /// The server's address for people on this machine. Over TLS it has a name of the certificate, where
    /// there is one.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.address, &self.transport)
    }

    /// The line that starts a client on this machine.
    #[must_use]
    pub fn client_line(&self) -> String {
        let line = format!("sojourn client --server {} --token {}", self.url(), self.enrol_token);
        match &self.transport {
            Transport::Https { own_authority: Some(file), .. } => {
                format!("{line} --ca {}", file.display())
            }
            _ => line,
        }
    }
}

fn url(mut address: SocketAddr, transport: &Transport) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    match transport {
        Transport::Http => format!("http://{address}"),
        Transport::Https { name: Some(name), .. } if name.parse::<IpAddr>().is_err() => {
            format!("https://{name}:{}", address.port())
        }
        Transport::Https { .. } => format!("https://{address}"),
    }
}

/// A running server; end it with [`Server::stop`].
#[derive(Debug)]
pub struct Server {
    ready: ServeReady,
    admin_token: String,
    shell: Shell,
    http: ServerHandle,
    http_task: JoinHandle<io::Result<()>>,
    errands: JoinHandle<()>,
    _folder: DataFolder,
}

impl Server {
    /// Starts a server; it answers when this returns. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Where folder, journal, blobs or address can't be used; nothing is left running then.
    pub async fn start(config: ServeConfig) -> Result<Self, ServeError> {
        let folder = DataFolder::take(&config.data)?;
        let certificates = config.tls.map(Certificates::open).transpose()?.map(Arc::new);
        let tls = certificates.as_ref().map(Certificates::config).transpose()?;
        let listener = listen(config.listen)?;
        let address = listener.local_addr().map_err(ServeError::System)?;
        let transport = match certificates {
            Some(certificates) => Transport::Https {
                name: certificates.name(address.ip()),
                own_authority: certificates.own_authority(),
            },
            None => Transport::Http,
        };
        let blobs = match &config.blobs {
            Some(url) => BlobStore::connect(url, &config.store).await?,
            None => BlobStore::open(&folder.blobs())?,
        };
        let staging = config.blobs.is_some().then(|| blobs.staging());
        let lease_term = Duration::from_millis(config.shell.core.lease_term.0);
        let uploads = Uploads::with_disk(&folder.uploads(), config.disk)?;

        let path = folder.journal();
        let journals = config.journal.unwrap_or_else(|| {
            Arc::new(move || -> Result<Box<dyn Journal>, JournalError> {
                Ok(Box::new(SqliteJournal::open(&path)?))
            })
        });
        let (settings, clock, trainer) = (config.shell, config.clock, config.trainer);
        let (assimilators, split_over) = (config.assimilators, config.split_over);
        let url = config.advertise.unwrap_or_else(|| url(address, &transport));
        let started = tokio::task::spawn_blocking(move || -> Result<_, ServeError> {
            let tokens = settle_tokens(&folder, &*journals)?;
            journals.stand_at(&url);
            let shell = Shell::start(Arc::clone(&journals), settings, clock)?;
            let standing = journals.standing().map(str::to_owned);
            Ok((folder, tokens, shell, (journals.is_ours(), standing)))
        });
        let started = started.await.map_err(|error| ServeError::System(io::Error::other(error)))?;
        let (folder, tokens, (shell, errands), (active, journal)) = started?;
        if active {
            errands::sweep(shell.handle().clone(), uploads.clone()).await;
        }

        let keeper = Keeper::new(shell.handle().clone(), blobs.clone());
        let site = Site {
            shell: shell.handle().clone(),
            keeper,
            uploads,
            staging,
            lease_term,
            tokens: Tokens::of(&tokens.enrol, &tokens.admin, &tokens.assimilator),
            known: Arc::default(),
            traffic: Arc::default(),
            assimilators: Arc::default(),
            blobs_url: config.blobs,
            has_trainer: trainer.is_some() || *assimilators.end() == 0,
        };
        let opened =
            open_doors(site, blobs, errands, listener, (tls, trainer), (assimilators, split_over));
        let opened = opened.and_then(|doors| {
            folder.write_address(address)?;
            Ok(doors)
        });
        let Doors { http, http_task, errands } = match opened {
            Ok(doors) => doors,
            Err(error) => {
                // Nobody else may have the folder while the core's thread ends.
                shell.stop().await;
                return Err(error);
            }
        };
        let admin_token_file = folder.admin_token_file();
        let SharedTokens { enrol: enrol_token, admin: admin_token, .. } = tokens;
        let ready =
            ServeReady { address, transport, enrol_token, admin_token_file, active, journal };
        tracing::info!(address = ready.url(), active, "serving");
        Ok(Self { ready, admin_token, shell, http, http_task, errands, _folder: folder })
    }

    /// Where it listens, and how machines join.
    #[must_use]
    pub const fn ready(&self) -> &ServeReady {
        &self.ready
    }

    /// The token of users.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// What commands are given through, beside HTTP.
    #[must_use]
    pub const fn shell(&self) -> &ShellHandle {
        self.shell.handle()
    }

    /// Answers whoever waits, writes a snapshot, ends.
    pub async fn stop(self) {
        // The core first: requests that it holds open would hold up the rest.
        self.shell.stop().await;
        self.http.stop(true).await;
        let _ = self.http_task.await;
        let _ = self.errands.await;
        tracing::info!("stopped");
    }
}

/// What runs beside the core.
struct Doors {
    http: ServerHandle,
    http_task: JoinHandle<io::Result<()>>,
    errands: JoinHandle<()>,
}

/// Starts assimilators, errands and HTTP.
fn open_doors(
    site: Site,
    blobs: BlobStore,
    errands: UnboundedReceiver<Errand>,
    listener: TcpListener,
    (tls, trainer): (Option<ServerConfig>, Option<SlotConfig>),
    (threads, split_over): (RangeInclusive<usize>, u64),
) -> Result<Doors, ServeError> {
    let address = listener.local_addr().map_err(ServeError::System)?;
    let (shell, assimilators) = (site.shell.clone(), Arc::clone(&site.assimilators));
    let queue = CoreQueue { shell, assimilators, runtime: Handle::current() };
    let source = Spooled {
        uploads: site.uploads.clone(),
        staged: site.staging.clone().map(|staging| StagedUploads::new(staging, Handle::current())),
    };
    let mut assimilator =
        Assimilator::new(queue, source, blobs, Handle::current()).with_split_over(split_over);
    if let Some(trainer) = trainer {
        assimilator = assimilator.with_losses(Trainer::new(trainer, Handle::current()));
    }
    let workers = Workers::start(threads, assimilator).map_err(ServeError::System)?;
    site.assimilators.set_threads(workers.crew().clone());
    let errands = errands::run(errands, workers, site.clone());

    let site = web::Data::new(site);
    let server = HttpServer::new(move || {
        App::new().app_data(site.clone()).wrap(from_fn(http::protocol)).configure(http::routes)
    })
    .disable_signals()
    // An answer in two writes would have its second wait for word of the first, up to 40 ms.
    .tcp_nodelay(true)
    // A host that hangs up while it waits for work must be noticed.
    .h1_allow_half_closed(false)
    // Each host that waits has one open; what ends them is the limit on files, or memory.
    .max_connections(MOST_CONNECTIONS)
    .shutdown_timeout(2);
    let server = match tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls),
        None => server.listen(listener),
    };
    let server = server.map_err(|source| ServeError::Listen { address, source })?.run();
    let (http, errands) = (server.handle(), tokio::spawn(errands));
    Ok(Doors { http, http_task: tokio::spawn(server), errands })
}

/// Serves until the process is told to end by SIGTERM or SIGINT; then finishes replies and writes a
/// snapshot.
///
/// # Errors
/// As [`Server::start`], and [`ServeError::CoreEnded`].
pub async fn serve(
    config: ServeConfig,
    on_ready: impl FnOnce(&ServeReady),
) -> Result<(), ServeError> {
    let mut server = Server::start(config).await?;
    // Before anybody is told that it is there: it may be told to end at once.
    let told_to_end = told_to_end().map_err(ServeError::System)?;
    on_ready(server.ready());
    tokio::select! {
        () = told_to_end => {
            server.stop().await;
            Ok(())
        }
        () = server.shell.ended() => Err(ServeError::CoreEnded),
    }
}

/// Ends when the process is told to end, at any time from now on.
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse(address),
        _ => ServeError::Listen { address, source },
    })
}
