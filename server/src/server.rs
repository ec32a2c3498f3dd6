//! The whole server: folder, journal, core, blobs, assimilators, HTTP. They are started and stopped in order.

use crate::{
    assimilation::{AssimilationHandle, LocalAssimilators},
    blob_lifecycle::BlobLifecycle,
    config::{ServeConfig, ServeError, ServeReady, Transport, url},
    data_folder::{DataFolder, DataFolderError, new_token},
    data_uploads::{DataLimits, DataUploads},
    errands,
    failure_log::FailureLog,
    http::{AppState, Sessions},
    job_checks::JobChecks,
    journal::{Journal, JournalError, OpenJournal, SqliteJournal},
    listener,
    metrics::RequestTimes,
    network::{Network, NetworkConfig},
    programs::{Program, programs},
    shell::{Shell, ShellHandle, SideEffect},
    storage_watch::StorageWatch,
    store_notes::StoreNotes,
    tls::Certificates,
    tokens::{ServerTokens, TokensError, WithTokens},
    traffic::Traffic,
    upload_quota::UploadQuota,
    upload_sweeps,
    webhooks::{WebhookSettings, Webhooks},
};
use actix_web::{dev::ServerHandle, web};
use rustix::process::{Resource, getrlimit};
use rustls::ServerConfig;
use sojourn_blobs::{BlobError, BlobStore, Uploads, WriteAheadLog};
use sojourn_files::HeldRoom;
use sojourn_protocol::{digest::Digest, quantity::to_usize, tokens::ServerToken};
use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
    task::JoinHandle,
};

/// A running server. [`Server::stop`] ends it.
#[derive(Debug)]
pub struct Server {
    ready: ServeReady,
    tokens: Arc<ServerTokens>,
    shell: Shell,
    http: ServerHandle,
    http_task: JoinHandle<io::Result<()>>,
    errands: JoinHandle<()>,
    log: WriteAheadLog,
    data_uploads: DataUploads,
    /// The webhooks, which end with the server.
    webhooks: Option<Webhooks>,
    folder: DataFolder,
}

