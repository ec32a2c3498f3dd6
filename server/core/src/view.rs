//! What reading commands see of the state.

use crate::{
    contact::{Contact, Slots},
    core::Core,
    event::UnitKey,
    state::{Host, Job, JobEnd, Lease, Trial, TrialEnd},
};
use sojourn_protocol::{
    api::ReleaseRequest,
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TrialId},
    inventory::Device,
    view::{
        BestView, DeviceView, Doubtful, EvaluationView, HeldView, HostState, HostView, JobDetail,
        JobState, JobView, TrialHistory, TrialState, TrialView,
    },
};

fn none_such(what: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::NotFound, what)
}

impl Core {
    pub(crate) fn jobs_view(&self) -> Vec<JobView> {
        self.state.jobs.values().map(|job| self.summary(job)).collect()
    }

    pub(crate) fn job_view(&self, job: JobId) -> Option<JobView> {
        self.state.jobs.get(&job).map(|job| self.summary(job))
    }

    pub(crate) fn job_detail(&self, job: JobId) -> Result<JobDetail, ApiError> {
        let job = self.job(job)?;
        let mut summary = self.summary(job);
        summary.test = job.test_of_best().and_then(|test| self.evaluation_view(job, &test));
        Ok(JobDetail { summary, spec: job.spec.clone(), data: job.data.clone() })
    }

    pub(crate) fn trials_view(&self, job: JobId) -> Result<Vec<TrialView>, ApiError> {
        let job = self.job(job)?;
        Ok(job.trials.iter().map(|trial| self.trial_view(job, trial)).collect())
    }

    pub(crate) fn history(&self, job: JobId, trial: TrialId) -> Result<TrialHistory, ApiError> {
        let (job, trial) = self.known_trial(job, trial)?;
        Ok(TrialHistory {
            job: job.id,
            trial: trial.id,
            job_seed: job.spec.seed,
            context: trial.context.clone(),
            former: trial.former.clone(),
            data: job.data.clone(),
            // Arithmetic that nothing pinned has no class.
            numeric_class: trial.class.filter(|_| !trial.mixed && job.spec.placement.reproducible),
            given: trial.given,
            merge: trial
                .history
                .iter()
                .any(|hop| hop.merged.is_some())
                .then(|| job.spec.placement.merging()),
            hops: trial.history.clone(),
        })
    }

    pub(crate) fn hosts_view(&self) -> Vec<HostView> {
        self.state.hosts.keys().filter_map(|host| self.host_view(*host)).collect()
    }

    pub(crate) fn host_view(&self, host: HostId) -> Option<HostView> {
        let host = self.state.hosts.get(&host)?;
        let contact = self.soft.contacts.get(&host.id);
        let leases = host.live.iter().filter_map(|lease| self.state.leases.get(lease));
        Some(HostView {
            host: host.id,
            name: host.name.clone(),
            state: self.host_state(host),
            seen_at: contact.map(|contact| contact.seen_at),
            slots: contact.map_or(0, |contact| contact.slots),
            devices: contact.map(|contact| self.devices_of(host.id, contact)).unwrap_or_default(),
            cached: contact.map_or(0, |c| u64::try_from(c.cached.len()).unwrap_or(u64::MAX)),
            cache: contact.and_then(|contact| contact.cache),
            links: contact.map(|contact| contact.links).unwrap_or_default(),
            leases: leases.map(|lease| self.held_view(lease)).collect(),
            used: host.used,
            expired: host.expired,
            reliability: host.reliability.is_known().then(|| host.reliability.share(self.now)),
            confirmed: host.trust.confirmed,
            confirmed_in_row: host.trust.in_row,
            refuted: host.trust.refuted,
            doubtful: self.doubtful_of(host.id),
            failures: host.failures,
            last_error: match self.soft.returns.get(&host.id) {
                Some((_, reason)) if !ReleaseRequest::is_wished(reason) => {
                    Some(format!("gave work back: {reason}"))
                }
                _ => host.last_error.clone(),
            },
            train_micros: host.train_micros,
        })
    }

    /// What a refuted host has delivered, in any job, since its last confirmed result.
    fn doubtful_of(&self, host: HostId) -> Vec<Doubtful> {
        let of_job = |job: &Job| {
            let job_id = job.id;
            let doubtful = self.doubtful(host, job).map(move |(trial, hop)| {
                let (version, epoch) = (hop.version, hop.epoch());
                Doubtful { job: job_id, trial: trial.id, version, epoch }
            });
            doubtful.collect::<Vec<_>>()
        };
        self.state.jobs.values().flat_map(of_job).collect()
    }

    fn devices_of(&self, host: HostId, contact: &Contact) -> Vec<DeviceView> {
        let estimates = &self.soft.schedule.estimates;
        let view = |slots: &Slots| {
            let Device { name, numeric_class, flops, memory, measured } = slots.device.clone();
            let estimate_error = estimates.error_of(host, &name).thousandths();
            let slots = slots.count;
            DeviceView { name, slots, numeric_class, flops, memory, measured, estimate_error }
        };
        contact.devices.values().map(view).collect()
    }

