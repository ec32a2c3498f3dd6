//! What a user does to a job's course: pauses it, resumes it, has it train for longer.

use crate::{
    command::ReplyTo,
    core::Core,
    effect::Answer,
    event::{Event, LeaseEnd, UnitKey},
    soft::Stop,
    state::{Job, JobEnd, Trial, TrialEnd},
};
use sojourn_protocol::{
    api::{Held, HeldState},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, LeaseId, TrialId},
    spec::MOST_EPOCHS,
    time::UnixMillis,
};

impl Core {
    pub(crate) fn pause(&mut self, to: ReplyTo, job: JobId, now: bool) {
        let known = match self.job_under_way(job, "pause") {
            Ok(known) => known,
            Err(error) => return self.reply(to, Err(error)),
        };
        let of_trials = known.trials.iter().flat_map(Trial::live_leases);
        let of_extras = known.extras.iter().flat_map(|extra| extra.live.iter().copied());
        let held: Vec<LeaseId> = of_trials.chain(of_extras).collect();
        if known.paused_at.is_none() {
            self.emit(Event::JobPaused { job });
        }
        for lease in held.into_iter().filter(|_| now) {
            self.stop(lease);
        }
        self.reply_job(to, job);
    }

    /// Ends a unit before its time: a hop in a slot comes back as far as it is, anything else is taken back.
    fn stop(&mut self, lease: LeaseId) {
        let Some(known) = self.state.leases.get(&lease) else { return };
        let is_hop = matches!(known.unit, UnitKey::Train { .. });
        match self.soft.terms.get_mut(&lease) {
            Some(term) if is_hop && term.started => {
                if !term.finished && term.stop == Stop::No {
                    term.stop = Stop::Wanted;
                    self.soft.notify.insert(known.host);
                }
            }
            _ => self.end_lease(lease, LeaseEnd::Revoked),
        }
    }

    /// Hops that a host runs and is to end early.
    pub(crate) fn to_stop(&self, host: HostId) -> Vec<LeaseId> {
        let live = self.state.hosts.get(&host).map(|host| &host.live);
        let stops = |lease: &&LeaseId| {
            let term = self.soft.terms.get(lease);
            term.is_some_and(|term| term.stop != Stop::No && !term.finished)
        };
        live.into_iter().flatten().filter(stops).copied().collect()
    }

    /// Those of them that the host hasn't been told of; it is now.
    pub(crate) fn tell_to_stop(&mut self, host: HostId) -> Vec<LeaseId> {
        let mut stop = self.to_stop(host);
        stop.retain(|lease| {
            let term = self.soft.terms.get_mut(lease).filter(|term| term.stop == Stop::Wanted);
            term.is_some_and(|term| {
                term.stop = Stop::Told;
                true
            })
        });
        stop
    }

    pub(crate) fn resume(&mut self, to: ReplyTo, job: JobId) {
        match self.job_under_way(job, "resume") {
            Ok(known) if known.paused_at.is_some() => {
                let live: Vec<_> = known.trials.iter().flat_map(Trial::live_leases).collect();
                for lease in live {
                    if let Some(term) = self.soft.terms.get_mut(&lease) {
                        // A host that was told ends it nevertheless, which harms nothing.
                        term.stop = Stop::No;
                    }
                }
                self.emit(Event::JobResumed { job });
                self.shares_of(job).enter(job);
                self.soft.work_changed = true;
            }
            Ok(_) => {}
            Err(error) => return self.reply(to, Err(error)),
        }
        self.reply_job(to, job);
    }

    pub(crate) fn extend(&mut self, to: ReplyTo, job: JobId, epochs: u32, trial: Option<TrialId>) {
        match self.job(job).and_then(|job| to_extend(job, epochs, trial, self.now)) {
            Ok(trials) if trials.is_empty() => {}
            Ok(trials) => {
                self.emit(Event::JobExtended { job, trials: trials.clone(), epochs });
                for trial in trials {
                    self.drop_checks(job, trial);
                }
                self.shares_of(job).enter(job);
                self.soft.work_changed = true;
            }
            Err(error) => return self.reply(to, Err(error)),
        }
        self.reply_job(to, job);
    }

