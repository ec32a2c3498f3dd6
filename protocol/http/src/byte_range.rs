//! Ranges of bytes as HTTP writes them (RFC 9110, section 14): what a request asks for, and what an answer holds.

use std::ops::Range;

/// The part of a body that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// These bytes, at least one, all of which are there.
    Part(Range<u64>),
    /// Bytes of which none are there.
    Outside,
}

impl Wanted {
    /// Reads a `Range` header of a request for a body of so many bytes: one range of bytes. Several ranges, other units
    /// and what can't be understood give the whole, as the standard allows.
    #[must_use]
    pub fn read(range: Option<&str>, bytes: u64) -> Self {
        let Some(range) = range.and_then(|range| range.trim().strip_prefix("bytes=")) else {
            return Self::Whole;
        };
        let Some((first, last)) = range.trim().split_once('-').filter(|_| !range.contains(','))
        else {
            return Self::Whole;
        };
        let part = match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(bytes),
            (Ok(first), Err(_)) if last.is_empty() => first..bytes,
            (Err(_), Ok(suffix)) if first.is_empty() => bytes.saturating_sub(suffix)..bytes,
            _ => return Self::Whole,
        };
        if part.is_empty() { Self::Outside } else { Self::Part(part) }
    }
}

/// Reads the `Content-Range` header of an answer, `bytes 10-99/100`: where the part starts, and the whole's size, which
/// may be left open by `*`.
#[must_use]
pub fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.parse().ok()?, total.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (range, expected) in [
            (None, Wanted::Whole),
            (Some("bytes=0-9"), Wanted::Part(0..10)),
            (Some("bytes=0-0"), Wanted::Part(0..1)),
            (Some("bytes=50-"), Wanted::Part(50..100)),
            (Some("bytes=90-1000"), Wanted::Part(90..100)),
            (Some("bytes=-10"), Wanted::Part(90..100)),
            (Some("bytes=-1000"), Wanted::Part(0..100)),
            (Some("bytes=100-"), Wanted::Outside),
            (Some("bytes=100-200"), Wanted::Outside),
            (Some("bytes=-0"), Wanted::Outside),
            (Some("bytes=9-3"), Wanted::Whole),
            (Some("bytes=0-1,5-6"), Wanted::Whole),
            (Some("bytes=x-y"), Wanted::Whole),
            (Some("rows=0-1"), Wanted::Whole),
        ] {
            assert_eq!(Wanted::read(range, 100), expected, "{range:?}");
        }
        assert_eq!(Wanted::read(Some("bytes=0-"), 0), Wanted::Outside);
    }

    #[test]
    fn the_range_of_an_answer_has_a_start_and_perhaps_the_size_of_the_whole() {
        for (text, expected) in [
            ("bytes 10-99/100", Some((10, Some(100)))),
            ("bytes 0-9/*", Some((0, None))),
            ("bytes */100", None),
            ("bytes=10-99/100", None),
            ("bytes 10-99", None),
            ("rows 1-2/3", None),
        ] {
            assert_eq!(content_range(text), expected, "{text}");
        }
    }
}
