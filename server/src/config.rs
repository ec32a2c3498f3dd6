//! The settings of a server, why it can't start, and what it says once it has.

use crate::{
    assimilation::LocalAssimilators,
    data_folder::DataFolderError,
    data_uploads::DEFAULT_MAX_DATA_UPLOAD_BYTES,
    data_urls::DataUrl,
    journal::OpenJournal,
    network::NetworkConfig,
    prepare_job::{DEFAULT_MAX_DATA_MEMORY, PrepareJob},
    programs::ProgramsError,
    shell::{Clock, ShellConfig, ShellError, SteadyClock},
    tls::{TlsError, TlsFiles},
    tokens::TokensError,
    upload_quota::UploadLimits,
    webhooks::WebhooksError,
};
use sojourn_blobs::{BlobError, ConnectError, Disk, RealDisk, StoreSettings, UploadError};
use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

/// The settings of a server.
pub struct ServeConfig {
    /// The data folder, which one server at a time uses.
    pub data: PathBuf,
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// Certificate and key; `None` serves without encryption.
    pub tls: Option<TlsFiles>,
    /// The shell's and the core's settings.
    pub shell: ShellConfig,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Opens the journal; `None` is the SQLite file in the data folder.
    pub journal: Option<Arc<dyn OpenJournal>>,
    /// The URL under which clients and other servers reach this one; `None` is the address that it listens on.
    pub advertise: Option<String>,
    /// The disk that uploads are written to.
    pub disk: Arc<dyn Disk>,
    /// Bytes of the disk that are kept free; `None` is 2 GB, or 5 % of the disk where that is less.
    pub disk_reserve: Option<u64>,
    /// The URL of the object store that has the blobs; `None` is a folder in the data folder.
    pub blobs: Option<String>,
    /// Keys and endpoints of the object store.
    pub store: StoreSettings,
    /// The bounds against whoever is on the network.
    pub network: NetworkConfig,
    /// How much hosts may upload that no report has named.
    pub upload_limits: UploadLimits,
    /// The threads of this process that assimilate; `None` where processes of their own do it.
    pub assimilators: Option<LocalAssimilators>,
    /// The maker of jobs from files that browsers send; `None`: no such files are taken.
    pub prepare: Option<Arc<dyn PrepareJob>>,
    /// Bytes of such files together that wait for their jobs; 0: none are taken.
    pub max_data_uploads: u64,
    /// Bytes of memory that reading the data of one such job may take.
    pub max_data_memory: u64,
    /// Where such jobs may have data fetched from.
    pub data_urls: Vec<DataUrl>,
    /// The folder of the programs that machines can fetch; `None`: there are none.
    pub programs: Option<PathBuf>,
    /// The file of the webhooks; `None`: there are none.
    pub webhooks: Option<PathBuf>,
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
        Self {
            data,
            listen,
            tls: None,
            shell,
            clock,
            journal: None,
            advertise: None,
            disk,
            disk_reserve: None,
            blobs: None,
            store: StoreSettings::default(),
            network: NetworkConfig::default(),
            upload_limits: UploadLimits::default(),
            assimilators: None,
            prepare: None,
            max_data_uploads: DEFAULT_MAX_DATA_UPLOAD_BYTES,
            max_data_memory: DEFAULT_MAX_DATA_MEMORY,
            data_urls: Vec::new(),
            programs: None,
            webhooks: None,
        }
    }
}

/// Why the server can't start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ServeError {
    /// The data folder can't be used.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
    #[error("can't go on from the data folder's journal")]
    Shell(#[from] ShellError),
    #[error("can't go on from the data folder's write-ahead log")]
    WriteAheadLog(#[source] io::Error),
    /// The tokens can't be read or written.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The blobs can't be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The object store can't be used.
    #[error(transparent)]
    Store(#[from] ConnectError),
    #[error(
        "this server's blobs are in another store than those of its journal, so a server that takes over would lack \
         checkpoints: start all servers of a journal with the same `--blobs` (the journal's store is {journal}, this one {own}; \
         docs/operate/high-availability.md says how to name another)"
    )]
    OtherStore { journal: String, own: String },
    /// The programs for machines can't be served.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The webhooks can't be told.
    #[error(transparent)]
    Webhooks(#[from] WebhooksError),
    #[error("can't go on from the data folder's deliveries of webhooks")]
    Deliveries(#[source] io::Error),
    /// The certificate can't be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The uploads can't be used.
    #[error(transparent)]
    Uploads(#[from] UploadError),
    #[error("can't use the data folder's files of data for new jobs")]
    DataUploads(#[source] io::Error),
    #[error("another program listens on {0}: give another address or port")]
    AddressInUse(SocketAddr),
    #[error("can't listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the system refused")]
    System(#[source] io::Error),
    #[error(
        "the data folder `{}` was deleted, moved or replaced while the server ran: it ends, as nothing that it wrote from then \
         on would be kept", .0.display()
    )]
    FolderGone(PathBuf),
    /// The core's thread has ended by a fault of the program.
    #[error("the core has ended; its log says why")]
    CoreEnded,
}

/// How connections are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Not encrypted.
    Http,
    /// Over TLS.
    Https {
        /// A name of the certificate; the address itself, where the certificate has it.
        name: Option<String>,
        /// The certificate's file, where it is self-signed: clients must trust it.
        own_authority: Option<PathBuf>,
    },
}

/// The facts that a started server prints: its address, and how machines join.
#[derive(Debug, Clone)]
pub struct ServeReady {
    /// Where it listens.
    pub address: SocketAddr,
    /// How connections are made.
    pub transport: Transport,
    /// The file with the token with which machines become hosts. It may have been moved away.
    pub enrol_token_file: PathBuf,
    /// The file with the token of users.
    pub admin_token_file: PathBuf,
    /// Whether this is the active server; otherwise it stands by for that one.
    pub active: bool,
    /// The events that a power cut could lose, in words, where the durability was chosen.
    pub journal: Option<String>,
}

impl ServeReady {
    /// The server's URL for people on this machine. Over TLS it has a name of the certificate, where there is one.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.address, &self.transport)
    }

    /// The line that starts a client on this machine.
    #[must_use]
    pub fn client_line(&self) -> String {
        let file = self.enrol_token_file.display();
        let line = format!("sojourn client --server {} --token-file {file}", self.url());
        match &self.transport {
            Transport::Https { own_authority: Some(file), .. } => {
                format!("{line} --ca {}", file.display())
            }
            _ => line,
        }
    }
}

pub(crate) fn url(mut address: SocketAddr, transport: &Transport) -> String {
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
