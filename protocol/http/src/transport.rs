//! How connections are set up: with TLS whose certificates are checked, or in the clear. The only place where an
//! HTTP client is built.

use crate::tls::Authorities;
use reqwest::{Client, ClientBuilder, Url};
use std::net::IpAddr;

/// Connections to `server`, set up further by `configure`. Certificates are checked against `authorities`, or
/// against the system's where none are given.
///
/// # Errors
/// Where the system's certificates are needed and can't be had.
pub fn connect(
    server: &Url,
    authorities: Option<&Authorities>,
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, reqwest::Error> {
    // An error says only that the program has installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = configure(Client::builder());
        // A proxy that the environment names can't reach this machine's own addresses.
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

/// Does the environment name a proxy?
pub(crate) fn has_proxy() -> bool {
    let names =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    names.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Is this address on this machine?
#[must_use]
pub fn is_loopback(server: &Url) -> bool {
    server.host_str() == Some("localhost")
        || literal(server).is_some_and(|address| address.is_loopback())
}

/// The address of a URL that names one.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
