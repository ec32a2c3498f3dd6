//! The fields of events, read as JSON.

use crate::{figures, report::Sums};
use serde_json::Value;

/// Characters of a text that a sentence repeats; `events --json` has all of it.
const MAX_CHARS: usize = 160;

/// The fields of an event or of a part of one.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a Value);

impl Fields<'_> {
    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    pub(super) fn decimal(self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// An epoch as people count it: from 1.
    pub(super) fn epoch(self, name: &str) -> Option<u64> {
        self.number(name)?.checked_add(1)
    }

    pub(super) fn numbers(self, name: &str) -> Option<Vec<u64>> {
        self.0.get(name)?.as_array()?.iter().map(Value::as_u64).collect()
    }

    /// The beginning of a text.
    pub(super) fn text(self, name: &str) -> Option<String> {
        let text = self.0.get(name)?.as_str()?;
        let line = text.lines().next().unwrap_or_default();
        let more = line.len() < text.trim_end().len() || line.chars().count() > MAX_CHARS;
        let line: String = line.chars().take(MAX_CHARS).collect();
        Some(if more { format!("{line} ...") } else { line })
    }

    /// Means of sums over rows.
    pub(super) fn means(self, name: &str) -> Option<String> {
        let sums: Sums = serde_json::from_value(self.0.get(name)?.clone()).ok()?;
        let accuracy =
            sums.accuracy().map(|share| format!(", accuracy {}", figures::metric(share)));
        let loss = figures::metric(sums.mean_loss());
        Some(format!("mean loss {loss}{}", accuracy.unwrap_or_default()))
    }

    /// The token of the user who asked for it; none where nobody did.
    pub(super) fn token(self) -> Option<String> {
        let by = self.0.get("by")?;
        match Fields(by).number("token") {
            Some(token) => Some(format!("token {token}")),
            None => (by.as_str()? == "server").then(|| "the server's own token".to_owned()),
        }
    }
}
