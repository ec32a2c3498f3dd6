//! Enrolment, revocation, submission, cancellation.

use super::failing::cleanup_of;
use crate::{
    command::ReplyTo,
    core::Core,
    effect::Answer,
    event::{Event, LeaseEnd},
    state::{AtEnd, Job, JobEnd, Trial},
};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    api::{SubmitAnswer, Submitted},
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, LeaseId},
    manifest::{DataManifest, Labels, MOST_EVALUATION_SHARDS},
    spec::{JobSpec, Loss},
};

impl Core {
    pub(crate) fn enrol(&mut self, to: ReplyTo, name: String, token_sha256: Digest) {
        if self.state.tokens.contains_key(&token_sha256) {
            return self.refuse(to, ErrorKind::Conflict, "that token is taken");
        }
        let host = self.state.hosts.keys().next_back().copied().unwrap_or_default().next();
        let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
        self.emit(Event::HostEnrolled { host, name, token_sha256 });
        self.reply(to, Ok(Answer::Enrolled(host)));
    }

    pub(crate) fn revoke_host(&mut self, to: ReplyTo, host: HostId) {
        let Some(known) = self.state.hosts.get(&host) else {
            return self.refuse(to, ErrorKind::NotFound, format!("no host {host}"));
        };
        let leases: Vec<LeaseId> = known.live.iter().copied().collect();
        if !known.revoked {
            self.emit(Event::HostRevoked { host });
            self.renew_fleet(host);
        }
        for lease in leases {
            self.end_lease(lease, LeaseEnd::Revoked);
        }
        if let Some(parked) = self.soft.parked.take(host) {
            self.refuse(parked.to, ErrorKind::Unauthorized, format!("host {host} is revoked"));
        }
        match self.host_view(host) {
            Some(view) => self.reply(to, Ok(Answer::Host(Box::new(view)))),
            None => self.refuse(to, ErrorKind::NotFound, format!("no host {host}")),
        }
    }

    pub(crate) fn submit(
        &mut self,
        to: ReplyTo,
        spec: Box<JobSpec>,
        data: Box<DataManifest>,
        again: bool,
        nonce: Option<String>,
    ) {
        let trials = match self.check_submission(&spec, &data) {
            Ok(trials) => trials,
            Err(error) => return self.reply(to, Err(error)),
        };
        let Ok(bytes) = serde_json::to_vec(&(&spec, &data)) else {
            return self.refuse(to, ErrorKind::Invalid, "the job can't be written as JSON");
        };
        let key = Digest::of(&bytes);
        let nonce = nonce.map(|nonce| nonce.chars().take(64).collect::<String>());
        let same_call = nonce.as_ref().and_then(|nonce| self.state.job_nonces.get(nonce));
        let existing = self.state.job_keys.get(&key).and_then(|job| self.state.jobs.get(job));
        let existing = existing.filter(|job| !again && is_of_use(job)).map(|job| job.id);
        if let Some(job) = same_call.copied().or(existing) {
            let answer = SubmitAnswer { job, trials, submitted: Submitted::Existing };
            return self.reply(to, Ok(Answer::Submitted(answer)));
        }
        let missing =
            data.blobs().chain(spec.blobs()).find(|blob| !self.state.blobs.is_published(blob));
        if let Some(missing) = missing {
            let message = format!("blob {} of the job isn't here: upload it first", missing.sha256);
            return self.refuse(to, ErrorKind::Conflict, message);
        }
        let job = self.state.jobs.keys().next_back().copied().unwrap_or_default().next();
        let at_end = if data.test.is_empty() { AtEnd::Nothing } else { AtEnd::Test };
        self.emit(Event::JobSubmitted { job, spec, data, key, nonce, at_end });
        let jobs = &self.state.jobs;
        for shares in self.soft.shares.values_mut() {
            shares.keep(|job| jobs.get(&job).is_some_and(Job::is_running));
        }
        self.soft.work_changed = true;
        let answer = SubmitAnswer { job, trials, submitted: Submitted::New };
        self.reply(to, Ok(Answer::Submitted(answer)));
    }

