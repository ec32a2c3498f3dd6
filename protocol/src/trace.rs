//! Where a request, or a piece of work, belongs in a trace: as W3C Trace Context has it in the header `traceparent`
//! (<https://www.w3.org/TR/trace-context/>, section 3.2).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, num::NonZero, str::FromStr};

/// The header of a request that says its [`TraceContext`].
pub const TRACE_HEADER: &str = "traceparent";

/// The length of version 00 of the header.
const LENGTH: usize = "00-00000000000000000000000000000000-0000000000000000-00".len();
/// Most characters of a wrong header that an error shows.
const MAX_SHOWN: usize = 80;
/// The flag of traces that are recorded.
const SAMPLED: u8 = 1;

/// The number of a trace: 32 lowercase hex digits, not all of them 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub NonZero<u128>);

/// The number of a span in its trace: 16 lowercase hex digits, not all of them 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub NonZero<u64>);

/// A span of a trace, for those that it causes. Written as the header has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceId({self})")
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpanId({self})")
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Why a text is no trace context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no trace context (`00`, a trace's id, a span's id, flags, in hex digits)")]
pub struct ParseTraceContextError(String);

impl FromStr for TraceContext {
    type Err = ParseTraceContextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseTraceContextError(text.chars().take(MAX_SHOWN).collect()))
    }
}

/// Later versions may say more after what version 00 says. `ff` is no version.
fn parse(text: &str) -> Option<TraceContext> {
    let (known, more) = text.split_at_checked(LENGTH)?;
    let mut parts = known.split('-');
    let version = hex(parts.next()?, 2)?;
    let trace = NonZero::new(hex(parts.next()?, 32)?)?;
    let span = NonZero::new(u64::try_from(hex(parts.next()?, 16)?).ok()?)?;
    let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
    let is_complete = match version {
        0 => more.is_empty(),
        0xff => false,
        _ => more.is_empty() || more.starts_with('-'),
    };
    let is_sampled = flags & SAMPLED != 0;
    is_complete.then_some(TraceContext { trace: TraceId(trace), span: SpanId(span), is_sampled })
}

/// The number that exactly so many lowercase hex digits say.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_header_is_read_and_written() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(context.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span.to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        let json = serde_json::to_string(&context).unwrap();
        assert_eq!(serde_json::from_str::<TraceContext>(&json).unwrap(), context);
        // Other flags are for others.
        let unsampled: TraceContext = EXAMPLE.replace("-01", "-fe").parse().unwrap();
        assert_eq!(unsampled.to_string(), EXAMPLE.replace("-01", "-00"));
    }

    #[test]
    fn later_versions_may_say_more() {
        let later = EXAMPLE.replacen("00", "cc", 1);
        for text in [later.clone(), format!("{later}-"), format!("{later}-what the future has")] {
            assert_eq!(text.parse::<TraceContext>().unwrap().to_string(), EXAMPLE);
        }
        for text in [format!("{EXAMPLE}-"), format!("{later}."), EXAMPLE.replacen("00", "ff", 1)] {
            text.parse::<TraceContext>().unwrap_err();
        }
    }

    #[test]
    fn what_is_no_context_is_refused() {
        let zeros = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
        let zeros = zeros.map(|part| EXAMPLE.replace(part, &"0".repeat(part.len())));
        let upper = EXAMPLE.to_uppercase();
        let signed = EXAMPLE.replace("4bf92", "+bf92");
        let wide = EXAMPLE.replace("00-", "é-");
        for text in ["", "00", &upper, &signed, &wide, &EXAMPLE[1..], &EXAMPLE.replace('-', "_")]
            .into_iter()
            .chain(zeros.iter().map(String::as_str))
        {
            text.parse::<TraceContext>().unwrap_err();
        }
        let long = "x".repeat(1000).parse::<TraceContext>().unwrap_err();
        assert!(long.to_string().len() < 200, "{long}");
    }
}
