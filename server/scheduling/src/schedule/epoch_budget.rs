//! The budget of epochs of a search: no epoch begins that its trials may not train, with those that have begun.

use crate::leases::Occupancy;
use sojourn_state::{Job, Lease, Trial, UnitKey};
use sojourn_workgen::Chain;

impl Occupancy<'_> {
    /// May a trial of the job begin another epoch? All that have begun are counted as if they were trained to their end.
    pub fn may_begin_epoch(&self, job: &Job) -> bool {
        let Some(limit) = job.epoch_limit() else { return true };
        let begun = |trial: &Trial| u64::from(trial.own_epochs(self.begun_epochs(trial)));
        job.trials.iter().map(begun).sum::<u64>() < limit
    }

    /// Would a result that arrives when its lease has ended begin an epoch that the job's trials may not train any more? Others have
    /// begun theirs meanwhile.
    pub fn begins_beyond_budget(&self, lease: &Lease) -> bool {
        let UnitKey::Train { job, trial, .. } = lease.unit else { return false };
        if self.state.leases.contains_key(&lease.id) {
            return false;
        }
        let job = self.state.jobs.get(&job);
        job.and_then(|job| Some((job, job.trial(trial)?))).is_some_and(|(job, trial)| {
            self.begun_epochs(trial) == trial.chain.epoch().0 && !self.may_begin_epoch(job)
        })
    }

    /// The epochs of a trial that are trained, or that it has begun and goes on with.
    fn begun_epochs(&self, trial: &Trial) -> u32 {
        if !trial.trains() {
            return trial.chain.epoch().0;
        }
        if trial.merging.as_ref().is_some_and(|merging| merging.in_flight().next().is_some()) {
            return trial.chain.epoch().0.saturating_add(1);
        }
        if trial.in_hand().next().is_some() {
            return begun(&self.expected_chain(trial));
        }
        begun(&trial.chain)
    }
}

/// The epochs that a chain has begun, the last one maybe not to its end.
fn begun(chain: &Chain) -> u32 {
    chain.epoch().0.saturating_add(u32::from(!chain.is_between_epochs()))
}
