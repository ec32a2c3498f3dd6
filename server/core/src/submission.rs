//! Conditions for a submitted job, and the job that is made of it, off the core's thread where it has many trials.

use serde::{Deserialize, Serialize};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    column::check_columns,
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::JobId,
    manifest::{DataManifest, DataSplit, Labels, MAX_EVALUATION_SHARDS, Scaling},
    spec::{JobSpec, Loss, SearchSpec, TrainingConfig},
    text::{MAX_NAME_CHARS, is_plain_name},
    time::UnixMillis,
    unit::TrialContext,
};
use sojourn_state::{AtEnd, Job};
use sojourn_workgen::search::preview;

/// A job that was checked and whose trials were made, so that the core has little left to do. It is made off the core's thread
/// where a job may have many trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SubmittedJob", into = "SubmittedJob")]
pub struct PreparedSubmission {
    /// The job as it will be, but for its number and its time.
    pub(crate) job: Box<Job>,
    /// Trials that it begins with.
    pub(crate) trials: u32,
    /// The keys of the job as earlier versions knew it, before defaults were written down.
    pub(crate) earlier: [Digest; 2],
}

impl PreparedSubmission {
    /// Checks a job, and makes its trials.
    ///
    /// # Errors
    /// Why it can't be run.
    pub fn new(mut spec: Box<JobSpec>, data: Box<DataManifest>) -> Result<Self, ApiError> {
        let trials = check_submission(&spec, &data)?;
        // A job that was submitted before these defaults were written down is the same job.
        let first = job_key(&spec, &data)?;
        spec.placement.name_merging();
        let before = job_key(&spec, &data)?;
        spec.placement.name_verification();
        let key = job_key(&spec, &data)?;
        let at_end = if data.test.is_empty() { AtEnd::Nothing } else { AtEnd::Test };
        let job = Job::new(JobId(0), *spec, *data, key, at_end, UnixMillis(0))
            .map_err(|fault| ApiError::new(ErrorKind::Invalid, fault.to_string()))?;
        Ok(Self { job: Box::new(job), trials, earlier: [before, first] })
    }

    /// Trials that the job begins with.
    #[must_use]
    pub const fn trials(&self) -> u32 {
        self.trials
    }

    /// The job.
    #[must_use]
    pub fn spec(&self) -> &JobSpec {
        &self.job.spec
    }

    /// The job's data.
    #[must_use]
    pub fn data(&self) -> &DataManifest {
        &self.job.data
    }
}

/// A prepared job as it is written: it is prepared anew where it is read.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SubmittedJob {
    spec: Box<JobSpec>,
    data: Box<DataManifest>,
    earlier: [Digest; 2],
}

impl TryFrom<SubmittedJob> for PreparedSubmission {
    type Error = ApiError;

    fn try_from(SubmittedJob { spec, data, earlier }: SubmittedJob) -> Result<Self, ApiError> {
        Ok(Self { earlier, ..Self::new(spec, data)? })
    }
}

