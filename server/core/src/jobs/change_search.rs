//! Changes of a job's search by its user or the user's program: trials are added, stopped or continued, or the search space is
//! replaced.

use super::{
    JobHandler,
    added_trials::{added, find},
    control::{to_extend, wanted_by_extension, was_cancelled},
    retried_trials::{begins_anew, retried},
    suggest::{nothing_more, tried},
};
use crate::{
    quotas::Wanted,
    reply::{Reply, conflict, invalid},
    submission::check_trial,
};
use sojourn_protocol::{
    api::{
        ExtendRequest, GoOn, MAX_NONCE_CHARS, MAX_TRIAL_PRIORITY, MAX_WHY_CHARS, SearchAnswer,
        SearchRequest, Space, TrialPriority,
    },
    ids::{JobId, TrialId},
    quantity::{SaturatingFrom as _, to_usize},
    space,
    spec::{JobSpec, MAX_EPOCHS, ModelSpace, SearchMethod, TrainingSpace},
    text::is_plain_line,
};
use sojourn_state::{AddedTrial, By, Event, Job, JobEnd, State};
use sojourn_workgen::search::{MAX_TRIALS, SearchError, further};
use std::collections::{BTreeMap, BTreeSet};

/// Combinations of a changed space that are looked at before it is taken.
const TRIED_OF_SPACE: u32 = 16;

impl JobHandler<'_> {
    /// Changes a job's search, as its user asks: all that is asked for, or nothing.
    pub(crate) fn change_search(
        &mut self,
        job: JobId,
        request: SearchRequest,
        by: By,
    ) -> Reply<SearchAnswer> {
        let nonce: Option<String> =
            request.nonce.as_ref().map(|nonce| nonce.chars().take(MAX_NONCE_CHARS).collect());
        let known = self.state().find_job(job)?;
        if let Some(added) = nonce.as_deref().and_then(|nonce| known.added_by(nonce)) {
            return Ok(SearchAnswer { job, added });
        }
        let change = Change::of(self.state(), known, &request)?;
        let why = request.why.clone();
        let said = |instead: &str| why.clone().unwrap_or_else(|| instead.to_owned());
        let by_user = Some(by);
        let had_ended = !known.is_running();
        let has_rule = known.spec.search.stopping.is_some();
        let first = u32::saturating_from(known.trials.len());
        let was_open = known.search.is_open();
        let Change { added: trials, suggested, stopped, priorities, continued, extended, retried } =
            change;
        let extension = wanted_by_extension(known, extended.keys().copied());
        let wanted = Wanted {
            jobs: extension
                .jobs
                .max(u32::from(had_ended && !(trials.is_empty() && retried.is_empty()))),
            trials: extension
                .trials
                .saturating_add(u32::saturating_from(trials.len() + retried.len())),
            ..extension
        };
        self.results.ledger.quotas().admit(by_user, wanted)?;
        if let Some(Space { models, training }) = request.space.map(|space| *space) {
            let (training, why) = (Box::new(training), Some(said("by hand")));
            let changed = changed_space_of(self.state().find_job(job)?, &models, &training);
            self.record(Event::SpaceChanged { job, models, training, changed, why, by })?;
        }
        if let Some(trials) = request.trials {
            self.record(Event::SearchExtended { job, trials, by })?;
        }
        // Trials are added before any is stopped: a pending evaluation may be all that keeps the checkpoint from which a clone
        // starts.
        let count = u32::saturating_from(trials.len());
        if count > 0 || nonce.is_some() {
            let why = said("by hand");
            self.record(Event::TrialsAdded { job, trials, suggested, why, nonce, by: by_user })?;
            self.look_at_added(job, to_usize(first));
        }
        for trial in retried {
            self.record(Event::TrialRetried { job, trial, why: said("by hand"), by })?;
        }
        for trial in stopped {
            let in_flight = self.state().in_flight(job, trial);
            let why = said("by hand");
            self.record(Event::TrialStopped { job, trial, why, by: by_user })?;
            self.results.abandon(in_flight)?;
        }
        for (trial, priority) in priorities {
            self.record(Event::TrialPlaced { job, trial, priority, by })?;
        }
        for (trial, epochs) in continued {
            // The stopping rule has no rung after the job's last epoch, so a trial that goes on up to there may train all of its
            // own epochs.
            let epochs = if has_rule { self.epochs_of(job, trial, epochs) } else { epochs };
            let why = said("by hand");
            self.record(Event::TrialContinued { job, trial, epochs, why, by: by_user })?;
        }
        for (trial, epochs) in extended {
            self.extend(job, up_to(epochs, trial), by_user)?;
        }
        // With fewer combinations than there were to be, nothing may be left of the search.
        let is_over = |job: &Job| was_open && job.is_running() && job.search_ended();
        if request.end || self.state().jobs.get(&job).is_some_and(is_over) {
            self.record(Event::SearchEnded { job, why: said("by hand"), by: by_user })?;
        }
        self.results.ledger.planner.merge_modes().invalidate();
        if had_ended && self.state().jobs.get(&job).is_some_and(Job::is_running) {
            self.enter_fair_share(job);
        }
        self.results.ledger.planner.outdate_plan(job);
        Ok(SearchAnswer { job, added: (first..first.saturating_add(count)).map(TrialId).collect() })
    }
}

