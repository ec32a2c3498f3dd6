//! Sums of losses and hits over rows: what hosts report, and metrics are computed from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sums over rows; they combine over batches and shards by addition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Sums {
    /// Rows seen.
    pub rows: u64,
    /// Sum over rows of the loss.
    pub loss: f64,
    /// Rows whose largest output is the label's; `None` where labels are numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correct: Option<u64>,
    /// Rows whose label is among the k largest outputs, where a unit asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// Sums over rows for a graph's own metrics, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<String, f64>,
}

/// The most sums of a graph's own metrics.
pub const MAX_NAMED_SUMS: usize = 64;

impl Sums {
    /// Both together. Hits and named sums survive only where both have them (or one has no rows).
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        if self.rows == 0 {
            return other.clone();
        }
        if other.rows == 0 {
            return self;
        }
        Self {
            // A host may say any number of rows.
            rows: self.rows.saturating_add(other.rows),
            loss: self.loss + other.loss,
            correct: self.correct.zip(other.correct).map(|(a, b)| a.saturating_add(b)),
            top_k: self.top_k.zip(other.top_k).map(|(a, b)| a.saturating_add(b)),
            named: both(self.named, &other.named),
        }
    }

    /// The mean over rows of a named sum.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn mean_of(&self, name: &str) -> Option<f64> {
        self.named.get(name).map(|sum| sum / self.rows as f64)
    }

    /// Mean loss over rows; NaN without rows.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.rows as f64
    }

    /// Share of correct rows; of a graph the mean of its sum `accuracy`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn accuracy(&self) -> Option<f64> {
        let ratio = self.correct.map(|correct| correct as f64 / self.rows as f64);
        ratio.or_else(|| self.mean_of("accuracy"))
    }

    /// Share of rows whose label is among the k largest outputs.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn top_k_accuracy(&self) -> Option<f64> {
        self.top_k.map(|hits| hits as f64 / self.rows as f64)
    }
}

/// The sums that both have.
fn both(mut sums: BTreeMap<String, f64>, others: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    sums.retain(|name, sum| {
        let other = others.get(name);
        *sum += other.copied().unwrap_or_default();
        other.is_some()
    });
    sums
}