    /// The number of trials, where the job can be run.
    fn check_submission(&self, spec: &JobSpec, data: &DataManifest) -> Result<u32, ApiError> {
        let invalid = |message: String| ApiError::new(ErrorKind::Invalid, message);
        if data.train.is_empty() || data.valid.is_empty() {
            return Err(invalid("the job has no training or no validation shards".into()));
        }
        let shards = data.train.iter().chain(&data.valid).chain(&data.test);
        if shards.clone().any(|shard| shard.rows == 0) {
            return Err(invalid("a shard has no rows".into()));
        }
        if data.valid.len().max(data.test.len()) > MOST_EVALUATION_SHARDS as usize {
            return Err(invalid(format!(
                "more than {MOST_EVALUATION_SHARDS} validation or test shards"
            )));
        }
        if spec.placement.threads == 0 {
            return Err(invalid("`placement.threads` is 0".into()));
        }
        spec.placement.check_merging().map_err(invalid)?;
        match (&data.labels, spec.training.loss) {
            (Labels::Classes(_), Loss::CrossEntropy) | (Labels::Number, Loss::Mse) => {}
            (Labels::Classes(_), Loss::Mse) => {
                return Err(invalid("loss `mse` needs labels that are numbers".into()));
            }
            (Labels::Number, Loss::CrossEntropy) => {
                return Err(invalid("loss `cross-entropy` needs labels that are classes".into()));
            }
        }
        spec.search.check(&data.labels).map_err(invalid)?;
        for (n, init) in spec.init.iter().enumerate() {
            let model = usize::try_from(init.model).ok().and_then(|at| spec.models.get(at));
            if model.is_none() {
                return Err(invalid(format!(
                    "`init` names model {}, which isn't there",
                    init.model
                )));
            }
            if spec.init.iter().take(n).any(|earlier| earlier.model == init.model) {
                return Err(invalid(format!("`init` names model {} twice", init.model)));
            }
        }
        let trials = sojourn_workgen::trials(spec).map_err(|error| invalid(error.to_string()))?;
        for (n, trial) in trials.iter().enumerate() {
            sojourn_model::validate(&trial.config, &data.shape, data.labels.outputs())
                .map_err(|error| invalid(format!("trial {n}: {error}")))?;
            trial.config.check().map_err(|error| invalid(format!("trial {n}: {error}")))?;
            check_given(spec, data, trial)
                .map_err(|error| invalid(format!("trial {n}: {error}")))?;
        }
        u32::try_from(trials.len()).map_err(|_| invalid("too many trials".into()))
    }

    pub(crate) fn cancel(&mut self, to: ReplyTo, job: JobId) {
        let Some(known) = self.state.jobs.get(&job) else {
            return self.refuse(to, ErrorKind::NotFound, format!("no job {job}"));
        };
        if known.is_running() || !known.extras.is_empty() {
            let running = known.trials.iter().filter(|trial| trial.is_running());
            let cleanups: Vec<_> = running.map(|trial: &Trial| cleanup_of(trial)).collect();
            let extras = known.extras.iter().flat_map(|extra| &extra.live).copied().collect();
            self.emit(Event::JobCancelled { job });
            self.revoke(extras);
            for cleanup in cleanups {
                self.clean_up(cleanup);
            }
        } else if !matches!(known.end, Some((JobEnd::Cancelled, _))) {
            let message = format!("job {job} has ended: there is nothing to cancel");
            return self.refuse(to, ErrorKind::Conflict, message);
        }
        match self.job_view(job) {
            Some(view) => self.reply(to, Ok(Answer::JobSummary(Box::new(view)))),
            None => self.refuse(to, ErrorKind::NotFound, format!("no job {job}")),
        }
    }
}

/// Has the blob that the trial starts from the size of its model's parameters? What is in it the
/// trainer sees.
fn check_given(
    spec: &JobSpec,
    data: &DataManifest,
    trial: &sojourn_workgen::Trial,
) -> Result<(), String> {
    let Some(given) = spec.given(trial.model) else { return Ok(()) };
    let context = crate::state::context(spec, data, trial.config.clone());
    let layout = CheckpointLayout::of(&context).and_then(|layout| layout.given_layout());
    let expected = layout.map_err(|error| error.to_string())?.file_bytes();
    if given.bytes == expected {
        return Ok(());
    }
    let actual = given.bytes;
    Err(format!("`init` has {actual} bytes, the parameters of its model take {expected}"))
}

/// A job that failed or was cancelled doesn't stand in the way of the same job again.
fn is_of_use(job: &Job) -> bool {
    !matches!(job.end, Some((JobEnd::Failed | JobEnd::Cancelled, _)))
}
