//! `sojourn demo`: runs the main job and prints what happens.

use crate::{
    cli::terminal::{exit::Failure, output},
    demo::{self, Plan, Summary},
};
use std::{cell::Cell, path::PathBuf, time::Instant};

/// Starts a server and three clients on this machine, searches models for the digits data, kills a
/// client and the server under it, waits for the end, replays the best trial and compares. Needs
/// nothing but this program and the trainer beside it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder for the best model.
    #[arg(long, value_name = "DIR", default_value = "sojourn-demo")]
    output: PathBuf,
    /// Epochs of every trial; the default gives about a minute of work on two cores. With few of them the search may end before a
    /// client and the server are killed, and the demo fails.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Keep the server and its web page up after the end, until Ctrl-C.
    #[arg(long)]
    stay: bool,
    /// Print one JSON object as the last line instead of the leader board.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let begun = Instant::now();
    let plan = Plan { output: args.output.clone(), epochs: args.epochs, stay: args.stay };
    let say = |text: &str| {
        output::remark(&format!("[{:5.1} s] {text}", begun.elapsed().as_secs_f64()));
    };
    let shown = Cell::new(false);
    let show = |summary: &Summary| {
        shown.set(true);
        if args.json { output::json_line(summary) } else { output::line(summary.text()) }
    };
    tokio::select! {
        ended = demo::run(&plan, &say, &show) => ended,
        // Dropping the demo ends its processes.
        _ = tokio::signal::ctrl_c() => match shown.get() {
            true => Ok(()),
            false => Err(Failure::work("interrupted")),
        },
    }
}
