//! Submission of a job, and what is checked before.

use super::JobHandler;
use crate::{
    event::Event,
    reply::{Refusal, Reply},
    state::{AtEnd, Job, JobEnd},
};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    api::{MAX_NONCE_CHARS, SubmitAnswer, Submitted},
    column::check_columns,
    digest::Digest,
    error::{ApiError, ErrorKind},
    manifest::{DataManifest, Labels, MAX_EVALUATION_SHARDS, Scaling},
    spec::{JobSpec, Loss, SearchSpec},
    text::{MAX_NAME_CHARS, is_plain_name},
    unit::TrialContext,
};
use sojourn_workgen::search::preview;

impl JobHandler<'_> {
    /// Submits a job whose blobs are published. The same job again is the one that is there, unless `again` is set or it
    /// failed. `nonce` names the call: repeated, it has no other effect.
    pub(crate) fn submit(
        &mut self,
        mut spec: Box<JobSpec>,
        data: Box<DataManifest>,
        again: bool,
        nonce: Option<String>,
    ) -> Reply<SubmitAnswer> {
        let trials = check_submission(&spec, &data)?;
        // A job that was submitted before the default way of merging was written down is the same job.
        let before = job_key(&spec, &data)?;
        spec.placement.name_merging();
        let key = job_key(&spec, &data)?;
        let nonce = nonce.map(|nonce| nonce.chars().take(MAX_NONCE_CHARS).collect::<String>());
        let state = self.state();
        let same_call = nonce.as_ref().and_then(|nonce| state.job_nonces.get(nonce));
        let mut known = [key, before].into_iter().filter_map(|key| state.job_keys.get(&key));
        let existing = known.find_map(|job| state.jobs.get(job).filter(|job| is_of_use(job)));
        let existing = existing.filter(|_| !again).map(|job| job.id);
        if let Some(job) = same_call.copied().or(existing) {
            return Ok(SubmitAnswer { job, trials, submitted: Submitted::Existing });
        }
        let mut blobs = data.blobs().chain(spec.blobs());
        if let Some(missing) = blobs.find(|blob| !state.blobs.is_published(blob)) {
            let message = format!("blob {} of the job isn't here: upload it first", missing.sha256);
            return Err(Refusal::new(ErrorKind::Conflict, message));
        }
        drop(blobs);
        let job = state.next_job();
        let at_end = if data.test.is_empty() { AtEnd::Nothing } else { AtEnd::Test };
        self.record(Event::JobSubmitted { job, spec, data, key, nonce, at_end })?;
        let ledger = &mut self.results.ledger;
        let jobs = &ledger.state.jobs;
        ledger.planner.keep_shares(|job| jobs.get(&job).is_some_and(Job::is_running));
        Ok(SubmitAnswer { job, trials, submitted: Submitted::New })
    }
}

/// The digest by which a job is known again.
fn job_key(spec: &JobSpec, data: &DataManifest) -> Result<Digest, ApiError> {
    let bytes = serde_json::to_vec(&(spec, data))
        .map_err(|_| ApiError::new(ErrorKind::Invalid, "the job can't be written as JSON"))?;
    Ok(Digest::of(&bytes))
}

