//! The training losses of trials that stay on hosts, since somebody looked.
//!
//! Hosts say the losses of a unit so far with each heartbeat, and those of all of it with the report. None of it is journalled: what
//! looks decide is.

use sojourn_protocol::{
    api::LossSum,
    ids::{JobId, LeaseId, TrialId},
    quantity::SaturatingFrom as _,
    report::Sums,
};
use sojourn_state::{State, Trial};
use std::collections::BTreeMap;

/// So many trials are remembered without a look whether they are still under way.
const MIN_TRIALS: usize = 64;

/// By trial, what was heard of its losses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrialLosses {
    heard: BTreeMap<(JobId, TrialId), Heard>,
    /// With so many, ended ones are forgotten.
    full_at: usize,
}

/// The losses that were heard of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Heard {
    /// The trial's latest lease that said any.
    lease: LeaseId,
    /// The losses that this lease has said so far.
    of_lease: LossSum,
    /// The step after which nothing was heard yet: batches that are trained again count once.
    furthest: u64,
    /// All since the last look.
    since: LossSum,
}

impl TrialLosses {
    /// A lease has said the losses of its unit so far. Older ones of the trial count no more.
    pub fn heard(
        &mut self,
        state: &State,
        (job, trial): (JobId, &Trial),
        (lease, losses): (LeaseId, LossSum),
    ) {
        // In hop order the unit goes on from where the trial stands.
        let begin = trial.chain.step();
        let heard = self.heard.entry((job, trial.id)).or_default();
        if lease < heard.lease {
            return;
        }
        if lease > heard.lease {
            (heard.lease, heard.of_lease) = (lease, LossSum::default());
        }
        let more = losses.batches.saturating_sub(heard.of_lease.batches);
        let mean = (losses.sum - heard.of_lease.sum) / f64::from(more);
        if more > 0 && mean.is_finite() {
            let end = begin.saturating_add(losses.batches.into());
            let new = u32::saturating_from(end.saturating_sub(heard.furthest)).min(more);
            heard.since = heard.since.plus(mean, new);
            (heard.of_lease, heard.furthest) = (losses, heard.furthest.max(end));
        }
        if self.heard.len() > self.full_at.max(MIN_TRIALS) {
            self.heard
                .retain(|(job, trial), _| state.trial(*job, *trial).is_some_and(Trial::is_running));
            self.full_at = self.heard.len() * 2;
        }
    }

    /// A lease was reported, with these sums over all rows of its unit.
    pub fn reported(
        &mut self,
        state: &State,
        trial: &Trial,
        (job, lease): (JobId, LeaseId),
        sums: &Sums,
    ) {
        let batch_size = u64::from(trial.context.config.training.batch_size).max(1);
        let batches = u32::saturating_from(sums.rows.div_ceil(batch_size));
        let losses = LossSum::default().plus(sums.mean_loss(), batches);
        self.heard(state, (job, trial), (lease, losses));
    }

    /// The losses that were heard since the last look, if of at least so many batches; then another look begins.
    pub fn take(&mut self, trial: (JobId, TrialId), least: u32) -> Option<LossSum> {
        let heard = self.heard.get_mut(&trial)?;
        let enough = heard.since.batches >= least.max(1);
        enough.then(|| std::mem::take(&mut heard.since))
    }
}
