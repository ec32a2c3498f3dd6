//! Trials that a user or the user's program adds: of a combination, or as clones of others.

use super::suggest::tried;
use crate::{
    reply::{Refusal, Reply, conflict, invalid},
    submission::check_trial,
};
use sojourn_model::{CheckpointLayout, ModelError};
use sojourn_protocol::{
    api::{MAX_ADDED_TRIALS, NewTrial, SearchRequest},
    error::{ApiError, ErrorKind},
    ids::TrialId,
    spec::{JobSpec, SearchMethod},
    unit::TrialContext,
};
use sojourn_state::{AddedTrial, CloneOf, Job, Trial};
use sojourn_workgen::search::{changed, each_seed_and_fold, given};

/// The trials to add, and how many combinations among them count as suggested by the user's program.
pub(super) fn added(
    job: &Job,
    spec: &JobSpec,
    request: &SearchRequest,
) -> Reply<(Vec<AddedTrial>, u32)> {
    let add = &request.add;
    if add.is_empty() {
        return Ok((Vec::new(), 0));
    }
    if add.len() > MAX_ADDED_TRIALS {
        return invalid(format!("{MAX_ADDED_TRIALS} trials at most are added at once"));
    }
    let (mut all, mut suggested) = (Vec::new(), 0u32);
    let mut tried = tried(job);
    let is_distinct = spec.search.combinations.is_distinct();
    for (n, new) in add.iter().enumerate() {
        let failed = |why: String| Refusal::new(ErrorKind::Invalid, format!("trial {n}: {why}"));
        let trials = match new.from {
            Some(from) => vec![clone_of(job, find(job, from)?, new)?],
            None => {
                let trial = given(spec, &new.values).map_err(|why| failed(why.to_string()))?;
                check_trial(spec, &job.data, &trial).map_err(failed)?;
                if is_distinct && tried.has(trial.model, &trial.config) {
                    return conflict(format!(
                        "trial {n}: job {} has a trial of this combination already, and `combinations = \"all\"` in its file would have it again",
                        job.id
                    ));
                }
                if is_distinct {
                    tried.add(&trial);
                }
                suggested += u32::from(spec.search.method.is_outside());
                let with = each_seed_and_fold(vec![trial], spec);
                let with = with.map_err(|why| failed(why.to_string()))?;
                with.into_iter().map(AddedTrial::new).collect()
            }
        };
        all.extend(trials);
    }
    let search = job.search_progress();
    // A request that sets `trials` reopens an ended search.
    if suggested > 0 && search.over.is_some() && request.trials.is_none() {
        return conflict(format!("the search of job {} has ended: no trial is added", job.id));
    }
    let wanted = request.trials.unwrap_or(search.wanted);
    if suggested > wanted.saturating_sub(search.suggested) {
        return conflict(format!(
            "the search of job {} is to try {wanted} combinations, and has tried {}",
            job.id, search.suggested
        ));
    }
    Ok((all, suggested))
}

/// A clone of a trial, with the values that are other.
fn clone_of(job: &Job, of: &Trial, new: &NewTrial) -> Reply<AddedTrial> {
    let (id, number) = (job.id, of.id);
    if job.spec.search.folds.is_some() {
        return conflict(format!(
            "trial {number} of job {id} is of one fold, and a clone of it couldn't be compared with configurations that have all folds: add a trial with its values, without `from`"
        ));
    }
    let Some(epochs) = job.clonable_after(number) else {
        return conflict(format!(
            "trial {number} of job {id} can't be cloned now: no checkpoint of the end of an epoch is there"
        ));
    };
    let trial = changed(&settings(of), &new.values);
    let trial = trial.or_else(|why| invalid(format!("a clone of trial {number}: {why}")))?;
    let cannot =
        |why: String| Refusal::new(ErrorKind::Invalid, format!("a clone of trial {number}: {why}"));
    check_trial(&job.spec, &job.data, &trial).map_err(cannot)?;
    if !has_layout_of(job, &trial, of).map_err(|why| cannot(why.to_string()))? {
        return Err(cannot(
            "its checkpoint has other tensors than a model with these values: only settings that change no shape can be other"
                .to_owned(),
        ));
    }
    let all = trial.config.training.epochs;
    if epochs >= all {
        return conflict(format!(
            "trial {number} of job {id} has trained all of its {all} epochs: extend it, and clone it then"
        ));
    }
    let from = Some(CloneOf { trial: number, epochs });
    // Where a program decides on each epoch, a clone waits after the next one as every trial does, unless the search has ended.
    let by_epochs = matches!(job.spec.search.method, SearchMethod::Epochs { .. })
        && job.is_running()
        && job.search.over.is_none();
    let allowed = if by_epochs { epochs.saturating_add(1) } else { all };
    Ok(AddedTrial { from, allowed: Some(allowed), ..AddedTrial::new(trial) })
}

/// Can a trial with these settings go on from the checkpoints of another: do they have the same tensors?
pub(super) fn has_layout_of(
    job: &Job,
    trial: &sojourn_workgen::Trial,
    of: &Trial,
) -> Result<bool, ModelError> {
    let context = TrialContext::of(&job.spec, &job.data, trial.config.clone(), None);
    let (of_it, of_other) = (CheckpointLayout::of(&context)?, CheckpointLayout::of(&of.context)?);
    Ok(of_it.layout() == of_other.layout())
}

/// The settings of a trial of a job.
pub(super) fn settings(of: &Trial) -> sojourn_workgen::Trial {
    sojourn_workgen::Trial {
        model: of.model,
        config: of.context.config.clone(),
        choices: of.choices.clone(),
        seed: of.seed,
        fold: of.fold.map(|fold| fold.number),
    }
}

/// A trial of a job.
pub(super) fn find(job: &Job, trial: TrialId) -> Result<&Trial, ApiError> {
    job.trial(trial).ok_or_else(|| {
        ApiError::new(ErrorKind::NotFound, format!("job {} has no trial {trial}", job.id))
    })
}
