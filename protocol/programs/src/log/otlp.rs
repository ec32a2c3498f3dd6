//! Exports spans to a collector of OpenTelemetry: OTLP over HTTP, in batches, from a thread of its own.
//!
//! Spans wait in a bounded queue, and those for which it has no room are lost. So a collector that is away or slow costs spans, and
//! holds nothing up.

use super::spans::Spans;
use crate::exit::Failure;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor as _},
};
use sojourn_http::Receiver;
use sojourn_protocol::error::error_chain;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// Where a collector takes spans, below its address.
const TRACES_PATH: &str = "v1/traces";
/// The collector has so long to answer; the default of OpenTelemetry's specification.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The last spans have so long when the program ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The spans on their way to a collector.
#[derive(Debug)]
pub(super) struct Export {
    processor: Arc<BatchSpanProcessor>,
}

impl Export {
    /// Exports the spans of the service of this name. Requests run on `runtime`.
    ///
    /// # Errors
    /// An address that is none, or a variable of OpenTelemetry that isn't understood.
    pub(super) fn start(
        collector: &str,
        service: &'static str,
        runtime: Handle,
    ) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::error::Error| {
            Failure::call(format!("no traces can be exported: {}", error_chain(error)))
        };
        let url = format!("{}/{TRACES_PATH}", collector.trim_end_matches('/'));
        let receiver = Receiver::new(&url, TIMEOUT).map_err(|error| wrong(&error))?;
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(Collector { receiver, runtime })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| wrong(&error))?;
        let exporter = Watched { exporter, collector: collector.to_owned(), is_away: false.into() };
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource(service));
        Ok(Self { processor: Arc::new(processor) })
    }

    /// The layer of the log that spans come through.
    pub(super) fn spans(&self) -> Spans<BatchSpanProcessor> {
        Spans::new(Arc::clone(&self.processor))
    }

    /// Sends the last spans, if the collector takes them soon.
    pub(super) fn end(self) {
        // Where it fails, the exporter has said so.
        let _ = self.processor.shutdown_with_timeout(FLUSH_TIMEOUT);
    }
}

/// The service as OpenTelemetry names it, unless `OTEL_SERVICE_NAME` does.
fn resource(service: &'static str) -> Resource {
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
    let builder = Resource::builder();
    let builder = if named { builder } else { builder.with_service_name(service) };
    builder
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The collector, by the HTTP client that webhooks use too.
#[derive(Debug)]
struct Collector {
    receiver: Receiver,
    runtime: Handle,
}

impl HttpClient for Collector {
    fn send_bytes<'client, 'future>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'client: 'future,
        Self: 'future,
    {
        let receiver = self.receiver.clone();
        let (parts, body) = request.into_parts();
        let sent = self.runtime.spawn(async move { receiver.send(parts.headers, body).await });
        Box::pin(async move {
            let answered = sent.await??;
            // Nothing of the body is read: it may say that spans were refused, which are lost anyway.
            Ok(Response::builder().status(answered.status).body(Bytes::new())?)
        })
    }
}

/// An exporter that says in the log when the collector goes away, and when it is back.
#[derive(Debug)]
struct Watched<E> {
    exporter: E,
    collector: String,
    is_away: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(batch).await;
        let collector = self.collector.as_str();
        match (&exported, self.is_away.swap(exported.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => {
                tracing::warn!(collector, %error, "traces can't be exported; they are lost until they can");
            }
            (Ok(()), true) => tracing::info!(collector, "traces are exported again"),
            _ => {}
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
