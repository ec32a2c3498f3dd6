//! Trials that stay on hosts, by host and category.

use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    residency::Category,
};
use sojourn_state::{Job, Trial};
use std::collections::BTreeMap;

/// The trials that stay on each host and have something left to train.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Residents {
    trials: BTreeMap<(JobId, TrialId), (HostId, Category)>,
    /// How many, by category.
    by_host: Counts<HostId>,
    by_job: Counts<JobId>,
    by_job_and_host: Counts<(JobId, HostId)>,
}

/// Trials by category: progressing, watching, converged.
type Counts<K> = BTreeMap<K, [u32; 3]>;

impl Residents {
    /// Takes in where a trial stays.
    pub fn update(&mut self, job: JobId, trial: &Trial) {
        let residence = trial.residence.filter(|_| trial.trains());
        let stays = residence.and_then(|of| Some((of.host?, of.category)));
        self.set((job, trial.id), stays);
    }

    /// Takes in where the trials of a job stay.
    pub fn update_job(&mut self, job: &Job) {
        if job.spec.placement.residency.keeps_trials() {
            job.trials.iter().for_each(|trial| self.update(job.id, trial));
        }
    }

    /// A job is no more.
    pub fn forget(&mut self, job: JobId) {
        let of_job: Vec<TrialId> = self.of(job).map(|(trial, ..)| trial).collect();
        of_job.into_iter().for_each(|trial| self.set((job, trial), None));
    }

    /// A job's trials that stay somewhere, in order.
    pub fn of(&self, job: JobId) -> impl Iterator<Item = (TrialId, HostId, Category)> {
        let trials = self.trials.range((job, TrialId(0))..=(job, TrialId(u32::MAX)));
        trials.map(|((_, trial), (host, category))| (*trial, *host, *category))
    }

    /// Does a trial stay somewhere?
    pub fn contains(&self, job: JobId, trial: TrialId) -> bool {
        self.trials.contains_key(&(job, trial))
    }

    /// All trials that stay somewhere, in order.
    pub fn all(&self) -> impl Iterator<Item = ((JobId, TrialId), HostId)> {
        self.trials.iter().map(|(trial, (host, _))| (*trial, *host))
    }

    /// How many trials of a job stay somewhere.
    pub fn count_of(&self, job: JobId) -> u32 {
        self.by_job.get(&job).map_or(0, |of| of.iter().sum())
    }

    /// How many of them haven't converged: on a host, or anywhere.
    pub fn learning(&self, job: JobId, host: Option<HostId>) -> u32 {
        let of = match host {
            Some(host) => self.by_job_and_host.get(&(job, host)),
            None => self.by_job.get(&job),
        };
        of.map_or(0, |[progressing, watching, _]| progressing + watching)
    }

    /// Trials that stay on a host, by category.
    pub fn on(&self, host: HostId) -> [u32; 3] {
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
        let (job, _) = trial;
        if let Some((host, category)) = before {
            remove(&mut self.by_host, host, category);
            remove(&mut self.by_job, job, category);
            remove(&mut self.by_job_and_host, (job, host), category);
        }
        if let Some((host, category)) = stays {
            add(&mut self.by_host, host, category);
            add(&mut self.by_job, job, category);
            add(&mut self.by_job_and_host, (job, host), category);
        }
    }
}

fn add<K: Ord>(counts: &mut Counts<K>, of: K, category: Category) {
    *count(counts.entry(of).or_default(), category) += 1;
}

fn remove<K: Ord + Copy>(counts: &mut Counts<K>, of: K, category: Category) {
    let left = counts.entry(of).or_default();
    *count(left, category) -= 1;
    if *left == [0; 3] {
        counts.remove(&of);
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
