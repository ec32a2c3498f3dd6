//! HTTP, journal and the shell around the core.
//!
//! ```text
//!   HTTP ---commands---> shell (the core's thread) ---records---> writer (the journal's thread)
//!     ^                                                              |
//!     +----------------------replies, once durable-------------------+
//! ```
//!
//! The shell gives the core time, random seeds and storage. The core decides.
//!
//! ```
//! use sojourn_server::{ServeConfig, Server};
//!
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path().join("data");
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! // Port 0 takes a free port. Results wait until an assimilator of another process takes them.
//! let config = ServeConfig::new(data, "127.0.0.1:0".parse()?);
//! let server = Server::start(config).await?;
//! println!("a machine joins with: {}", server.ready().client_line());
//! server.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(feature = "redis"),
    expect(dead_code, reason = "only journals in Redis are shared")
)]

mod assimilation;
mod assimilators;
mod backup;
mod blob_lifecycle;
mod boot_time;
mod config;
mod data_folder;
mod data_uploads;
mod data_urls;
mod errands;
mod event_view;
mod failure_log;
mod http;
mod job_checks;
pub mod journal;
mod listener;
mod metrics;
mod migrate;
mod network;
mod orphans;
mod prepare_job;
mod programs;
mod range_merges;
mod result_traces;
mod server;
pub mod shell;
mod storage_watch;
mod store_notes;
mod tls;
mod tokens;
mod traffic;
mod upload_quota;
mod upload_sweeps;
mod webhooks;

pub use assimilation::{AssimilationHandle, LocalAssimilators, StartAssimilators};
pub use assimilators::AssimilationThreads;
pub use backup::{BackedUp, BackupError, back_up, check_backup};
pub use config::{ServeConfig, ServeError, ServeReady, Transport};
pub use data_folder::{DataFolder, DataFolderError};
pub use data_uploads::DEFAULT_MAX_DATA_UPLOAD_BYTES;
pub use data_urls::DataUrl;
pub use event_view::event_view;
pub use migrate::{MigrateError, Migrated, migrate};
pub use network::{
    DEFAULT_ENROLMENTS_PER_ADDRESS, DEFAULT_ENROLMENTS_PER_TOKEN,
    DEFAULT_MAX_CONNECTIONS_PER_ADDRESS, NetworkConfig, PerAddress, Rate,
};
pub use prepare_job::{
    Answer, BytesRead, DEFAULT_MAX_DATA_MEMORY, DataBounds, DataStep, DraftFiles, DraftedColumn,
    DraftedJob, JobFiles, MIN_MAX_DATA_MEMORY, Message, PrepareJob, PreparedJob, ReaderLimits,
    ReaderProgram, Request, Wanted,
};
pub use server::{Server, serve};
pub use sojourn_blobs::StoreSettings;
pub use tls::{TlsError, TlsFiles};
pub use tokens::{ServerTokens, TokensError};
pub use upload_quota::{
    DEFAULT_MAX_HOST_UPLOAD_BYTES, DEFAULT_MAX_HOST_UPLOADS, DEFAULT_MAX_UPLOAD_BYTES,
    DEFAULT_MAX_UPLOADS, MAX_CHECKPOINTS_PER_LEASE, UploadLimits, Uploaded,
};
pub use webhooks::WebhooksError;

/// The document that describes the API (OpenAPI 3.1), as `GET /v1/openapi.json` gives it.
///
/// # Errors
/// Where it can't be serialised, which is a fault of the program.
pub fn openapi() -> Result<&'static serde_json::Value, &'static serde_json::Error> {
    http::openapi::DOCUMENT.as_ref()
}