impl Server {
    /// Starts a server; it answers when this returns. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Where folder, journal, blobs or address can't be used; nothing is left running then.
    pub async fn start(config: ServeConfig) -> Result<Self, ServeError> {
        let webhooks = config.webhooks.as_deref().map(WebhookSettings::read).transpose()?;
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
        // Before blobs and uploads: it brings their files back.
        let log = WriteAheadLog::with_disk(folder.root(), Arc::clone(&config.disk));
        let log = log.map_err(ServeError::WriteAheadLog)?;
        let blobs = match &config.blobs {
            Some(url) => BlobStore::connect(url, &config.store).await?,
            None => BlobStore::with_log(&folder.blobs(), log.clone())?,
        };
        let store_id = new_token().map_err(DataFolderError::NoRandomness)?;
        let store_id = blobs.identity(&store_id).await?;
        let staging = config.blobs.is_some().then(|| blobs.staging());
        let room = config.journal.is_none().then(|| HeldRoom::at(folder.journal_room()));
        let disk = Arc::clone(&config.disk);
        let storage = StorageWatch::new(disk, folder.root(), config.disk_reserve, room);
        let storage = match (&config.blobs, blobs.folder()) {
            (None, _) => storage,
            (Some(_), Some(folder)) => storage.beside(folder),
            (Some(_), None) => storage.beside_store(),
        };
        storage.look();
        let prepare = config.prepare.filter(|_| config.max_data_uploads > 0);
        let limits =
            DataLimits { uploads: config.max_data_uploads, memory: config.max_data_memory };
        let data_uploads =
            DataUploads::open(folder.data_uploads(), limits, config.data_urls, storage.clone());
        let data_uploads = data_uploads.map_err(ServeError::DataUploads)?;
        let lease_term = Duration::from_millis(config.shell.core.lease_term.0);
        let uploads = Uploads::with_log(&folder.uploads(), config.disk, log.clone())?;

        let (path, room) = (folder.journal(), storage.clone());
        let was_open = AtomicBool::new(false);
        let journals = config.journal.unwrap_or_else(|| {
            Arc::new(move || -> Result<Box<dyn Journal>, JournalError> {
                if was_open.swap(true, Ordering::Relaxed) {
                    // It has failed.
                    room.release_journal_room();
                }
                Ok(Box::new(SqliteJournal::open(&path)?))
            })
        });
        journals.keep_note(Arc::new(StoreNotes::new(blobs.clone())));
        let (settings, clock, local) = (config.shell, config.clock, config.assimilators);
        let url = config.advertise.unwrap_or_else(|| url(address, &transport));
        let stores = stores_of(&blobs).await?;
        let started = tokio::task::spawn_blocking(move || -> Result<_, ServeError> {
            let tokens = Arc::new(ServerTokens::settle(&folder, Arc::clone(&journals))?);
            verify_store(&*journals, store_id)?;
            journals.advertise(&url);
            let with_tokens =
                WithTokens { journals: Arc::clone(&journals), tokens: Arc::clone(&tokens) };
            let shell = Shell::start(Arc::new(with_tokens), settings, clock)?;
            let durability = journals.durability().map(str::to_owned);
            Ok((folder, tokens, shell, (journals.is_ours(), durability)))
        });
        let started = started.await.map_err(|error| ServeError::System(io::Error::other(error)))?;
        let (folder, tokens, (shell, errands), (active, journal)) = started?;
        // Before anybody can ask for work.
        storage.look_for(shell.handle());
        let quota = UploadQuota::new(config.upload_limits);
        if active {
            let (shell, uploads, quota) = (shell.handle().clone(), uploads.clone(), quota.clone());
            upload_sweeps::run_once(shell, uploads, staging.clone(), quota).await;
        }

        let lifecycle = BlobLifecycle::new(shell.handle().clone(), blobs.clone());
        let assimilation = AssimilationHandle {
            shell: shell.handle().clone(),
            assimilators: Arc::default(),
            blobs,
            uploads: uploads.clone(),
            staging: staging.clone(),
            traces: Arc::default(),
        };
        let assimilators = Arc::clone(&assimilation.assimilators);
        let traffic = Arc::<Traffic>::default();
        let network = bounds(&config.network, &traffic);
        let programs = programs_of(config.programs).await?;
        let app = AppState {
            programs,
            shell: shell.handle().clone(),
            blobs: lifecycle,
            assimilation,
            uploads,
            data_uploads: prepare.map(|prepare| (data_uploads.clone(), prepare)),
            quota,
            staging,
            storage,
            lease_term,
            tokens: Arc::clone(&tokens),
            token_cache: Arc::default(),
            failed_requests: Arc::default(),
            sessions: Arc::new(Sessions::open(folder.sessions(), tls.is_some())),
            failures: Arc::new(FailureLog::open(folder.failures())),
            changes: Arc::default(),
            recent_events: Arc::default(),
            job_checks: Arc::new(JobChecks::new()),
            traffic,
            request_times: RequestTimes::default(),
            network,
            blobs_url: config.blobs,
            stores,
            has_trainer: local.as_ref().is_none_or(|local| local.has_trainer),
        };
        let started = start_services(app, errands, listener, tls, local);
        let started = started.and_then(|services| {
            let start =
                |settings| Webhooks::start(settings, folder.webhooks(), shell.handle(), lease_term);
            let webhooks = webhooks.map(start).transpose().map_err(ServeError::Deliveries)?;
            folder.write_address(address)?;
            Ok((services, webhooks))
        });
        let (Services { http, http_task, errands }, webhooks) = match started {
            Ok(started) => started,
            Err(error) => {
                // Nobody else may have the folder while the core's thread ends.
                shell.stop().await;
                // It has no more work for them: they end at once.
                assimilators.stop();
                return Err(error);
            }
        };
        let ready = ServeReady {
            address,
            transport,
            enrol_token_file: tokens.file(ServerToken::Enrol),
            admin_token_file: tokens.file(ServerToken::Admin),
            active,
            journal,
        };
        tracing::info!(address = ready.url(), active, "serving");
        Ok(Self {
            ready,
            tokens,
            shell,
            http,
            http_task,
            errands,
            log,
            data_uploads,
            webhooks,
            folder,
        })
    }

    /// Where the server listens, and how machines join.
    #[must_use]
    pub const fn ready(&self) -> &ServeReady {
        &self.ready
    }

