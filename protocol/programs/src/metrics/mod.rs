//! Metrics for Prometheus: how a program writes them, and the port where they are read.
//!
//! | file | holds |
//! |---|---|
//! | `writer.rs` | writes one metric with its samples |
//! | `listener.rs` | answers `GET /metrics` of a program that has no other HTTP server |

mod listener;
mod writer;

pub use listener::listen;
pub use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};
pub use writer::{Labels, MetricWriter, label, millionths};

use prometheus_client::{
    encoding::{prometheus_text, text},
    registry::Registry,
};
use std::fmt;

/// How a scrape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// The text of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl TextFormat {
    /// The media type of the text.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            // OpenMetrics 1.0.0, section "Protocol Negotiation".
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The text of one scrape. `prefix` and `_` come before each name.
///
/// # Errors
/// Where a value can't be written, which is a fault of the program.
pub fn text(
    prefix: &str,
    scrape: impl Collector,
    format: TextFormat,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    match format {
        TextFormat::Prometheus => prometheus_text::encode(&mut text, &registry)?,
        TextFormat::OpenMetrics => text::encode(&mut text, &registry)?,
    }
    Ok(text)
}
