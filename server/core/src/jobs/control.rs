//! Job control: pause, resume, extend, cancel.

use super::JobHandler;
use crate::{
    quotas::Wanted,
    reply::{Reply, conflict},
};
use sojourn_protocol::{
    api::ExtendRequest,
    error::{ApiError, ErrorKind},
    ids::{JobId, LeaseId, TrialId},
    quantity::SaturatingFrom as _,
    spec::{MAX_EPOCHS, SearchMethod},
};
use sojourn_state::{
    By, Event, ExtraEvaluation, InFlight, Job, JobEnd, Stopped, Trial, TrialEnd, running_in_flight,
};

impl JobHandler<'_> {
    /// Pauses a job. `now`: its running hops end after their current batch.
    pub(crate) fn pause(&mut self, job: JobId, now: bool) -> Reply<()> {
        let known = self.state().find_running_job(job, "pause")?;
        let of_trials = known.trials.iter().flat_map(Trial::live_leases);
        let of_extras = known.extras.iter().flat_map(|extra| extra.live.iter().copied());
        let live: Vec<LeaseId> = of_trials.chain(of_extras).collect();
        if known.paused_at.is_none() {
            self.record(Event::JobPaused { job })?;
            self.results.ledger.planner.merge_modes().invalidate();
        }
        for lease in live.into_iter().filter(|_| now) {
            self.results.leases().stop(lease)?;
        }
        Ok(())
    }

    /// Resumes a paused job.
    pub(crate) fn resume(&mut self, job: JobId) -> Reply<()> {
        let known = self.state().find_running_job(job, "resume")?;
        if known.paused_at.is_some() {
            let live = known.trials.iter().flat_map(Trial::live_leases).collect();
            self.results.leases().cancel_stops(live);
            self.record(Event::JobResumed { job })?;
            self.results.ledger.planner.merge_modes().invalidate();
            self.enter_fair_share(job);
        }
        Ok(())
    }

    /// [`JobHandler::extend`] for a user, as far as the quotas of the user's token allow it.
    pub(crate) fn extend_on_behalf(
        &mut self,
        job: JobId,
        request: ExtendRequest,
        by: By,
    ) -> Reply<()> {
        let known = self.state().find_job(job)?;
        known.check_whole()?;
        let trials = to_extend(known, request)?;
        let wanted = wanted_by_extension(known, trials.into_iter());
        self.results.ledger.quotas().admit(Some(by), wanted)?;
        self.extend(job, request, Some(by))
    }

    /// Has a trial, or every trial that can, train for so many epochs in all.
    pub(crate) fn extend(
        &mut self,
        job: JobId,
        request: ExtendRequest,
        by: Option<By>,
    ) -> Reply<()> {
        let known = self.state().find_job(job)?;
        known.check_whole()?;
        let trials = to_extend(known, request)?;
        if !trials.is_empty() {
            // Of very many trials few have results that wait.
            let has_results =
                |id: &&TrialId| known.trial(**id).is_some_and(|of| of.waiting().next().is_some());
            let with_results: Vec<TrialId> = trials.iter().filter(has_results).copied().collect();
            // Where nobody holds trials back, one is extended as all are.
            let search = &known.spec.search;
            let holds_back = search.stopping.is_some()
                || matches!(search.method, SearchMethod::Epochs { .. })
                || known.search.over_by_time;
            let (named, epochs) = (request.trial.is_some() && holds_back, request.epochs);
            let was_cancelled = matches!(known.end, Some((JobEnd::Cancelled, _)));
            self.record(Event::JobExtended { job, trials, epochs, named, by })?;
            if was_cancelled {
                self.results.ledger.planner.merge_modes().invalidate();
            }
            for trial in with_results {
                self.results.drop_verifications(job, trial)?;
            }
            self.enter_fair_share(job);
        }
        Ok(())
    }

    /// Ends a job, and everything in flight of it.
    pub(crate) fn cancel(&mut self, job: JobId) -> Reply<()> {
        let known = self.state().find_job(job)?;
        if known.is_running() || !known.extras.is_empty() {
            let in_flight = running_in_flight(known);
            let of_extras: Vec<InFlight> =
                known.extras.iter().map(ExtraEvaluation::in_flight).collect();
            self.record(Event::JobCancelled { job })?;
            for of_unit in of_extras.into_iter().chain(in_flight) {
                self.results.abandon(of_unit)?;
            }
        } else if !matches!(known.end, Some((JobEnd::Cancelled, _))) {
            let message = format!("job {job} has ended: there is nothing to cancel");
            return conflict(message);
        }
        Ok(())
    }
}

/// The quotas that these trials of a job take when they go on.
pub(super) fn wanted_by_extension(job: &Job, trials: impl Iterator<Item = TrialId>) -> Wanted {
    let has_ended = |id: &TrialId| !job.trial(*id).is_some_and(Trial::trains);
    let ended = u32::saturating_from(trials.filter(has_ended).count());
    Wanted { jobs: u32::from(!job.is_running() && ended > 0), trials: ended, bytes: 0 }
}

