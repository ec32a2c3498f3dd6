//! Traces: which of them a task works for, and the spans of the program's log that say so.
//!
//! A trace is one piece of work through all programs that take part in it. [`traced!`](crate::traced) begins a span of one.
//! What runs in [`Traced::run`] is logged with the trace's id, and its requests to servers say the id
//! ([`TRACE_HEADER`](sojourn_protocol::trace::TRACE_HEADER)).
//!
//! ```
//! use sojourn_http::{trace, traced};
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let unit = traced!("unit", None, lease = 7);
//! let id = unit.context().trace;
//! let upload = traced!("upload", Some(unit.context()));
//! assert_eq!(upload.context().trace, id);
//! upload.run(async { assert_eq!(trace::current().map(|context| context.trace), Some(id)) }).await;
//! # });
//! ```

use sojourn_protocol::trace::{SpanId, TraceContext, TraceId};
use std::num::NonZero;
use tracing::{Instrument as _, Span};

#[doc(hidden)]
pub use tracing::{
    field::{Empty, display},
    info_span,
};

/// The target of all spans of traces.
pub const SPANS: &str = "sojourn_trace";
/// The target of the event with the error that ends a program. The log on stderr leaves it out: every command's failure is said there.
pub const ENDED: &str = "sojourn_client::ended";
/// The target of the lines about the life of each unit.
pub const UNITS: &str = "sojourn_unit";

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The trace, and its span, that this task or thread works for.
#[must_use]
pub fn current() -> Option<TraceContext> {
    CURRENT.try_with(|context| *context).ok()
}

/// A new span below `parent`, or the first of a new trace.
#[must_use]
pub fn below(parent: Option<TraceContext>) -> TraceContext {
    let span = SpanId(rand::random());
    match parent {
        Some(parent) => TraceContext { span, ..parent },
        None => {
            TraceContext { trace: TraceId(rand::random::<NonZero<u128>>()), span, is_sampled: true }
        }
    }
}

/// A span of a trace. It ends when this, and all that was begun in it, is dropped.
#[derive(Debug, Clone)]
pub struct Traced {
    context: TraceContext,
    span: Span,
}

impl Traced {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(context: TraceContext, span: Span) -> Self {
        Self { context, span }
    }

    /// The span's place in the trace: the parent of what it causes.
    #[must_use]
    pub const fn context(&self) -> TraceContext {
        self.context
    }

    /// The span, for lines of the log.
    #[must_use]
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// Runs a task in it.
    pub async fn run<F: Future>(self, task: F) -> F::Output {
        CURRENT.scope(self.context, task.instrument(self.span)).await
    }

    /// Runs what blocks this thread in it.
    pub fn run_blocking<T>(self, task: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.context, || self.span.in_scope(task))
    }
}

/// Begins a span of a trace: `traced!(NAME, PARENT, FIELDS..)`, where the parent is an `Option<TraceContext>`, and fields are
/// those of [`tracing::span!`].
///
/// The fields `otel.name` and `otel.kind` say the name and the kind under which OpenTelemetry shows it, and `error` that it
/// failed.
#[macro_export]
macro_rules! traced {
    ($name:literal, $parent:expr $(, $($fields:tt)*)?) => {{
        let parent: ::core::option::Option<::sojourn_protocol::trace::TraceContext> = $parent;
        let context = $crate::trace::below(parent);
        let span = $crate::trace::info_span!(
            target: $crate::trace::SPANS,
            parent: ::core::option::Option::None,
            $name,
            trace_id = %context.trace,
            span_id = %context.span,
            parent_id = parent.map(|parent| $crate::trace::display(parent.span)),
            unsampled = (!context.is_sampled).then_some(true),
            $($($fields)*)?
        );
        $crate::trace::Traced::new(context, span)
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_of_its_parents_trace_and_has_a_number_of_its_own() {
        let parent = below(None);
        let child = below(Some(parent));
        assert_eq!((child.trace, child.is_sampled), (parent.trace, true));
        assert_ne!(child.span, parent.span);
        assert_ne!(below(None).trace, parent.trace);
        let unsampled = TraceContext { is_sampled: false, ..parent };
        assert!(!below(Some(unsampled)).is_sampled);
    }

    #[tokio::test]
    async fn tasks_and_threads_know_their_trace() {
        assert_eq!(current(), None);
        let outer = traced!("outer", None);
        let context = outer.context();
        let seen = outer.run(async {
            tokio::task::yield_now().await;
            let inner = traced!("inner", current(), lease = 3);
            (current(), inner.run(async { current() }).await, current())
        });
        let (before, inside, after) = seen.await;
        assert_eq!((before, after), (Some(context), Some(context)));
        assert_eq!(inside.map(|inside| inside.trace), Some(context.trace));
        assert_ne!(inside, before);
        let blocking = traced!("blocking", Some(context));
        let expected = blocking.context();
        assert_eq!(blocking.run_blocking(current), Some(expected));
        assert_eq!(current(), None);
    }
}
