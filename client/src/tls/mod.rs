//! How this program connects to a server: over TLS whose certificates it checks, or in the clear. One place
//! for the daemon and for every other command.
//!
//! | file | is about |
//! |---|---|
//! | `authorities` | whose certificates are believed, where `--ca` names a file of them |
//! | `verifier` | the check itself for that case |
//! | `fault` | what went wrong, in words that say what to do |

mod authorities;
mod fault;
mod verifier;

pub use authorities::{Authorities, AuthoritiesError};
pub use fault::TlsFault;

use reqwest::{Client, ClientBuilder, Url};
use std::net::IpAddr;

/// An HTTP client for `server`, set up by `configure`. Certificates are checked against `authorities`, or
/// against the system's where none are given.
///
/// # Errors
/// Where the system's certificates are needed and can't be had.
pub fn http_client(
    server: &Url,
    authorities: Option<&Authorities>,
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, reqwest::Error> {
    // An error says only that the program has installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = configure(Client::builder());
        // A proxy of the environment's can't reach this machine's own addresses.
        if is_loopback(server) { builder.no_proxy() } else { builder }
    };
    match authorities {
        Some(authorities) => builder().tls_backend_preconfigured(authorities.config()).build(),
        None => match builder().build() {
            // A machine without root certificates can still speak to a server without TLS.
            Err(_) if server.scheme() == "http" => builder().tls_certs_only([]).build(),
            built => built,
        },
    }
}

/// Is this address on this machine?
#[must_use]
pub fn is_loopback(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
