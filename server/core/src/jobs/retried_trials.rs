//! Failed trials that are run again: with the settings that they have, or as new trials with others.

use super::added_trials::{find, settings};
use crate::{
    reply::{Refusal, Reply, conflict, invalid},
    submission::check_trial,
};
use sojourn_protocol::{
    api::{MAX_ADDED_TRIALS, Retry, SearchRequest},
    error::ErrorKind,
    ids::TrialId,
    spec::{Architecture, Choices, SearchMethod},
};
use sojourn_state::{AddedTrial, Job, State, Trial, TrialEnd};
use sojourn_workgen::search::changed;
use std::collections::BTreeSet;

/// The failed trials that begin anew, and those that are added with other settings than failed ones.
pub(super) fn retried(
    state: &State,
    job: &Job,
    request: &SearchRequest,
) -> Reply<(BTreeSet<TrialId>, Vec<AddedTrial>)> {
    if request.retry.len() > MAX_ADDED_TRIALS {
        return invalid(format!("{MAX_ADDED_TRIALS} trials at most are run again at once"));
    }
    let (mut retried, mut added) = (BTreeSet::new(), Vec::new());
    for Retry { trial: id, values } in &request.retry {
        let trial = find(job, *id)?;
        if !matches!(trial.end, Some(TrialEnd::Failed(_))) {
            return conflict(format!(
                "trial {id} of job {} hasn't failed: only a failed trial is run again",
                job.id
            ));
        }
        if matches!(job.spec.search.method, SearchMethod::Pbt(_)) {
            return conflict(format!(
                "trial {id} of job {} is of a population, in which another takes its place",
                job.id
            ));
        }
        if values.is_empty() {
            check_anew(state, job, trial)?;
            retried.insert(*id);
        } else {
            added.push(with_other_settings(job, trial, values)?);
        }
    }
    Ok((retried, added))
}

/// Is a trial to begin anew, with the settings that it has?
pub(super) fn begins_anew(request: &SearchRequest, trial: TrialId) -> bool {
    request.retry.iter().any(|of| of.trial == trial && of.values.is_empty())
}

/// Can a failed trial begin anew, with nothing lost that its user may still want?
fn check_anew(state: &State, job: &Job, trial: &Trial) -> Reply<()> {
    let (job_id, id) = (job.id, trial.id);
    if trial.lacks_time() {
        let epochs = trial.epochs();
        return conflict(format!(
            "trial {id} of job {job_id} ended for want of time: `sojourn extend {job_id} --trial {id} --epochs {epochs}` goes on with what it has trained"
        ));
    }
    if job.best().is_some_and(|(best, _)| best == id) {
        let batch_size = trial.context.config.training.batch_size;
        return conflict(format!(
            "trial {id} of job {job_id} has the job's best model, which would be lost: `sojourn trials {job_id} --retry {id} --set batch_size={batch_size}` runs a new trial with the same settings, and leaves it as it is"
        ));
    }
    if let Some(origin) = trial.origin.filter(|_| !state.has_sound_origin(job, trial)) {
        let from = origin.trial;
        return conflict(format!(
            "trial {id} of job {job_id} went on from a state of trial {from} that was taken back, or is in doubt: `sojourn trials {job_id} --clone {from}` adds a clone of its state of now"
        ));
    }
    Ok(())
}

/// A new trial with the settings of a failed one but for some.
fn with_other_settings(job: &Job, of: &Trial, values: &Choices) -> Reply<AddedTrial> {
    let number = of.id;
    if job.spec.search.folds.is_some() {
        return conflict(format!(
            "trial {number} of job {} is of one fold: with other settings it couldn't be compared with configurations that have all folds; run it again as it is, or add a trial with these settings",
            job.id
        ));
    }
    let cannot = |why: String| {
        let message = format!("trial {number} with other settings: {why}");
        Refusal::new(ErrorKind::Invalid, message)
    };
    let trial = changed(&settings(of), values).map_err(|why| cannot(why.to_string()))?;
    let is_graph = matches!(trial.config.model, Architecture::Graph(_));
    if is_graph && trial.config.model != of.context.config.model {
        return Err(cannot("a user's own model stays as it was exported".to_owned()));
    }
    check_trial(&job.spec, &job.data, &trial).map_err(cannot)?;
    Ok(AddedTrial::new(trial))
}