    /// One of the server's own tokens, where its file is in the data folder.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn token(&self, which: ServerToken) -> Result<Option<String>, TokensError> {
        self.tokens.local_secret(which)
    }

    /// Gives commands to the core, as requests over HTTP do.
    #[must_use]
    pub const fn shell(&self) -> &ShellHandle {
        self.shell.handle()
    }

    /// The log of small blobs and uploads.
    #[must_use]
    pub const fn write_ahead_log(&self) -> &WriteAheadLog {
        &self.log
    }

    /// Answers the requests that wait, writes a snapshot, and ends.
    pub async fn stop(self) {
        drop(self.webhooks);
        // Data that is being read would delay the end of the process.
        self.data_uploads.abort_all();
        // The core ends first: requests that it holds open would delay the rest.
        self.shell.stop().await;
        self.http.stop(true).await;
        let _ = self.http_task.await;
        let _ = self.errands.await;
        let retired = tokio::task::spawn_blocking(move || self.log.retire()).await;
        if let Err(error) = retired.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::warn!(%error, "the write-ahead log stays until the next start");
        }
        tracing::info!("stopped");
    }
}

/// The blobs of a journal are in one store, that of the server which used the journal first. Another server would stand by with
/// a store that lacks them.
fn verify_store(journals: &dyn OpenJournal, own: String) -> Result<(), ServeError> {
    let journal = journals.secret("store", &own).map_err(TokensError::Journal)?;
    if journal == own { Ok(()) } else { Err(ServeError::OtherStore { journal, own }) }
}

/// The programs for machines that start for the first time.
async fn programs_of(folder: Option<PathBuf>) -> Result<Arc<[Program]>, ServeError> {
    let Some(folder) = folder else { return Ok(Arc::default()) };
    let read = tokio::task::spawn_blocking(move || programs(&folder)).await;
    let found = read.map_err(|error| ServeError::System(io::Error::other(error)))??;
    tracing::info!(programs = found.len(), "machines can fetch programs");
    Ok(found.into())
}

/// Where this store's signed URLs lead.
async fn stores_of(blobs: &BlobStore) -> Result<Arc<[String]>, BlobError> {
    let url = blobs.read_url(Digest::of(b""), Duration::from_secs(1)).await?;
    Ok(url.iter().map(|url| url.origin().ascii_serialization()).collect())
}

/// The bounds for the descriptors that this process may have.
fn bounds(config: &NetworkConfig, traffic: &Arc<Traffic>) -> Arc<Network> {
    let limit = || to_usize(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
    let descriptors = config.descriptors.unwrap_or_else(limit);
    let network = Arc::new(Network::new(config, descriptors, Arc::clone(traffic)));
    let limits = network.connections().limits();
    tracing::info!(descriptors, ?limits, "connections are bounded");
    network
}

/// The tasks that run beside the core.
struct Services {
    http: ServerHandle,
    http_task: JoinHandle<io::Result<()>>,
    errands: JoinHandle<()>,
}

/// Starts assimilators, errands and HTTP.
fn start_services(
    app: AppState,
    errands: UnboundedReceiver<SideEffect>,
    listener: TcpListener,
    tls: Option<ServerConfig>,
    local: Option<LocalAssimilators>,
) -> Result<Services, ServeError> {
    let address = listener.local_addr().map_err(ServeError::System)?;
    if let Some(local) = local {
        let threads = (local.start)(app.assimilation.clone()).map_err(ServeError::System)?;
        app.assimilation.assimilators.attach(threads);
    }
    let errands = errands::run(errands, app.clone());

    let app = web::Data::new(app);
    let server = listener::serve(&app, listener, tls);
    let server = server.map_err(|source| ServeError::Listen { address, source })?;
    let (http, errands) = (server.handle(), tokio::spawn(errands));
    Ok(Services { http, http_task: tokio::spawn(server), errands })
}

/// Serves until the process gets SIGTERM or SIGINT. Then it finishes replies and writes a snapshot. `on_ready` hears of the server when
/// it answers.
///
/// # Errors
/// As [`Server::start`], [`ServeError::CoreEnded`] and [`ServeError::FolderGone`].
pub async fn serve(config: ServeConfig, on_ready: impl FnOnce(&Server)) -> Result<(), ServeError> {
    let mut server = Server::start(config).await?;
    // Before anybody hears of the server: a signal may come at once.
    let told_to_end = told_to_end().map_err(ServeError::System)?;
    on_ready(&server);
    tokio::select! {
        () = told_to_end => {
            server.stop().await;
            Ok(())
        }
        () = server.shell.ended() => Err(match server.folder.is_gone() {
            true => ServeError::FolderGone(server.folder.root().to_owned()),
            false => ServeError::CoreEnded,
        }),
        () = server.folder.gone() => Err(ServeError::FolderGone(server.folder.root().to_owned())),
    }
}

/// Ends when the process gets SIGTERM or SIGINT, at any time from now on.
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
