//! Trials that stay on hosts, by host and category.

use crate::state::{Job, Trial};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    residency::Category,
};
use std::collections::BTreeMap;

/// The trials that stay on each host and have something left to train.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Residents {
    trials: BTreeMap<(JobId, TrialId), (HostId, Category)>,
    /// By host: how many, by category.
    by_host: BTreeMap<HostId, [u32; 3]>,
    /// By job: how many.
    by_job: BTreeMap<JobId, u32>,
}

impl Residents {
    /// Takes in where a trial stays.
    pub(crate) fn update(&mut self, job: JobId, trial: &Trial) {
        let residence = trial.residence.filter(|_| trial.trains());
        let stays = residence.and_then(|of| Some((of.host?, of.category)));
        self.set((job, trial.id), stays);
    }

    /// Takes in where the trials of a job stay.
    pub(crate) fn update_job(&mut self, job: &Job) {
        if job.spec.placement.residency.keeps_trials() {
            job.trials.iter().for_each(|trial| self.update(job.id, trial));
        }
    }

    /// A job is no more.
    pub(crate) fn forget(&mut self, job: JobId) {
        let of_job: Vec<TrialId> = self.of(job).map(|(trial, ..)| trial).collect();
        of_job.into_iter().for_each(|trial| self.set((job, trial), None));
    }

    /// A job's trials that stay somewhere, in order.
    pub(crate) fn of(&self, job: JobId) -> impl Iterator<Item = (TrialId, HostId, Category)> {
        let trials = self.trials.range((job, TrialId(0))..=(job, TrialId(u32::MAX)));
        trials.map(|((_, trial), (host, category))| (*trial, *host, *category))
    }

    /// All trials that stay somewhere, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = ((JobId, TrialId), HostId)> {
        self.trials.iter().map(|(trial, (host, _))| (*trial, *host))
    }

    /// How many trials of a job stay somewhere.
    pub(crate) fn count_of(&self, job: JobId) -> u32 {
        self.by_job.get(&job).copied().unwrap_or(0)
    }

    /// Trials that stay on a host, by category.
    pub(crate) fn on(&self, host: HostId) -> [u32; 3] {
        self.by_host.get(&host).copied().unwrap_or_default()
    }

    fn set(&mut self, trial: (JobId, TrialId), stays: Option<(HostId, Category)>) {
        let before = match stays {
            Some(stays) => self.trials.insert(trial, stays),
            None => self.trials.remove(&trial),
        };
        if before == stays {
            return;
        }
        if let Some((host, category)) = before {
            let left = self.by_host.entry(host).or_default();
            *count(left, category) -= 1;
            if *left == [0; 3] {
                self.by_host.remove(&host);
            }
        }
        if let Some((host, category)) = stays {
            *count(self.by_host.entry(host).or_default(), category) += 1;
        }
        let of_job = self.by_job.entry(trial.0).or_default();
        match (before, stays) {
            (None, Some(_)) => *of_job += 1,
            (Some(_), None) => *of_job -= 1,
            _ => {}
        }
        if *of_job == 0 {
            self.by_job.remove(&trial.0);
        }
    }
}

const fn count(of: &mut [u32; 3], category: Category) -> &mut u32 {
    let [progressing, watching, converged] = of;
    match category {
        Category::Progressing => progressing,
        Category::Watching => watching,
        Category::Converged => converged,
    }
}
