//! The server's metrics for Prometheus: all of them, and the text of one scrape.
//!
//! | file | holds |
//! |---|---|
//! | `core.rs` | what the core counts: jobs, trials, hosts, leases, results, plans, money |
//! | `shell.rs` | what the server around it counts: journal, disks, uploads, network |
//! | `request_times.rs` | how long requests take |
//! | `writer.rs` | writes one metric with its samples |
//!
//! Names are as Prometheus wants them: base units, `_total` for counters. Labels are one of a few words, the pattern of a route,
//! or the id of a job that runs: the number of samples doesn't grow with trials or hosts. `docs/operate/metrics.md` lists the
//! metrics with the very help texts that are here; a test compares both.

mod core;
mod request_times;
mod shell;
mod writer;

pub(crate) use request_times::RequestTimes;

use crate::{shell::ShellCounts, storage_watch::WatchedDisk, upload_quota::Uploaded};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, prometheus_text, text},
    registry::Registry,
};
use sojourn_core::Figures;
use sojourn_protocol::view::TrafficView;
use std::fmt;
use writer::MetricWriter;

/// Before each name.
const PREFIX: &str = "sojourn";
/// The media type of OpenMetrics (version 1.0.0, section "Protocol Negotiation").
pub(crate) const OPEN_METRICS_TYPE: &str =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The media type of Prometheus' own text.
pub(crate) const PROMETHEUS_TYPE: &str = prometheus_text::CONTENT_TYPE;

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

/// How a scrape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// The text of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Scrape {
    /// The text of a scrape.
    ///
    /// # Errors
    /// Where a value can't be written, which is a fault of the program.
    pub(crate) fn text(self, format: TextFormat) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        match format {
            TextFormat::Prometheus => prometheus_text::encode(&mut text, &registry)?,
            TextFormat::OpenMetrics => text::encode(&mut text, &registry)?,
        }
        Ok(text)
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut writer = MetricWriter::new(encoder);
        core::server(&mut writer, &self.figures)?;
        core::work(&mut writer, &self.figures)?;
        core::fleet(&mut writer, &self.figures)?;
        core::leases(&mut writer, &self.figures)?;
        core::results(&mut writer, &self.figures)?;
        core::jobs(&mut writer, &self.figures)?;
        shell::journal(&mut writer, &self.shell, self.unwritten_events)?;
        shell::storage(&mut writer, &self.disks, self.uploads)?;
        shell::network(&mut writer, &self.traffic)?;
        self.request_times.write(&mut writer)
    }
}