/// The changes that a request comes to: each trial once, whatever the request says twice.
struct Change {
    added: Vec<AddedTrial>,
    /// Number of combinations in `added` that count as suggested by the user's program.
    suggested: u32,
    stopped: BTreeSet<TrialId>,
    priorities: BTreeMap<TrialId, i32>,
    /// Trials that the search holds back, with the epochs up to which they go on.
    continued: BTreeMap<TrialId, u32>,
    /// Trials that have ended, or are to train for longer than they were to.
    extended: BTreeMap<TrialId, u32>,
    /// Trials that have failed, and begin anew.
    retried: BTreeSet<TrialId>,
}

/// A trial is to train so many epochs in all.
fn up_to(epochs: u32, trial: TrialId) -> ExtendRequest {
    ExtendRequest { epochs, trial: Some(trial), reopen: false }
}

impl Change {
    /// Checks a request: nothing of it is done before all of it can be.
    fn of(state: &State, job: &Job, request: &SearchRequest) -> Reply<Self> {
        let id = job.id;
        job.check_whole()?;
        if matches!(job.end, Some((JobEnd::Cancelled, _))) {
            return conflict(was_cancelled(job));
        }
        if request.why.as_ref().is_some_and(|why| !is_plain_line(why, MAX_WHY_CHARS)) {
            return invalid(format!("`why` isn't one line of at most {MAX_WHY_CHARS} characters"));
        }
        for trial in &request.stop {
            if !find(job, *trial)?.is_running() {
                return conflict(format!("trial {trial} of job {id} has ended already"));
            }
        }
        if let Some(trials) = request.trials {
            check_trials(job, trials)?;
            let is_over = job.search.over.is_some() && trials > job.search.suggested;
            let nothing = Some(job).filter(|_| is_over && request.space.is_none());
            if let Some(why) = nothing.and_then(nothing_more) {
                return conflict(format!(
                    "the search of job {id} tries no more combinations: {why}"
                ));
            }
        }
        let mut spec = job.spec.clone();
        if let Some(space) = &request.space {
            spec = changed_space(job, space)?;
        }
        let stopped = request.stop.iter().copied().collect();
        let priorities = Self::priorities(job, request)?;
        let (continued, extended) = Self::go_on(job, request)?;
        let (mut trials, suggested) = added(job, &spec, request)?;
        let (failed, anew) = retried(state, job, request)?;
        trials.extend(anew);
        if !trials.is_empty() && job.trials.len().saturating_add(trials.len()) > MAX_TRIALS {
            return invalid(SearchError::TooMany.to_string());
        }
        // Trials that wait for a program end with the search.
        let by_epochs = matches!(job.spec.search.method, SearchMethod::Epochs { .. });
        let is_open =
            job.search.is_open() || (by_epochs && job.is_running() && job.search.over.is_none());
        if request.end && !is_open && request.trials.is_none() {
            return conflict(format!("the search of job {id} tries no more combinations anyway"));
        }
        Ok(Self {
            added: trials,
            suggested,
            stopped,
            priorities,
            continued,
            extended,
            retried: failed,
        })
    }

    fn priorities(job: &Job, request: &SearchRequest) -> Reply<BTreeMap<TrialId, i32>> {
        let mut priorities = BTreeMap::new();
        for TrialPriority { trial, priority } in &request.priorities {
            let goes_on = || request.go_on.iter().any(|of| of.trial == *trial);
            let is_retried = || begins_anew(request, *trial);
            if !find(job, *trial)?.is_running() && !goes_on() && !is_retried() {
                return conflict(format!("trial {trial} of job {} has ended already", job.id));
            }
            if !(-MAX_TRIAL_PRIORITY..=MAX_TRIAL_PRIORITY).contains(priority) {
                return invalid(format!(
                    "a priority of {priority}: -{MAX_TRIAL_PRIORITY} to {MAX_TRIAL_PRIORITY} is wanted"
                ));
            }
            match priorities.insert(*trial, *priority) {
                Some(other) if other != *priority => {
                    return invalid(format!(
                        "trial {trial} is given the priorities {other} and {priority}"
                    ));
                }
                Some(_) | None => {}
            }
        }
        Ok(priorities)
    }

