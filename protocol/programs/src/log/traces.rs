//! The log of a program whose traces go to a collector, where one is named.

use super::{LogArgs, chosen, json, on_stderr, otlp::Export, traces};
use crate::exit::Failure;
use std::io::{self, Write};
use tokio::runtime::Handle;
use tracing_subscriber::{
    Layer as _, filter::FilterExt as _, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// The program that logs.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// The server.
    Server,
    /// The client.
    Client {
        /// Takes each line of the log, as JSON.
        keep: fn(&[u8]),
    },
    /// An assimilator.
    Assimilator,
    /// Any other.
    Other,
}

impl Program {
    /// The program's name as a service of OpenTelemetry.
    const fn service(self) -> &'static str {
        match self {
            Self::Server => "sojourn-server",
            Self::Client { .. } => "sojourn-client",
            Self::Assimilator => "sojourn-assimilator",
            Self::Other => "sojourn",
        }
    }

    const fn keep(self) -> Option<fn(&[u8])> {
        match self {
            Self::Client { keep } => Some(keep),
            Self::Server | Self::Assimilator | Self::Other => None,
        }
    }
}

/// The log of a program that runs.
#[derive(Debug)]
#[must_use]
pub struct Log(Option<Export>);

impl Log {
    /// Sends the last spans to the collector, if there is one. Takes no longer than two seconds.
    pub fn end(self) {
        if let Some(export) = self.0 {
            export.end();
        }
    }
}

/// Starts the log as [`start`](super::start) does, and the export of traces.
///
/// # Errors
/// The collector's address is none.
pub fn start_with_traces(
    program: Program,
    default: &str,
    args: &LogArgs,
    runtime: &Handle,
) -> Result<Log, Failure> {
    let (is_json, filter) = chosen(default, args.form);
    let export = args
        .collector()
        .map(|collector| Export::start(collector, program.service(), runtime.clone()));
    let export = export.transpose()?;
    let exported = export.as_ref().map(|export| export.spans().with_filter(traces()));
    let kept = program
        .keep()
        .map(|keep| json(move || Kept(keep)).with_filter(filter.clone().or(traces())));
    tracing_subscriber::registry()
        .with(exported)
        .with(on_stderr(is_json, filter))
        .with(kept)
        .init();
    Ok(Log(export))
}

/// The lines that the program keeps.
struct Kept(fn(&[u8]));

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        (self.0)(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
