//! Observations that hosts have made of trials whose CPU shares follow a policy. They go with each trial to the host on
//! which it runs next.
//!
//! None of it is journalled: it changes when a batch is trained, and never what comes of it. After a restart trials are new until their
//! hosts are heard.

use sojourn_protocol::{
    cpu_shares::{HeldCpuShare, LeaseCpuShares},
    ids::{JobId, TrialId},
    spec::CpuSharePolicy,
};
use sojourn_state::{Lease, State, UnitKey};
use std::collections::BTreeMap;

/// So many trials are remembered without a look whether they are still under way.
const MIN_TRIALS: usize = 64;

/// By trial, what was heard last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrialCpuShares {
    seen: BTreeMap<(JobId, TrialId), HeldCpuShare>,
    /// With so many, ended ones are forgotten.
    full_at: usize,
}

impl TrialCpuShares {
    /// The host of a lease has said what it has seen of the lease's trial.
    pub fn heard(&mut self, state: &State, lease: &Lease, cpu_share: HeldCpuShare) {
        let trial = (lease.unit.job(), lease.unit.trial());
        let earlier = self.seen.get(&trial).map(|seen| seen.carried.attained);
        // A lease that has ended is heard of until its report is acknowledged; the trial may be elsewhere by then.
        if earlier.is_some_and(|earlier| earlier > cpu_share.carried.attained) {
            return;
        }
        self.seen.insert(trial, cpu_share);
        if self.seen.len() > self.full_at.max(MIN_TRIALS) {
            self.seen.retain(|(job, trial), _| {
                state.trial(*job, *trial).is_some_and(|trial| trial.is_running())
            });
            self.full_at = self.seen.len() * 2;
        }
    }

    /// The CPU share that was heard last of a trial.
    pub fn of(&self, trial: (JobId, TrialId)) -> Option<HeldCpuShare> {
        self.seen.get(&trial).copied()
    }

    /// The CPU shares that a lease names; none where they are equal, and for evaluations.
    pub fn of_lease(&self, state: &State, lease: &Lease) -> Option<LeaseCpuShares> {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        let policy = state.jobs.get(&job)?.spec.placement.cpu_shares;
        let is_hop = matches!(lease.unit, UnitKey::Train { .. });
        (policy != CpuSharePolicy::Equal && is_hop).then(|| LeaseCpuShares {
            policy,
            carried: self.of((job, trial)).map(|seen| seen.carried),
        })
    }
}
