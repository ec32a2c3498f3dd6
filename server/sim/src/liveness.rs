//! W1, liveness: a job with open units gets one within a bounded time, else the server says why it waits.
//!
//! The bound counts virtual time in which the job holds no lease, has open units, and is given no reason to wait. Jobs of one
//! priority share slots by the time that their units take, so a job may have to wait while others catch up with a long unit of its
//! own: the bound grows with the longest lease.

use sojourn_core::Core;
use sojourn_protocol::{
    ids::JobId,
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// A job that waits in silence gets a unit within so long, beside [`LONGEST_LEASES`].
const PATIENCE: Millis = Millis::from_secs(60);
/// Leases as long as the longest one that a silent job may wait for.
const LONGEST_LEASES: u64 = 4;

/// Jobs that wait in silence.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// Since when.
    silent: BTreeMap<JobId, UnixMillis>,
    longest: Millis,
}

impl Liveness {
    /// Looks at all jobs. Between two looks nothing may happen that isn't looked at.
    ///
    /// # Errors
    /// The job that has waited for too long.
    pub(crate) fn check(&mut self, core: &Core, now: UnixMillis) -> Result<(), String> {
        let state = core.state();
        let held = state.leases.values().map(|lease| now - lease.granted_at);
        self.longest = held.fold(self.longest, Ord::max);
        self.silent.retain(|job, _| state.jobs.contains_key(job));
        for job in state.jobs.values() {
            let waits = job.counters.leases_live == 0 && job.supply() > 0;
            if !waits || core.wait_reason(job.id).is_some() {
                self.silent.remove(&job.id);
                continue;
            }
            let since = *self.silent.entry(job.id).or_insert(now);
            let patience = PATIENCE.0 + LONGEST_LEASES * self.longest.0;
            if (now - since).0 > patience {
                let (name, waited) = (&job.spec.name, now - since);
                return Err(format!(
                    "W1: job {} (`{name}`) has had {} open units and no lease for {waited:?}, and nothing says why",
                    job.id,
                    job.supply()
                ));
            }
        }
        Ok(())
    }

    /// The server has ended: those that wait are looked at anew once it has started.
    pub(crate) fn restarted(&mut self) {
        self.silent.clear();
    }
}