    /// Those of a host's leases that wait there for their turn and whose job is paused.
    pub(crate) fn to_take_back(&self, host: HostId, holding: &[Held]) -> Vec<LeaseId> {
        let own = |id: LeaseId| self.state.leases.get(&id).is_some_and(|lease| lease.host == host);
        let waits = holding.iter().filter(|held| match held.state {
            HeldState::Waiting | HeldState::Fetching { .. } => {
                own(held.lease) && self.is_paused(held.lease)
            }
            HeldState::Running { .. }
            | HeldState::Awaiting { .. }
            | HeldState::Finished
            | HeldState::Sending { .. } => false,
        });
        waits.map(|held| held.lease).collect()
    }

    /// Is it a live lease of a paused job?
    pub(crate) fn is_paused(&self, lease: LeaseId) -> bool {
        let lease = self.state.leases.get(&lease);
        let job = lease.and_then(|lease| self.state.jobs.get(&lease.unit.job()));
        job.is_some_and(|job| job.paused_at.is_some())
    }

    pub(crate) fn job_under_way(&self, job: JobId, what: &str) -> Result<&Job, ApiError> {
        let known = self.job(job)?;
        let Some((end, _)) = known.end else { return Ok(known) };
        let ended = match end {
            JobEnd::Finished => "has finished",
            JobEnd::Failed => "has failed",
            JobEnd::Cancelled => "was cancelled",
        };
        let message = format!("job {job} {ended}: there is nothing to {what}");
        Err(ApiError::new(ErrorKind::Conflict, message))
    }

    pub(crate) fn reply_job(&mut self, to: ReplyTo, job: JobId) {
        let view = self.job(job).map(|job| Answer::JobSummary(Box::new(self.summary(job))));
        self.reply(to, view);
    }
}

/// The trials that are to train for longer; none where all that are meant do so already.
fn to_extend(
    job: &Job,
    epochs: u32,
    trial: Option<TrialId>,
    now: UnixMillis,
) -> Result<Vec<TrialId>, ApiError> {
    if epochs > MOST_EPOCHS {
        let message = format!("{epochs} epochs are too many: {MOST_EPOCHS} is the most");
        return Err(ApiError::new(ErrorKind::Invalid, message));
    }
    let conflict = |message: String| Err(ApiError::new(ErrorKind::Conflict, message));
    let id = job.id;
    if matches!(job.end, Some((JobEnd::Cancelled, _))) {
        return conflict(format!("job {id} was cancelled: submit it again"));
    }
    if let Some(length) = job.spec.search.wall_time.filter(|_| job.is_time_up(now)) {
        return conflict(format!(
            "job {id} has had its {length}: submit it again with a longer `search.wall_time`"
        ));
    }
    let meant: Vec<&Trial> = match trial {
        None => job.trials.iter().collect(),
        Some(trial) => {
            let known = job.trial(trial).ok_or_else(|| {
                ApiError::new(ErrorKind::NotFound, format!("job {id} has no trial {trial}"))
            })?;
            vec![known]
        }
    };
    // One that has reached its target would end again after its next epoch.
    let can = |trial: &&Trial| match trial.end {
        None | Some(TrialEnd::Finished) => trial.stopped.is_none(),
        Some(TrialEnd::Failed(_) | TrialEnd::Cancelled) => false,
    };
    let search = &job.spec.search;
    let reached = meant.iter().find_map(|trial| trial.stopped_because(search));
    let able: Vec<&Trial> = meant.into_iter().filter(can).collect();
    let Some(most) = able.iter().map(|trial| trial.epochs()).max() else {
        return conflict(match (trial, reached) {
            (Some(trial), Some(why)) => format!("trial {trial} of job {id} {why}: that is its end"),
            (Some(trial), None) => format!("trial {trial} of job {id} has failed: it can't go on"),
            (None, Some(_)) => {
                format!("all trials of job {id} have failed or reached the target: none goes on")
            }
            (None, None) => format!("all trials of job {id} have failed: none can go on"),
        });
    };
    if able.iter().all(|trial| trial.epochs() > epochs) {
        let what = match trial {
            Some(trial) => format!("trial {trial} of job {id}"),
            None => format!("job {id}"),
        };
        let message = format!("{what} trains for {most} epochs already: {epochs} in all are fewer");
        return Err(ApiError::new(ErrorKind::Invalid, message));
    }
    let shorter = able.iter().filter(|trial| trial.epochs() < epochs);
    Ok(shorter.map(|trial| trial.id).collect())
}
