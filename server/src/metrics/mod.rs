//! The server's metrics for Prometheus: all of them, and the text of one scrape.
//!
//! | file | holds |
//! |---|---|
//! | `core.rs` | what the core counts: jobs, trials, hosts, leases, results, plans, money |
//! | `shell.rs` | what the server around it counts: journal, disks, uploads, network |
//! | `request_times.rs` | how long requests take |
//!
//! Names are as Prometheus wants them: base units, `_total` for counters. Labels are one of a few words, the pattern of a route,
//! or the id of a job that runs: the number of samples doesn't grow with trials or hosts. `docs/operate/metrics.md` lists the
//! metrics with the very help texts that are here; a test compares both.

mod core;
mod request_times;
mod shell;

pub(crate) use request_times::RequestTimes;

use crate::{shell::ShellCounts, storage_watch::WatchedDisk, upload_quota::Uploaded};
use sojourn_core::Figures;
use sojourn_programs::metrics::{Collector, DescriptorEncoder, MetricWriter};
use sojourn_protocol::view::TrafficView;
use std::fmt;

/// Before each name.
pub(crate) const PREFIX: &str = "sojourn";

/// Everything that a scrape is made of, at one moment.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) figures: Figures,
    pub(crate) shell: ShellCounts,
    pub(crate) unwritten_events: u64,
    pub(crate) disks: Vec<WatchedDisk>,
    /// The uploads that no report has named, and how much they may be.
    pub(crate) uploads: (Uploaded, Uploaded),
    pub(crate) traffic: TrafficView,
    pub(crate) request_times: RequestTimes,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let writer = &mut MetricWriter::new(encoder);
        core::server(writer, &self.figures)?;
        core::work(writer, &self.figures)?;
        core::fleet(writer, &self.figures)?;
        core::leases(writer, &self.figures)?;
        core::results(writer, &self.figures)?;
        core::jobs(writer, &self.figures)?;
        shell::journal(writer, &self.shell, self.unwritten_events)?;
        shell::storage(writer, &self.disks, self.uploads)?;
        shell::network(writer, &self.traffic)?;
        self.request_times.write(writer)
    }
}