/// Did a trial end before it had trained all that it was to, for want of time or with its job, and may it go on?
fn was_cut(trial: &Trial, reopen: bool) -> bool {
    trial.lacks_time() || (reopen && trial.end == Some(TrialEnd::Cancelled))
}

/// Why nothing of a cancelled job goes on.
pub(super) fn was_cancelled(job: &Job) -> String {
    let (id, epochs) = (job.id, job.spec.training.epochs);
    format!("job {id} was cancelled: `sojourn extend {id} --epochs {epochs} --reopen` has it go on")
}

/// The trials that are extended; none where all train for so long already.
pub(super) fn to_extend(
    job: &Job,
    ExtendRequest { epochs, trial, reopen }: ExtendRequest,
) -> Result<Vec<TrialId>, ApiError> {
    if epochs > MAX_EPOCHS {
        let message = format!("{epochs} epochs are too many: {MAX_EPOCHS} is the most");
        return Err(ApiError::new(ErrorKind::Invalid, message));
    }
    let conflict = |message: String| Err(ApiError::new(ErrorKind::Conflict, message));
    let id = job.id;
    let is_cancelled = |of: &Trial| of.end == Some(TrialEnd::Cancelled);
    if matches!(job.end, Some((JobEnd::Cancelled, _))) {
        if !reopen {
            return conflict(was_cancelled(job));
        }
        if !job.trials.iter().any(is_cancelled) {
            return conflict(format!(
                "all trials of job {id} had ended when it was cancelled: none can go on"
            ));
        }
    }
    let meant: &[Trial] = match trial {
        None => &job.trials,
        Some(trial) => {
            let known = job.trial(trial).ok_or_else(|| {
                ApiError::new(ErrorKind::NotFound, format!("job {id} has no trial {trial}"))
            })?;
            if known.refit.is_some() && !was_cut(known, reopen) {
                return conflict(format!(
                    "trial {trial} of job {id} has as many epochs as the folds of its configuration had at their best: extend the job, and its best configuration is trained anew"
                ));
            }
            std::slice::from_ref(known)
        }
    };
    // One that has reached its target would end again after its next epoch. One that the search has stopped, or holds back,
    // goes on where it is named.
    let is_stopped = |of: &Trial| matches!(of.stopped, Some(Stopped::Search { .. }));
    let is_back = |of: &Trial| of.is_running() && of.chain.epochs() < of.epochs();
    let revives = |of: &Trial| trial.is_some() && (is_stopped(of) || is_back(of));
    let can = |trial: &Trial| match trial.end {
        None | Some(TrialEnd::Finished) => {
            trial.stopped.is_none() || trial.lacks_time() || revives(trial)
        }
        Some(TrialEnd::Failed(_)) => trial.lacks_time(),
        Some(TrialEnd::Cancelled) => reopen,
    };
    // All that is asked of trials, in one look at each: of very many it misses the cache.
    let (mut most, mut least, mut shorter) = (None, u32::MAX, Vec::new());
    for trial in meant.iter().filter(|trial| trial.refit.is_some() || can(trial)) {
        if trial.refit.is_some() {
            // The length of such a trial is that of its folds.
            shorter.extend(was_cut(trial, reopen).then_some(trial.id));
            continue;
        }
        let trained = trial.epochs();
        most = most.max(Some(trained));
        least = least.min(trained);
        // One that ended for want of time, or was stopped or cancelled, goes on to the epochs that it was to have.
        let goes_on = |of: &Trial| of.lacks_time() || revives(of) || is_cancelled(of);
        if trained < epochs || (trained == epochs && goes_on(trial)) {
            shorter.push(trial.id);
        }
    }
    let Some(most) = most else {
        if !shorter.is_empty() {
            return Ok(shorter);
        }
        let search = &job.spec.search;
        let reached = meant.iter().find_map(|trial| trial.stopped_because(search));
        if trial.is_none() && meant.iter().any(is_stopped) {
            return conflict(format!(
                "the search of job {id} has stopped its trials: `--trial N` lets one of them go on"
            ));
        }
        if meant.iter().any(is_cancelled) {
            return conflict(match trial {
                Some(trial) => {
                    format!("trial {trial} of job {id} was cancelled: `--reopen` has it go on")
                }
                None => format!("trials of job {id} were cancelled: `--reopen` has them go on"),
            });
        }
        return conflict(match (trial, reached) {
            (Some(trial), Some(why)) => format!("trial {trial} of job {id} {why}: that is its end"),
            (Some(trial), None) => format!(
                "trial {trial} of job {id} has failed: it can't go on, but `sojourn trials {id} --retry {trial}` runs it again"
            ),
            (None, Some(_)) => {
                format!("all trials of job {id} have failed or reached the target: none goes on")
            }
            (None, None) => format!("all trials of job {id} have failed: none can go on"),
        });
    };
    if least > epochs {
        let what = match trial {
            Some(trial) => format!("trial {trial} of job {id}"),
            None => format!("job {id}"),
        };
        let message = format!("{what} trains for {most} epochs already: {epochs} in all are fewer");
        return Err(ApiError::new(ErrorKind::Invalid, message));
    }
    Ok(shorter)
}
