//! Why jobs and trials stand still, where they do, for people.

use super::Views;
use crate::{
    leases::FREE_RELEASES,
    state::{Job, Trial},
};

impl Views<'_> {
    pub(crate) fn job_waits(&self, job: &Job) -> Option<String> {
        if !job.is_running() {
            return None;
        }
        if job.paused_at.is_some() {
            return Some(match job.counters.leases_live {
                0 => "it is paused: resume it, and it goes on".into(),
                1 => "it is paused; 1 unit is still with a machine".into(),
                live => format!("it is paused; {live} units are still with machines"),
            });
        }
        let testing = job
            .search_ended()
            .then(|| "the best trial is being evaluated on the test data".to_owned());
        self.data_waits(job).or_else(|| {
            if job.counters.leases_live > 0 {
                return testing;
            }
            self.hosts_wait()
                .or(testing)
                .or_else(|| job.trials.iter().find_map(|trial| self.trial_waits(job, trial)))
        })
    }

    /// Why nothing of a job can be done, where its data is missing.
    pub(crate) fn data_waits(&self, job: &Job) -> Option<String> {
        let lost = self.state.lost_data(job)?;
        Some(format!(
            "the server's store has lost blob {lost} of the job's data: submit the job again to send it anew"
        ))
    }

    /// Why no host takes work, where none does.
    pub(crate) fn hosts_wait(&self) -> Option<String> {
        let mut cooldowns = self.hosts.cooldowns();
        if let Some((host, _)) = cooldowns.find(|(_, until)| *until > self.now) {
            let host = self.state.hosts.get(&host)?;
            let why = match self.hosts.releases(host.id) {
                Some(history) if history.count >= FREE_RELEASES => {
                    format!("it has given back unit after unit: {}", history.last_reason)
                }
                _ => {
                    let error = host.last_error.as_deref().unwrap_or("not told");
                    format!("its trainers have failed again and again: {error}")
                }
            };
            let (id, name) = (host.id, &host.name);
            return Some(format!("host {id} (`{name}`) is given no work for a while, as {why}"));
        }
        let mut live = self.hosts.sessions().filter(|(host, _)| self.is_live(*host));
        live.next().is_none().then(|| "no host is in contact".into())
    }

    pub(crate) fn trial_waits(&self, job: &Job, trial: &Trial) -> Option<String> {
        if trial.is_running() && job.paused_at.is_some() {
            return Some("its job is paused".into());
        }
        if trial.is_running()
            && let Some(lost) = self.state.blobs.first_lost(trial.blobs())
        {
            return Some(format!("the server's store has lost its checkpoint {lost}"));
        }
        if !trial.is_runnable() && trial.open_evaluations().next().is_none() {
            return None;
        }
        if self.fits_nowhere(job, trial) {
            return Some("no host in contact has the memory for it".into());
        }
        if let Some(shard) = self.unplaced_shard(job, trial).filter(|_| trial.is_runnable()) {
            return Some(format!(
                "no host in contact has the room in its cache to keep shard {shard}: let an owner lend more, or \
                 start a client on another machine"
            ));
        }
        let class = self.state.required_class(job, trial).filter(|_| trial.is_runnable())?;
        let empty = self.live_hosts(Some(class)).next().is_none();
        empty.then(|| format!("no host of numeric class {} is in contact", class.short()))
    }
}
