//! The program `sojourn-autoscaler`: parses, sets up, calls. Nothing else of this package names a cloud.

use clap::Parser;
use sojourn_autoscaler::cli::Cli;
use sojourn_clouds::Provider;
use sojourn_programs::{exit::Failure, log};
use std::process::ExitCode;

/// The clouds that this program was built with.
const CLOUDS: &[&dyn Provider] = &[
    #[cfg(feature = "ec2")]
    &sojourn_ec2::Ec2Provider,
];

fn main() -> ExitCode {
    // Both reqwest and rustls are built without a provider of their own; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    log::start("info", cli.log());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(cli.run(CLOUDS)),
        Err(error) => Err(Failure::work(format!("can't start: {error}"))),
    };
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
