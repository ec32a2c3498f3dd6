//! Word from the cloud that this machine is going to be taken away. Which cloud it is in, if any, it finds
//! out by itself: each answers at the same address, in its own way.
//!
//! | cloud | asked for | time left |
//! |---|---|---|
//! | [AWS](aws) | `spot/instance-action`, `events/recommendations/rebalance` | two minutes; not said |
//! | [GCP](gcp) | `instance/preempted` | 30 seconds |
//! | [Azure](azure) | `scheduledevents` | 30 seconds or more |

mod aws;
mod azure;
mod cloud;
mod gcp;
mod service;
mod watch;

pub(crate) use service::Service;
pub(crate) use watch::Watch;

use jiff::Timestamp;
use std::time::Duration;

/// That the machine is going to be taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What the cloud calls it.
    pub(crate) what: String,
    /// When; nobody knows where it is only likely.
    pub(crate) at: Option<Timestamp>,
}

impl Notice {
    /// How long that is from now.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = self.at?.duration_since(Timestamp::now());
        // A time that has passed: it may happen at any moment.
        Some(Duration::try_from(left).unwrap_or_default())
    }
}