    /// The trials that go on: those that are held back, and those that are extended.
    fn go_on(
        job: &Job,
        request: &SearchRequest,
    ) -> Reply<(BTreeMap<TrialId, u32>, BTreeMap<TrialId, u32>)> {
        let mut named = BTreeMap::new();
        for GoOn { trial, epochs } in &request.go_on {
            match named.insert(*trial, *epochs) {
                Some(other) if other != *epochs => {
                    return invalid(format!(
                        "trial {trial} is to go on up to {other} epochs and up to {epochs}"
                    ));
                }
                Some(_) | None => {}
            }
        }
        let (mut continued, mut extended) = (BTreeMap::new(), BTreeMap::new());
        for (id, epochs) in named {
            let trial = find(job, id)?;
            if epochs > MAX_EPOCHS {
                return invalid(format!("{epochs} epochs are too many: {MAX_EPOCHS} is the most"));
            }
            if request.stop.contains(&id) {
                return invalid(format!("trial {id} can't be stopped and go on at once"));
            }
            if begins_anew(request, id) {
                return invalid(format!("trial {id} can't begin anew and go on at once"));
            }
            let (allowed, all) = (trial.chain.epochs(), trial.epochs());
            if trial.is_running() && !trial.training_over && epochs <= all {
                if epochs <= allowed {
                    return conflict(format!(
                        "trial {id} of job {} may train {allowed} epochs already",
                        job.id
                    ));
                }
                continued.insert(id, epochs);
            } else {
                if to_extend(job, up_to(epochs, id))?.is_empty() {
                    return conflict(format!(
                        "trial {id} of job {} may train {all} epochs already",
                        job.id
                    ));
                }
                extended.insert(id, epochs);
            }
        }
        Ok((continued, extended))
    }
}

/// Can a search try so many combinations in all?
fn check_trials(job: &Job, trials: u32) -> Reply<()> {
    let (id, search) = (job.id, job.search_progress());
    if matches!(job.spec.search.method, SearchMethod::Grid) {
        return conflict(format!("job {id} is a grid search, which tries every combination"));
    }
    if matches!(job.spec.search.method, SearchMethod::Pbt(_)) {
        return conflict(format!("the population of job {id} stays as large as it began"));
    }
    let of_each = job.spec.trials_per_configuration();
    if to_usize(trials).saturating_mul(of_each) > MAX_TRIALS {
        return invalid(SearchError::TooMany.to_string());
    }
    if trials < search.suggested {
        return conflict(format!("job {id} has tried {} combinations already", search.suggested));
    }
    Ok(())
}

/// The dimensions of a job that are other in this space.
fn changed_space_of(job: &Job, models: &[ModelSpace], training: &TrainingSpace) -> Vec<String> {
    let before = space::as_json(&job.spec.models, &job.spec.training);
    space::changed(&before, &space::as_json(models, training))
}

/// The job with another space, if it can have that.
fn changed_space(job: &Job, space: &Space) -> Reply<JobSpec> {
    let method = job.spec.search.method;
    if matches!(method, SearchMethod::Grid | SearchMethod::Pbt(_)) {
        return conflict(format!(
            "job {} searches by `{}`: nothing more is taken from its space",
            job.id,
            method.name()
        ));
    }
    let (was, now) = (&job.spec, space);
    let is_kind = |(was, now): (&ModelSpace, &ModelSpace)| match (was, now) {
        (ModelSpace::Graph(was), ModelSpace::Graph(now)) => was == now,
        (was, now) => std::mem::discriminant(was) == std::mem::discriminant(now),
    };
    if was.models.len() != now.models.len() || !was.models.iter().zip(&now.models).all(is_kind) {
        return invalid(
            "another space has the same model tables; a user's own model stays as it is",
        );
    }
    let (before, after) = (&was.training, &now.training);
    if before.epochs != after.epochs || before.loss != after.loss {
        return invalid("epochs and loss aren't searched, and stay as they are");
    }
    let mut spec = job.spec.clone();
    (spec.models, spec.training) = (space.models.clone(), space.training.clone());
    let from = job.search_progress().suggested;
    let looked_at = from..from.saturating_add(TRIED_OF_SPACE);
    let next = further(&spec, looked_at, &tried(job));
    for trial in next.or_else(|why| invalid(why.to_string()))? {
        let check = check_trial(&spec, &job.data, &trial);
        check.or_else(|why| invalid(format!("a trial of that space: {why}")))?;
    }
    Ok(spec)
}
