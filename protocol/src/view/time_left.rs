//! How long a job has to go.

use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// How long a job has to go, if it had all slots of the hosts in contact to itself: of what its trials may train so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimeLeft {
    /// Milliseconds. No schedule is shorter: all its work on all slots, or its longest trial on the fastest one.
    pub at_least: Millis,
    /// Milliseconds, by the mean time of its hops so far. None before its first hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Millis>,
}
