//! The `sojourn` command: parses, sets up, calls. Everything else is in [`cli`].

#[cfg(feature = "full")]
mod api_client;
#[cfg_attr(not(feature = "full"), path = "cli/small.rs")]
mod cli;
#[cfg(feature = "full")]
mod demo;
#[cfg(feature = "full")]
mod replay;

use std::process::ExitCode;

/// The core makes and drops small things at every word of every host.
#[cfg(feature = "full")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(not(feature = "client"))]
compile_error!("choose a feature: `full` (the default), or `client` for the daemon alone");

fn main() -> ExitCode {
    // reqwest and rustls are built without a provider of their own; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::main()
}
