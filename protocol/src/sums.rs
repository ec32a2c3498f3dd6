//! Sums of losses and hits over rows: what hosts report, and metrics are computed from.

use serde::{Deserialize, Serialize};

/// Sums over rows; they combine over batches and shards by addition.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
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
}

impl Sums {
    /// Both together. Hits survive only where both have them (or one has no rows).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        if self.rows == 0 {
            return other;
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
        }
    }

    /// Mean loss over rows; NaN without rows.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.rows as f64
    }

    /// Share of correct rows.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn accuracy(&self) -> Option<f64> {
        self.correct.map(|correct| correct as f64 / self.rows as f64)
    }

    /// Share of rows whose label is among the k largest outputs.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn top_k_accuracy(&self) -> Option<f64> {
        self.top_k.map(|hits| hits as f64 / self.rows as f64)
    }
}
