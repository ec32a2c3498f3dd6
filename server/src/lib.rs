//! HTTP, journal and the shell around the core.
//!
//! ```text
//!   HTTP ---commands---> shell (the core's thread) ---records---> writer (the journal's thread)
//!     ^                                                              |
//!     +----------------------replies, once durable-------------------+
//! ```
//!
//! The shell brings time, chance and storage; what is decided, the core decides.

mod assimilators;
mod boards;
mod collect;
mod errands;
mod folder;
mod http;
pub mod journal;
mod keeper;
mod migrate;
mod queue;
mod serve;
pub mod shell;
mod spooled;
mod tls;
mod tokens;

pub use folder::{DataFolder, FolderError};
pub use migrate::{MigrateError, Migrated, migrate};
pub use serve::{ServeConfig, ServeError, ServeReady, Server, Transport, serve};
pub use sojourn_blobs::StoreSettings;
pub use tls::{TlsError, TlsFiles};
pub use tokens::{SharedTokens, TokensError, settle_tokens};

/// The document that describes the API (OpenAPI 3.1), as `GET /v1/openapi.json` gives it.
#[must_use]
pub fn openapi() -> &'static serde_json::Value {
    &http::openapi::DOCUMENT
}
