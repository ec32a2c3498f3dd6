//! The trace of each result that waits to be assimilated. For the logs alone: nothing is decided by it, and a server that starts
//! again knows none of the results that were reported before.

use parking_lot::Mutex;
use sojourn_protocol::{ids::LeaseId, trace::TraceContext};
use std::collections::BTreeMap;

/// Results whose traces are kept. Beyond it those of the oldest leases are forgotten.
const MAX_RESULTS: usize = 1 << 16;

/// Traces by lease.
#[derive(Debug, Default)]
pub(crate) struct ResultTraces(Mutex<BTreeMap<LeaseId, TraceContext>>);

impl ResultTraces {
    /// The lease's result is reported by a request of this trace.
    pub(crate) fn reported(&self, lease: LeaseId, trace: TraceContext) {
        let mut traces = self.0.lock();
        traces.insert(lease, trace);
        while traces.len() > MAX_RESULTS {
            traces.pop_first();
        }
    }

    /// Nothing more comes of the result.
    pub(crate) fn ended(&self, lease: LeaseId) {
        self.0.lock().remove(&lease);
    }

    /// The trace of a lease's result.
    pub(crate) fn of(&self, lease: LeaseId) -> Option<TraceContext> {
        self.0.lock().get(&lease).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_http::trace::below;

    #[test]
    fn a_result_is_of_the_trace_that_reported_it_last() {
        let traces = ResultTraces::default();
        let (lease, first, again) = (LeaseId(7), below(None), below(None));
        assert_eq!(traces.of(lease), None);
        traces.reported(lease, first);
        traces.reported(lease, again);
        assert_eq!(traces.of(lease), Some(again));
        traces.ended(lease);
        assert_eq!(traces.of(lease), None);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let traces = ResultTraces::default();
        let most = u64::try_from(MAX_RESULTS).unwrap();
        for lease in 0..=most {
            traces.reported(LeaseId(lease), below(None));
        }
        assert_eq!(traces.of(LeaseId(0)), None);
        assert!(traces.of(LeaseId(1)).is_some() && traces.of(LeaseId(most)).is_some());
    }
}
