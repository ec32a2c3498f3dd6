//! The `sojourn` command: parses, sets up, calls. Everything else is in [`cli`].

#![cfg_attr(
    not(any(feature = "redis", feature = "screen")),
    expect(dead_code, reason = "the screen shows it, or a journal in Redis says it")
)]

mod api_client;
mod cli;
mod demo;
mod exporter;
mod replay;
mod serve;

use std::process::ExitCode;

/// The core allocates and frees many small objects for every request of a host.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Both reqwest and rustls are built without a provider of their own; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::main()
}
