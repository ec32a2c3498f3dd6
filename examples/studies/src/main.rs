//! The program `sojourn-studies`: the studies whose results are on pages of `docs/` and `examples/`.
//!
//! ```text
//! cargo run --release --locked -p sojourn-studies -- spot examples/spot.toml
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `search.rs` | how soon searches find a good trial, with hops and with one trial on each slot |
//! | `cpu_shares/` | FlowCon and SpeCon in the fluid model |
//!
//! The spot fleet's study is in the library, where the tests have its parts.

mod cpu_shares;
mod search;

use clap::{Parser, Subcommand};
use sojourn_programs::{
    exit::Failure,
    log::{self, FormArgs},
};
use sojourn_studies::spot;
use std::{error::Error, process::ExitCode};

/// Studies of Sojourn's pages. The same seeds give the same figures on any machine.
#[derive(Debug, Parser)]
#[command(name = "sojourn-studies", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, Subcommand)]
enum Study {
    /// Run a search on a made-up cloud in virtual time, and compare what it costs with other ways to run it.
    ///
    /// docs/spot-simulation.md explains the file and has the results.
    Spot(spot::Args),
    /// Divide processors by FlowCon, and move trials by SpeCon, in the fluid model.
    ///
    /// Prints JSON, from which `make -C examples shares` writes the page examples/shares/README.md.
    #[command(name = "shares")]
    CpuShares(cpu_shares::Args),
    /// Find out how soon searches find one of the best 5 % of a space, with hops and with one trial on each slot.
    ///
    /// Prints the tables of docs/search.md: `make -C examples search`.
    Search(search::Args),
}

fn main() -> ExitCode {
    // The driver logs each round: that is for people who ask for it.
    if std::env::var_os("SOJOURN_LOG").is_some() {
        log::start("info", FormArgs::default());
    }
    let result = match Cli::parse().study {
        Study::Spot(args) => simulate(&args),
        Study::CpuShares(args) => cpu_shares::run(&args),
        Study::Search(args) => search::run(&args).map(drop).map_err(|error| failed(&*error)),
    };
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

fn simulate(args: &spot::Args) -> Result<(), Failure> {
    let simulation = spot::load(args).map_err(Failure::call)?;
    spot::run(&simulation).map_err(Failure::work)
}

fn failed(error: &dyn Error) -> Failure {
    Failure::work(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
