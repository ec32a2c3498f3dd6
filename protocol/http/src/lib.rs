//! The one HTTP client of the server's API under `/v1`: the command line, the assimilators and the daemon share it.
//!
//! | module | is about |
//! |---|---|
//! | [`servers`] | the addresses of a deployment's servers; a request goes to the next one where a server is away |
//! | [`tls`] | whose certificates are trusted, and what went wrong with one, in words that say what to do |
//! | [`transport`] | how connections are set up |
//! | [`byte_range`] | ranges of bytes, as requests ask for them and answers have them |
//! | [`client`] | requests to endpoints: authentication, headers, bounded bodies |
//! | [`error`] | why a call failed, and what a caller can do about it |
//! | [`retry`] | when to try again: exponential backoff with full jitter, `Retry-After` |
//! | [`download`] | blobs: resumed where they break off, verified at the end |
//! | [`upload`] | the same in the other direction |
//! | [`known_stores`] | where the store may be: what the server named first, and what the owner accepted |
//! | [`receiver`] | posts to an address that is none of our servers |
//! | [`trace`] | the trace that a task works for, which its requests say |
//! | [`store`] | the object store of a server's blobs, by URLs that the server has signed |
//!
//! The package knows nothing of jobs or leases. `sojourn-api` says what can be asked; how to show the answer is the caller's business.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use sojourn_api::endpoints::Health;
//! use sojourn_http::{HttpClient, HttpConfig, RetryPolicy, Servers};
//!
//! // Two servers, of which one is active. Nothing is sent yet.
//! let servers = Servers::parse("http://10.0.0.1:7070, http://10.0.0.2:7070", false)?;
//! let client = HttpClient::new(servers, &HttpConfig::default())?.with_token("secret".to_owned());
//! assert_eq!(client.servers().path("v1/health"), "http://10.0.0.1:7070/v1/health");
//!
//! // Asks the first one, then the second; again for a few seconds where both refuse for now.
//! let health = client.call(Health::request(), RetryPolicy::WhileBusy);
//! # drop(health);
//! # Ok(())
//! # }
//! ```

pub mod byte_range;
pub mod client;
pub mod download;
pub mod error;
pub mod known_stores;
mod reach;
pub mod receiver;
pub mod retry;
pub mod servers;
pub mod store;
pub mod tls;
pub mod trace;
pub mod transport;
pub mod upload;

mod body;
#[cfg(test)]
mod download_tests;

pub use client::{Call, HttpClient, HttpConfig};
pub use download::{Download, Encoding, Route};
pub use error::{CallError, Recovery, TransferError};
pub use known_stores::KnownStores;
pub use receiver::{Answered, Receiver, ReceiverError};
pub use retry::{Backoff, RetryPolicy};
pub use servers::{Servers, ServersError};
pub use store::{StoreClient, UploadTarget};
pub use tls::{Authorities, AuthoritiesError, TlsFault};
pub use trace::Traced;
pub use transport::is_loopback;