impl From<PreparedSubmission> for SubmittedJob {
    fn from(prepared: PreparedSubmission) -> Self {
        let PreparedSubmission { job, earlier, .. } = prepared;
        let Job { spec, data, .. } = *job;
        Self { spec: Box::new(spec), data: Box::new(data), earlier }
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
    spec.check_folds(data).map_err(invalid)?;
    if data.train.is_empty() || (data.valid.is_empty() && spec.search.folds.is_none()) {
        return Err(invalid("the job has no training or no validation shards".into()));
    }
    let shards = data.train.iter().chain(&data.valid).chain(&data.test);
    if shards.clone().any(|shard| shard.rows == 0) {
        return Err(invalid("a shard has no rows".into()));
    }
    let held_out = spec.fold(0).map(|fold| data.split_of(Some(fold), DataSplit::Valid).len());
    if data.valid.len().max(data.test.len()).max(held_out.unwrap_or(0))
        > MAX_EVALUATION_SHARDS as usize
    {
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
pub(crate) fn check_trial(
    spec: &JobSpec,
    data: &DataManifest,
    trial: &sojourn_workgen::Trial,
) -> Result<(), String> {
    let outputs = data.labels.outputs();
    sojourn_model::validate(&trial.config, &data.shape, outputs).map_err(|why| why.to_string())?;
    trial.config.check()?;
    check_batches(&trial.config.training, data)?;
    trial.config.check_columns(&data.columns, &data.shape)?;
    check_initial_weights(spec, data, trial)
}

/// Can the batches of each shard be counted?
fn check_batches(training: &TrainingConfig, data: &DataManifest) -> Result<(), String> {
    let most = data.train.iter().map(|shard| shard.rows).max().unwrap_or(0);
    if training.minibatches().fits(most) {
        return Ok(());
    }
    let TrainingConfig { batch_size, local_epochs, .. } = training;
    Err(format!(
        "`local_epochs = {local_epochs}` over a shard of {most} rows in batches of {batch_size} makes more batches than a hop can count: make more shards, larger batches or fewer passes"
    ))
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
    let context = TrialContext::of(spec, data, trial.config.clone(), None);
    let layout = CheckpointLayout::of(&context).and_then(|layout| layout.initial_weights());
    let expected = layout.map_err(|error| error.to_string())?.file_bytes();
    if weights.bytes == expected {
        return Ok(());
    }
    let actual = weights.bytes;
    Err(format!("`init` has {actual} bytes, the parameters of its model take {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Core, CoreConfig, Envelope, ReplyTo};
    use sojourn_protocol::{
        digest::BlobRef,
        jobfile,
        manifest::{Shard, Targets},
    };
    use std::sync::Arc;

    const JOB: &str = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
                       hidden = [4]\n[training]\nepochs = 1\noptimizer = { name = \"sgd\", lr = { choice = [0.1, 0.2] } }\n";

    /// Two shards of so many rows, and one to validate on.
    fn data(rows: u32) -> DataManifest {
        let shard = |n: u8| {
            let blob = BlobRef { sha256: Digest::of(&[n]), bytes: 100 };
            Shard { blob, rows }
        };
        DataManifest {
            columns: Vec::new(),
            shape: vec![4],
            features: ["a", "b", "c", "d"].map(String::from).to_vec(),
            labels: Labels::Classes(vec!["0".into(), "1".into()]),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train: vec![shard(0), shard(1)],
            valid: vec![shard(2)],
            test: Vec::new(),
        }
    }

    #[test]
    fn the_batches_of_every_trial_can_be_counted() {
        let check = |batch_size: &str| {
            let training = format!("batch_size = {batch_size}\nlocal_epochs = 1000\n");
            let spec = jobfile::parse(&format!("{JOB}{training}")).unwrap();
            check_submission(&spec, &data(5_000_000)).map_err(|error| error.message)
        };
        assert_eq!(check("2"), Ok(2));
        let message = "trial 0: `local_epochs = 1000` over a shard of 5000000 rows in batches of 1 makes more batches than a hop can count: make more shards, larger batches or fewer passes";
        assert_eq!(check("1"), Err(message.to_owned()));
        let of_choice = check("{ choice = [2, 1] }").unwrap_err();
        assert!(of_choice.starts_with("trial 2: `local_epochs = 1000`"), "{of_choice}");
    }

    /// So the core's step makes no trial, however many there are.
    #[test]
    fn the_trials_of_a_prepared_job_are_taken_in_as_they_are() {
        let data = data(64);
        let spec = Box::new(jobfile::parse(JOB).unwrap());
        let prepared = PreparedSubmission::new(spec, Box::new(data.clone())).unwrap();
        let made: Vec<_> =
            prepared.job.trials.iter().map(|trial| Arc::as_ptr(&trial.context)).collect();
        let mut core = Core::new(CoreConfig::default());
        let mut apply = |command| {
            core.apply(Envelope { at: UnixMillis(1), seed: 1, command }).unwrap();
        };
        for blob in data.blobs() {
            apply(Command::Published { to: ReplyTo(1), blob });
        }
        let (to, prepared) = (ReplyTo(2), Box::new(prepared));
        apply(Command::SubmitPrepared { to, prepared, again: false, nonce: None });
        let job = &core.state().jobs[&JobId(1)];
        let taken: Vec<_> = job.trials.iter().map(|trial| Arc::as_ptr(&trial.context)).collect();
        assert_eq!((taken, job.submitted_at), (made, UnixMillis(1)));
    }
}
