//! How far the trials of a job are: all figures from one walk over them, since a job may have tens of thousands.

use sojourn_protocol::{quantity::SaturatingFrom as _, spec::SearchMethod};
use sojourn_state::{Job, Trial, TrialEnd};

/// How far a job's trials are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Trials that have finished.
    pub(super) finished: u32,
    /// Trials that have failed.
    pub(super) failed: u32,
    /// Hops that the trials have.
    pub(super) hops: u64,
    /// Hops that the trials are expected to have in the end, as far as is known.
    pub(super) expected_hops: u64,
    /// Evaluations of the search that the trials are expected to have, as far as is known: one for each epoch.
    pub(super) expected_evaluations: u64,
}

impl Progress {
    /// Hops that are done, and hops of the whole job.
    pub(super) const fn hops(&self) -> (u64, u64) {
        (self.hops, self.expected_hops)
    }

    pub(super) fn of(job: &Job) -> Self {
        let ends_early = ends_early(job);
        let mut of = Self::default();
        for trial in &job.trials {
            let epochs = u64::from(expected_epochs(job, trial, ends_early));
            let hops = own_hops(trial);
            let per_epoch = trial.chain.hops_per_epoch();
            of.finished += u32::from(trial.end == Some(TrialEnd::Finished));
            of.failed += u32::from(matches!(trial.end, Some(TrialEnd::Failed(_))));
            of.hops += hops;
            // A trial on all folds is evaluated on none.
            of.expected_evaluations += if trial.refit.is_none() { epochs } else { 0 };
            of.expected_hops +=
                if ends_early && !trial.is_running() { hops } else { epochs * per_epoch };
        }
        of
    }
}

/// Epochs that a trial is expected to train, as far as is known: one that its search has stopped, or holds back, trains fewer than
/// it might. One of a population trains to the end, or its clone does. What a clone has of another trial isn't its own.
fn expected_epochs(job: &Job, trial: &Trial, ends_early: bool) -> u32 {
    let all = match (ends_early, trial.is_running()) {
        (true, true) if job.spec.search.stopping.is_some() => trial.chain.epochs(),
        (true, false) => u32::saturating_from(trial.curve.len()),
        (_, _) => trial.epochs(),
    };
    all.saturating_sub(epochs_of_other(trial))
}

/// Does the search end some of a job's trials?
fn ends_early(job: &Job) -> bool {
    let search = &job.spec.search;
    search.stopping.is_some() || matches!(search.method, SearchMethod::Pbt(_))
}

/// Epochs that a clone has of the trial that it goes on from.
fn epochs_of_other(trial: &Trial) -> u32 {
    trial.origin.map_or(0, |origin| origin.epochs)
}

/// Hops that were trained for the trial itself.
fn own_hops(trial: &Trial) -> u64 {
    let of_other = u64::from(epochs_of_other(trial)) * trial.chain.hops_per_epoch();
    trial.chain.hops().saturating_sub(of_other)
}
