//! Parts of sentences: epochs, means, texts of users.

use sojourn_protocol::{figures, ids::Epoch, report::Sums};

/// Characters of a text that a sentence repeats; the event itself has all of it.
const MAX_CHARS: usize = 160;

/// The beginning of a text.
pub(super) fn brief(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let more = line.len() < text.trim_end().len() || line.chars().count() > MAX_CHARS;
    let line: String = line.chars().take(MAX_CHARS).collect();
    if more { format!("{line} ...") } else { line }
}

/// An epoch as people count it: from 1.
pub(super) const fn epoch(epoch: Epoch) -> u64 {
    (epoch.0 as u64).saturating_add(1)
}

/// Means of sums over rows.
pub(super) fn means(sums: &Sums) -> String {
    let accuracy = sums.accuracy();
    let accuracy =
        shown(accuracy.as_ref(), |ratio| format!(", accuracy {}", figures::metric(*ratio)));
    format!("mean loss {}{accuracy}", figures::metric(sums.mean_loss()))
}

/// A part of a sentence, or nothing.
pub(super) fn shown<T: ?Sized>(part: Option<&T>, show: impl FnOnce(&T) -> String) -> String {
    part.map(show).unwrap_or_default()
}
