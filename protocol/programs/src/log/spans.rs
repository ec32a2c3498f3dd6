//! Hands the spans of traces to OpenTelemetry's processor, each when it ends.
//!
//! The ids of spans are those that [`sojourn_http::traced!`] has made: lines of the log and headers of requests say them too.

use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks, SpanProcessor};
use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// The layer of a subscriber that does it.
pub(super) struct Spans<P> {
    processor: Arc<P>,
    scope: InstrumentationScope,
}

impl<P> Spans<P> {
    pub(super) fn new(processor: Arc<P>) -> Self {
        let scope = InstrumentationScope::builder("sojourn")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Self { processor, scope }
    }
}

/// A span that hasn't ended.
struct Open {
    begun: SystemTime,
    said: Said,
}

/// The data that a span's fields say.
#[derive(Default)]
struct Said {
    trace: Option<TraceId>,
    span: Option<SpanId>,
    parent: Option<SpanId>,
    is_unsampled: bool,
    name: Option<String>,
    kind: Option<SpanKind>,
    has_failed: bool,
    attributes: Vec<KeyValue>,
}

impl Said {
    fn note(&mut self, field: &str, value: impl Into<Value>) {
        let value = value.into();
        match field {
            "trace_id" => self.trace = TraceId::from_hex(&value.as_str()).ok(),
            "span_id" => self.span = SpanId::from_hex(&value.as_str()).ok(),
            "parent_id" => self.parent = SpanId::from_hex(&value.as_str()).ok(),
            "unsampled" => self.is_unsampled = value == Value::Bool(true),
            "otel.name" => self.name = Some(value.as_str().into_owned()),
            "otel.kind" => self.kind = kind(&value.as_str()),
            "error" => self.has_failed = value == Value::Bool(true),
            _ => self.attributes.push(KeyValue::new(field.to_owned(), value)),
        }
    }
}

fn kind(name: &str) -> Option<SpanKind> {
    match name {
        "client" => Some(SpanKind::Client),
        "server" => Some(SpanKind::Server),
        "producer" => Some(SpanKind::Producer),
        "consumer" => Some(SpanKind::Consumer),
        _ => None,
    }
}

impl Visit for Said {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.note(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.note(field.name(), value),
            // OpenTelemetry has no unsigned numbers.
            Err(_) => self.note(field.name(), value.to_string()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.note(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(field.name(), format!("{value:?}"));
    }
}

impl<S, P> Layer<S> for Spans<P>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    P: SpanProcessor + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut said = Said::default();
        attributes.record(&mut said);
        span.extensions_mut().insert(Open { begun: SystemTime::now(), said });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.said);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { begun, said }) = span.extensions_mut().remove::<Open>() else { return };
        let (Some(trace), Some(number)) = (said.trace, said.span) else { return };
        if said.is_unsampled {
            return;
        }
        let (flags, state) = (TraceFlags::SAMPLED, TraceState::default());
        let name = said.name.map_or(Cow::Borrowed(span.name()), Cow::Owned);
        self.processor.on_end(SpanData {
            span_context: SpanContext::new(trace, number, flags, false, state),
            parent_span_id: said.parent.unwrap_or(SpanId::INVALID),
            // Only a server's parents are in other programs, or a report's in an assimilator.
            parent_span_is_remote: matches!(said.kind, Some(SpanKind::Server | SpanKind::Consumer)),
            span_kind: said.kind.unwrap_or(SpanKind::Internal),
            name,
            start_time: begun,
            end_time: SystemTime::now(),
            attributes: said.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if said.has_failed { Status::error("") } else { Status::Unset },
            instrumentation_scope: self.scope.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_sdk::error::OTelSdkResult;
    use parking_lot::Mutex;
    use sojourn_http::{
        trace::{Empty, below},
        traced,
    };
    use sojourn_protocol::trace::TraceContext;
    use std::time::Duration;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Debug, Default)]
    struct Ended(Mutex<Vec<SpanData>>);

    impl SpanProcessor for Ended {
        fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &opentelemetry::Context) {}

        fn on_end(&self, span: SpanData) {
            self.0.lock().push(span);
        }

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
            Ok(())
        }
    }

    fn ended(work: impl FnOnce()) -> Vec<SpanData> {
        let ended = Arc::new(Ended::default());
        let subscriber = tracing_subscriber::registry().with(Spans::new(Arc::clone(&ended)));
        tracing::subscriber::with_default(subscriber, work);
        std::mem::take(&mut *ended.0.lock())
    }

    #[test]
    fn a_span_has_the_ids_that_the_log_says() {
        let parent = below(None);
        let mut context = None;
        let spans = ended(|| {
            let span = traced!(
                "request",
                Some(parent),
                otel.name = "POST /v1/work",
                otel.kind = "server",
                rows = 7_u64,
                seed = u64::MAX,
                status = Empty,
                error = Empty,
            );
            context = Some(span.context());
            span.span().record("status", 503_u16);
            span.span().record("error", true);
        });
        let (span, context) = (&spans[0], context.unwrap());
        assert_eq!(spans.len(), 1);
        assert_eq!(span.span_context.trace_id().to_string(), context.trace.to_string());
        assert_eq!(span.span_context.span_id().to_string(), context.span.to_string());
        assert_eq!(span.parent_span_id.to_string(), parent.span.to_string());
        assert_eq!((span.name.as_ref(), &span.span_kind), ("POST /v1/work", &SpanKind::Server));
        let attribute = |key: &str| {
            let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
            found.map(|attribute| attribute.value.clone())
        };
        assert_eq!(attribute("rows"), Some(Value::I64(7)));
        assert_eq!(attribute("seed"), Some(u64::MAX.to_string().into()));
        assert_eq!(attribute("status"), Some(Value::I64(503)));
        assert_eq!((attribute("trace_id"), attribute("otel.kind")), (None, None));
        assert_eq!(span.status, Status::error(""));
        assert!(span.start_time <= span.end_time);
    }

    #[test]
    fn a_span_that_is_of_no_trace_or_of_one_that_is_not_recorded_goes_nowhere() {
        let unsampled = TraceContext { is_sampled: false, ..below(None) };
        let spans = ended(|| {
            drop(tracing::info_span!("other"));
            drop(traced!("unsampled", Some(unsampled)));
        });
        assert_eq!(spans, []);
        let spans = ended(|| drop(traced!("first", None)));
        let span = &spans[0];
        assert_eq!((span.name.as_ref(), span.parent_span_id), ("first", SpanId::INVALID));
        assert_eq!((&span.status, &span.span_kind), (&Status::Unset, &SpanKind::Internal));
    }
}
