//! Views of jobs and trials.

use super::{Views, progress::Progress};
use sojourn_protocol::{
    error::ApiError,
    ids::{HostId, JobId, TrialId},
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    residency::ResidenceView,
    spec::Rung,
    view::{
        BestView, CurveView, DoubtView, EvaluationView, JobDetail, JobOwner, JobState, JobView,
        TimeLeft, TrialHistory, TrialPhase, TrialState, TrialView, leader_board,
    },
};
use sojourn_state::{By, Job, JobEnd, Stopped, Taint, Trial, TrialEnd};

impl Views<'_> {
    pub(crate) fn jobs(&self) -> Vec<JobView> {
        self.state.jobs.values().map(|job| self.summary(job)).collect()
    }

    /// One job, in short.
    pub(crate) fn job_summary(&self, job: JobId) -> Result<JobView, ApiError> {
        let job = self.state.find_job(job)?;
        Ok(JobView { doubts: self.doubts(job), ..self.summary(job) })
    }

    pub(crate) fn job(&self, job: JobId) -> Result<JobDetail, ApiError> {
        let job = self.state.find_job(job)?;
        let mut summary = JobView { doubts: self.doubts(job), ..self.summary(job) };
        summary.test = job.test_of_best().and_then(|test| self.evaluation_of(job, &test));
        let (spec, space) = job.submitted_spec();
        Ok(JobDetail { summary, spec, space: space.map(Box::new), data: job.data.clone() })
    }

    /// At most `limit` trials of a job, from one on.
    pub(crate) fn trials(
        &self,
        job: JobId,
        from: TrialId,
        limit: u32,
    ) -> Result<Vec<TrialView>, ApiError> {
        let job = self.state.find_job(job)?;
        let trials = job.trials.iter().skip(to_usize(from.0));
        let trials = trials.take(to_usize(limit));
        Ok(trials.map(|trial| self.trial(job, trial)).collect())
    }

    /// At most `limit` trials of a job, the best first.
    pub(crate) fn leading_trials(
        &self,
        job: JobId,
        limit: u32,
    ) -> Result<Vec<TrialView>, ApiError> {
        let job = self.state.find_job(job)?;
        let goal = job.spec.search.goal;
        let place = |trial: &Trial| (trial.best.map(|best| best.value), trial.id);
        let mut trials: Vec<&Trial> = job.trials.iter().collect();
        trials.sort_by(|a, b| leader_board(goal, place(a), place(b)));
        trials.truncate(to_usize(limit));
        Ok(trials.into_iter().map(|trial| self.trial(job, trial)).collect())
    }

    pub(crate) fn history(&self, job: JobId, trial: TrialId) -> Result<TrialHistory, ApiError> {
        let (job, trial) = self.state.find_trial(job, trial)?;
        Ok(TrialHistory {
            job: job.id,
            trial: trial.id,
            job_seed: trial.seed_in(job),
            context: trial.context.clone(),
            former: trial.former.clone(),
            data: job.data.clone(),
            // Arithmetic that nothing pinned has no class.
            numeric_class: trial.class.filter(|_| !trial.mixed && job.spec.placement.reproducible),
            initial_weights: trial.initial_weights,
            origin: trial.origin,
            merge: trial
                .history
                .iter()
                .any(|hop| hop.merged.is_some())
                .then(|| job.spec.placement.merging()),
            hops: trial.history.clone(),
        })
    }

    pub(crate) fn summary(&self, job: &Job) -> JobView {
        let (progress, best, counters) = (Progress::of(job), job.best(), job.counters);
        let left = self.time_left(job, progress.hops);
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
            trials: u32::saturating_from(job.trials.len()),
            trials_finished: progress.finished,
            trials_failed: progress.failed,
            hops: progress.hops,
            hops_expected: progress.expected_hops,
            evaluations: counters.evaluations,
            evaluations_expected: progress.expected_evaluations,
            leases_live: counters.leases_live,
            leases_expired: counters.leases_expired,
            leases_returned: counters.leases_returned,
            speculative_leases: counters.speculative_leases,
            superseded: counters.superseded,
            rejected: counters.rejected,
            unverified: job.unverified(),
            train_micros: counters.train_micros,
            disk_bytes: job.disk(),
            thinned: job.thinned,
            best: best.map(|(trial, best)| BestView {
                trial,
                name: job.trials.get(to_usize(trial.0)).map(Trial::name).unwrap_or_default(),
                epoch: best.epoch,
                value: best.value,
                checkpoint: best.checkpoint,
                unverified: job.trial(trial).map_or(0, |trial| job.unverified_of(trial)),
            }),
            test: best
                .and_then(|(trial, best)| self.evaluation_of(job, &best.test_of(trial)))
                .map(EvaluationView::brief),
            waiting: self.job_waits(job).map(|reason| reason.to_string()),
            search_ended: job.search.over.clone(),
            // They take a look at all hops.
            doubts: Vec::new(),
            time_left: left.map(TimeLeft::from),
            deadline: self.deadline(job, left),
            note: job.note.clone(),
            owner: job.owner.map(|owner| self.owner(owner)),
        }
    }

    /// Results of refuted parties that nobody has confirmed.
    fn doubts(&self, job: &Job) -> Vec<DoubtView> {
        let doubts = self.state.doubts_of(job).into_iter();
        let view = |(host, taint): (HostId, Taint)| DoubtView {
            host,
            name: self.state.hosts.get(&host).map(|host| host.name.clone()).unwrap_or_default(),
            results: to_u64(self.state.suspect_hops_of_party(host, job).count()),
            trials: to_u64(taint.back.len() + taint.end.len()),
            lost: taint.lost_thousandths(),
        };
        doubts.map(view).collect()
    }

    /// The token that a job was submitted with, by number and name.
    fn owner(&self, by: By) -> JobOwner {
        let token = by.token();
        let issued = token.and_then(|token| self.state.issued.get(token));
        let name = issued.map(|issued| issued.label.clone()).unwrap_or_default();
        JobOwner { token, name }
    }

    fn trial(&self, job: &Job, trial: &Trial) -> TrialView {
        // The folds of a final model may have got better since.
        let of_folds = job.value_of_refit(trial);
        TrialView {
            trial: trial.id,
            name: trial.name(),
            state: match &trial.end {
                None => TrialState::Running,
                Some(TrialEnd::Finished) => TrialState::Finished,
                Some(TrialEnd::Cancelled) => TrialState::Cancelled,
                Some(TrialEnd::Failed(error)) => TrialState::Failed { error: error.clone() },
            },
            phase: Some(phase(trial)),
            arch: trial.context.config.model.name().into(),
            choices: trial.choices.clone(),
            origin: trial.origin,
            priority: job.priority_of(trial.id),
            epoch: trial.chain.epoch(),
            epochs: trial.epochs(),
            hops: trial.chain.hops(),
            version: trial.version,
            checkpoint: trial.checkpoint.filter(|_| !job.thinned),
            numeric_class: trial.class,
            refit: trial.refit,
            curve: trial.curve.iter().cloned().map(CurveView::from).collect(),
            stopped: trial.stopped_because(&job.spec.search),
            rung: rung(job, trial),
            best: trial.best.map(|best| BestView {
                trial: trial.id,
                name: trial.name(),
                epoch: best.epoch,
                value: of_folds.unwrap_or(best.value),
                checkpoint: best.checkpoint,
                unverified: job.unverified_of(trial),
            }),
            test: self.test_of(job, trial).map(EvaluationView::brief),
            unverified: job.unverified_of(trial),
            waiting: self.trial_waits(job, trial).map(|reason| reason.to_string()),
            residence: trial
                .residence
                .map(|of| ResidenceView { host: of.host, category: of.category }),
        }
    }
}

/// The rung that a trial is on.
fn rung(job: &Job, trial: &Trial) -> Option<Rung> {
    let (rule, epochs) = (job.spec.search.stopping?, job.spec.training.epochs);
    rule.rung(trial.id, trial.chain.epochs(), epochs)
}

/// How far a trial has got.
fn phase(trial: &Trial) -> TrialPhase {
    // A clone's chain begins after the epochs of the other trial.
    let has_begun = !trial.history.is_empty()
        || trial.waiting().next().is_some()
        || !trial.live_leases().is_empty();
    match &trial.end {
        Some(TrialEnd::Finished) if matches!(trial.stopped, Some(Stopped::Search { .. })) => {
            TrialPhase::Pruned
        }
        Some(TrialEnd::Finished) => TrialPhase::Finished,
        Some(TrialEnd::Failed(_)) if has_begun || !trial.lacks_time() => TrialPhase::Failed,
        Some(TrialEnd::Cancelled) if has_begun => TrialPhase::Cancelled,
        None if has_begun => TrialPhase::Running,
        Some(TrialEnd::Failed(_) | TrialEnd::Cancelled) | None => TrialPhase::NotStarted,
    }
}
