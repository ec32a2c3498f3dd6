//! A ratio: a part of a whole as a number, with a total order.

use super::dimension::Value;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A number from 0 on and below 1. Unlike `f64` it has a total order, so that what holds it can be a key.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Share))]
#[serde(transparent)]
pub struct Ratio(pub f64);

impl Ratio {
    /// Is it 0?
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ratio {}

impl Value for Ratio {
    fn from_number(number: f64) -> Option<Self> {
        Some(Ratio(number))
    }
}