    fn host_state(&self, host: &Host) -> HostState {
        if host.revoked {
            HostState::Revoked
        } else if let Some(until) =
            self.soft.resting.get(&host.id).copied().filter(|until| *until > self.now)
        {
            HostState::Resting { until }
        } else if self.soft.is_live(host.id, self.now, self.config.lease_term) {
            HostState::Live
        } else {
            HostState::Away
        }
    }

    fn held_view(&self, lease: &Lease) -> HeldView {
        let unit = match lease.unit {
            UnitKey::Train { epoch, shard, from, .. } => {
                let from = if from == 0 { String::new() } else { format!(" from batch {from}") };
                let then: String = lease.then.iter().map(|shard| format!(", {shard}")).collect();
                format!("train epoch {epoch} shard {shard}{from}{then}")
            }
            UnitKey::Evaluate { epoch, .. } => format!("evaluate epoch {epoch}"),
            UnitKey::Extra { name, .. } => {
                format!("evaluate epoch {} on the {} data", name.epoch, name.split.name())
            }
        };
        let term = self.soft.terms.get(&lease.id);
        HeldView {
            lease: lease.id,
            job: lease.unit.job(),
            trial: lease.unit.trial(),
            unit,
            running: term.is_some_and(|term| term.started && !term.finished),
            age: self.now - lease.granted_at,
        }
    }

    pub(crate) fn known_trial(
        &self,
        job: JobId,
        trial: TrialId,
    ) -> Result<(&Job, &Trial), ApiError> {
        let job = self.job(job)?;
        let known = job.trial(trial);
        let trial =
            known.ok_or_else(|| none_such(format!("job {} has no trial {trial}", job.id)))?;
        Ok((job, trial))
    }

    pub(crate) fn job(&self, job: JobId) -> Result<&Job, ApiError> {
        self.state.jobs.get(&job).ok_or_else(|| none_such(format!("no job {job}")))
    }

    pub(crate) fn summary(&self, job: &Job) -> JobView {
        let trials = u32::try_from(job.trials.len()).unwrap_or(u32::MAX);
        let shards = u64::try_from(job.data.train.len()).unwrap_or(u64::MAX);
        let epochs: u64 = job.trials.iter().map(|trial| u64::from(trial.epochs())).sum();
        let ended = |wanted: fn(&TrialEnd) -> bool| {
            let ends = job.trials.iter().filter_map(|trial| trial.end.as_ref());
            u32::try_from(ends.filter(|end| wanted(end)).count()).unwrap_or(u32::MAX)
        };
        let counters = job.counters;
        JobView {
            job: job.id,
            name: job.spec.name.clone(),
            state: match job.end {
                None if job.paused_at.is_some() => JobState::Paused,
                None => JobState::Running,
                Some((JobEnd::Finished, _)) => JobState::Finished,
                Some((JobEnd::Failed, _)) => JobState::Failed,
                Some((JobEnd::Cancelled, _)) => JobState::Cancelled,
            },
            submitted_at: job.submitted_at,
            ended_at: job.end.map(|(_, at)| at),
            metric: job.spec.search.metric.name().into(),
            trials,
            trials_finished: ended(|end| matches!(end, TrialEnd::Finished)),
            trials_failed: ended(|end| matches!(end, TrialEnd::Failed(_))),
            hops: job.trials.iter().map(|trial| trial.chain.hops()).sum(),
            hops_expected: epochs * shards,
            evaluations: counters.evaluations,
            evaluations_expected: epochs,
            leases_live: counters.leases_live,
            leases_expired: counters.leases_expired,
            leases_returned: counters.leases_returned,
            copies: counters.copies,
            superseded: counters.superseded,
            rejected: counters.rejected,
            train_micros: counters.train_micros,
            best: job.best().map(|(trial, best)| BestView {
                trial,
                epoch: best.epoch,
                value: best.value,
                checkpoint: best.checkpoint,
            }),
            test: job
                .test_of_best()
                .and_then(|test| self.evaluation_view(job, &test))
                .map(EvaluationView::brief),
            waiting: self.job_waits(job),
        }
    }

    fn trial_view(&self, job: &Job, trial: &Trial) -> TrialView {
        TrialView {
            trial: trial.id,
            state: match &trial.end {
                None => TrialState::Running,
                Some(TrialEnd::Finished) => TrialState::Finished,
                Some(TrialEnd::Cancelled) => TrialState::Cancelled,
                Some(TrialEnd::Failed(error)) => TrialState::Failed { error: error.clone() },
            },
            arch: trial.context.config.model.name().into(),
            choices: trial.choices.clone(),
            epoch: trial.chain.epoch(),
            epochs: trial.epochs(),
            hops: trial.chain.hops(),
            version: trial.version,
            checkpoint: trial.checkpoint,
            numeric_class: trial.class,
            curve: trial.curve.clone(),
            stopped: trial.stopped_because(&job.spec.search),
            best: trial.best.map(|best| BestView {
                trial: trial.id,
                epoch: best.epoch,
                value: best.value,
                checkpoint: best.checkpoint,
            }),
            test: self.test_of(job, trial).map(EvaluationView::brief),
            waiting: self.trial_waits(job, trial),
        }
    }
}