/// The number of trials that a job begins with, where it can be run.
///
/// # Errors
/// Why it can't.
pub fn check_submission(spec: &JobSpec, data: &DataManifest) -> Result<u32, ApiError> {
    let invalid = |message: String| ApiError::new(ErrorKind::Invalid, message);
    if !is_plain_name(&spec.name, MAX_NAME_CHARS) {
        return Err(invalid(format!(
            "the job's name isn't one line of at most {MAX_NAME_CHARS} characters without invisible ones, and without spaces at its ends"
        )));
    }
    if data.train.is_empty() || data.valid.is_empty() {
        return Err(invalid("the job has no training or no validation shards".into()));
    }
    let shards = data.train.iter().chain(&data.valid).chain(&data.test);
    if shards.clone().any(|shard| shard.rows == 0) {
        return Err(invalid("a shard has no rows".into()));
    }
    if data.valid.len().max(data.test.len()) > MAX_EVALUATION_SHARDS as usize {
        return Err(invalid(format!(
            "more than {MAX_EVALUATION_SHARDS} validation or test shards"
        )));
    }
    spec.placement.check().map_err(invalid)?;
    spec.check_seeds().map_err(invalid)?;
    match (&data.labels, spec.training.loss) {
        (Labels::Classes(_), Loss::CrossEntropy)
        | (Labels::Number, Loss::Mse)
        | (Labels::None, Loss::Own) => {}
        (Labels::None, _) | (_, Loss::Own) => {
            return Err(invalid("columns by name go with the loss `own`, and it with them".into()));
        }
        (Labels::Classes(_), Loss::Mse) => {
            return Err(invalid("loss `mse` needs labels that are numbers".into()));
        }
        (Labels::Number, Loss::CrossEntropy) => {
            return Err(invalid("loss `cross-entropy` needs labels that are classes".into()));
        }
    }
    spec.training.class_weights.check(&data.labels).map_err(invalid)?;
    data.targets.check(&data.labels).map_err(invalid)?;
    check_graphs(spec, data).map_err(invalid)?;
    check_columns_of(data).map_err(invalid)?;
    spec.search.check(&data.labels).map_err(invalid)?;
    let stopping = spec.search.stopping.map_or(Ok(()), |rule| rule.check(spec.training.epochs));
    stopping.map_err(invalid)?;
    spec.search.method.check(spec.training.epochs).map_err(invalid)?;
    if let Some(rule) = &spec.search.stopping {
        SearchSpec::check_combination(&spec.search.method, rule)
            .map_err(|why| invalid(format!("`search.stopping` {why}")))?;
    }
    for (n, init) in spec.init.iter().enumerate() {
        let model = usize::try_from(init.model).ok().and_then(|at| spec.models.get(at));
        if model.is_none() {
            return Err(invalid(format!("`init` names model {}, which isn't there", init.model)));
        }
        if spec.init.iter().take(n).any(|earlier| earlier.model == init.model) {
            return Err(invalid(format!("`init` names model {} twice", init.model)));
        }
    }
    let known = preview(spec).map_err(|error| invalid(error.to_string()))?.trials;
    for (n, trial) in known.iter().enumerate() {
        check_trial(spec, data, trial).map_err(|why| invalid(format!("trial {n}: {why}")))?;
    }
    let begins = sojourn_workgen::trials(spec).map_err(|error| invalid(error.to_string()))?;
    u32::try_from(begins.len()).map_err(|_| invalid("too many trials".into()))
}

/// Can this trial be trained on the data?
pub(super) fn check_trial(
    spec: &JobSpec,
    data: &DataManifest,
    trial: &sojourn_workgen::Trial,
) -> Result<(), String> {
    let outputs = data.labels.outputs();
    sojourn_model::validate(&trial.config, &data.shape, outputs).map_err(|why| why.to_string())?;
    trial.config.check()?;
    trial.config.check_columns(&data.columns, &data.shape)?;
    check_initial_weights(spec, data, trial)
}

/// Do the columns of data that has them by name agree with each other and with the rest?
fn check_columns_of(data: &DataManifest) -> Result<(), String> {
    check_columns(&data.columns)?;
    let has_columns = !data.columns.is_empty();
    if has_columns != (data.labels == Labels::None) {
        return Err("data without labels has columns by name, and only that".into());
    }
    let is_plain = data.shape.is_empty() && data.scaling == Scaling::None;
    if has_columns && !is_plain {
        return Err("columns by name have no shape of a row, and aren't scaled".into());
    }
    Ok(())
}

/// Can users' own models be trained on this data, and compared by the search's metric?
fn check_graphs(spec: &JobSpec, data: &DataManifest) -> Result<(), String> {
    if !spec.has_graphs() {
        return Ok(());
    }
    if !data.targets.is_plain() {
        return Err("labels can't be scaled or weighted for a graph, whose loss is its own".into());
    }
    if !spec.training.label_smoothing.is_zero() {
        return Err("labels can't be smoothed for a graph, whose loss is its own".into());
    }
    spec.check_metric_of_graphs()
}

/// Has the blob that the trial starts from the size of its model's parameters? What is in it the
/// trainer sees.
fn check_initial_weights(
    spec: &JobSpec,
    data: &DataManifest,
    trial: &sojourn_workgen::Trial,
) -> Result<(), String> {
    let Some(weights) = spec.initial_weights(trial.model) else { return Ok(()) };
    let context = TrialContext::of(spec, data, trial.config.clone());
    let layout = CheckpointLayout::of(&context).and_then(|layout| layout.initial_weights());
    let expected = layout.map_err(|error| error.to_string())?.file_bytes();
    if weights.bytes == expected {
        return Ok(());
    }
    let actual = weights.bytes;
    Err(format!("`init` has {actual} bytes, the parameters of its model take {expected}"))
}

/// A job that failed or was cancelled doesn't stand in the way of the same job again.
fn is_of_use(job: &Job) -> bool {
    !matches!(job.end, Some((JobEnd::Failed | JobEnd::Cancelled, _)))
}
