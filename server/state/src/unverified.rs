//! Results that were taken in unverified: nobody was there to confirm them, or too few parties agreed.
//!
//! Servers of today let such results wait. Journals of before have some, and each model that goes on from one is marked.

use super::{Job, State, Trial};
use sojourn_protocol::{
    ids::HostId,
    quantity::to_u64,
    view::{HopRecord, Verification},
};

const UNVERIFIED: Option<Verification> = Some(Verification::Unverified);

/// Are results of all hosts verified in a job? Others have none that were taken in unverified: since strangers' results are verified
/// by default, results wait.
fn is_verified(job: &Job) -> bool {
    job.verified_quorum().is_some()
}

impl Trial {
    /// The trial's hops that were taken in unverified.
    fn unverified_hops(&self) -> impl Iterator<Item = &HopRecord> {
        self.history.iter().filter(|hop| hop.verified == UNVERIFIED)
    }

    /// The trial's evaluations of the search that were taken in unverified; a clone has those of the other trial as well.
    fn unverified_evaluations(&self) -> u64 {
        to_u64(self.curve.iter().filter(|point| point.verified == UNVERIFIED).count())
    }
}

impl Job {
    /// Results that were taken in unverified, and that a trial's models follow from or are judged by: hops and evaluations of its own,
    /// and of the trials that it goes on from.
    #[must_use]
    pub fn unverified_of(&self, trial: &Trial) -> u64 {
        if !is_verified(self) {
            return 0;
        }
        let mut all = trial.unverified_evaluations();
        let (mut current, mut epochs) = (trial, u32::MAX);
        loop {
            let hops = current.unverified_hops().filter(|hop| hop.epoch().0 < epochs);
            all = all.saturating_add(to_u64(hops.count()));
            // A clone is younger than the trial that it goes on from.
            let origin = current.origin.filter(|origin| origin.trial < current.id);
            let Some((origin, parent)) = origin.and_then(|of| Some((of, self.trial(of.trial)?)))
            else {
                return all;
            };
            epochs = epochs.min(origin.epochs);
            current = parent;
        }
    }

    /// All its results that were taken in unverified: hops, evaluations of the search, and such as were asked for.
    #[must_use]
    pub fn unverified(&self) -> u64 {
        let of_trial = |trial: &Trial| {
            let first = trial.origin.map_or(0, |origin| origin.epochs);
            let own = trial.curve.iter().filter(|point| point.epoch.0 >= first);
            let own = own.filter(|point| point.verified == UNVERIFIED).count();
            let asked = trial.extras.iter().filter(|extra| extra.is_unverified()).count();
            to_u64(own + asked + trial.unverified_hops().count())
        };
        let trials = self.trials.iter().filter(|_| is_verified(self));
        trials.map(of_trial).fold(0, u64::saturating_add)
    }
}

impl State {
    /// Hops of a host that were taken in unverified, in any job.
    pub fn unverified_hops_of(&self, host: HostId) -> u64 {
        let jobs = self.jobs.values().filter(|job| is_verified(job));
        let trials = jobs.flat_map(|job| &job.trials);
        let hops = trials.flat_map(Trial::unverified_hops);
        to_u64(hops.filter(|hop| hop.host == host).count())
    }
}
