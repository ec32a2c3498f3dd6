//! `sojourn completions`: a completion script for a shell.

use crate::cli::terminal::{exit::Failure, output};
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script for the command line `C`.
pub(crate) fn run<C: CommandFactory>(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "sojourn", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())
}
