//! Views of evaluations outside the search.

use super::Views;
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::{JobId, TrialId},
    manifest::DataSplit,
    metrics::Metrics,
    view::{EvaluationResult, EvaluationState, EvaluationView},
};
use sojourn_state::{ExtraEnd, ExtraEvaluation, ExtraResult, Job, RequestedEvaluation, Trial};

impl Views<'_> {
    /// An evaluation outside the search, by name.
    pub(crate) fn requested_evaluation(
        &self,
        job: JobId,
        name: &RequestedEvaluation,
    ) -> Result<EvaluationView, ApiError> {
        let view = self.evaluation_of(self.state.find_job(job)?, name);
        view.ok_or_else(|| ApiError::new(ErrorKind::Internal, "the evaluation was not opened"))
    }

    /// The evaluations of a trial: the ended ones in the order in which they ended, then the open ones.
    pub(crate) fn evaluations(
        &self,
        job: JobId,
        trial: TrialId,
    ) -> Result<Vec<EvaluationView>, ApiError> {
        let (job, trial) = self.state.find_trial(job, trial)?;
        let ended = trial.extras.iter().map(|result| ended_view(job, result));
        let open = job.extras.iter().filter(|extra| extra.name.trial == trial.id);
        Ok(ended.chain(open.map(|extra| self.open_view(job, extra))).collect())
    }

    /// An evaluation of a job, by name.
    pub(crate) fn evaluation_of(
        &self,
        job: &Job,
        name: &RequestedEvaluation,
    ) -> Option<EvaluationView> {
        let open = job.extra(name).map(|extra| self.open_view(job, extra));
        open.or_else(|| job.extra_result(name).map(|result| ended_view(job, result)))
    }

    /// The trial's evaluation on the test data; of several, the one that is open or ended last.
    pub(crate) fn test_of(&self, job: &Job, trial: &Trial) -> Option<EvaluationView> {
        let is_test =
            |name: &RequestedEvaluation| name.trial == trial.id && name.split == DataSplit::Test;
        let open = job.extras.iter().rfind(|extra| is_test(&extra.name));
        let ended = trial.extras.iter().rfind(|result| is_test(&result.name));
        open.map(|extra| self.open_view(job, extra))
            .or_else(|| ended.map(|result| ended_view(job, result)))
    }

    fn open_view(&self, job: &Job, extra: &ExtraEvaluation) -> EvaluationView {
        let state = if extra.live.is_empty() {
            let paused = job.paused_at.map(|_| "the job is paused".to_owned());
            let waits = || {
                let data = self.data_waits(job).or_else(|| self.hosts_wait());
                data.or_else(|| self.requested_evaluation_waits(job, extra))
            };
            let reason = paused.or_else(|| Some(waits()?.to_string()));
            EvaluationState::Waiting { reason }
        } else {
            EvaluationState::Running
        };
        view(&extra.name, extra.checkpoint, state)
    }
}

fn ended_view(job: &Job, result: &ExtraResult) -> EvaluationView {
    let state = match &result.end {
        ExtraEnd::Failed { error } => EvaluationState::Failed { error: error.clone() },
        ExtraEnd::Evaluated { sums, by_class, arrays, verified } => {
            let k = job.spec.search.k(&job.data.labels);
            let (spec, by_class_of) = (&job.spec, by_class.as_ref());
            let (loss, search) = (spec.training.loss, &spec.search);
            let metrics = Metrics::of(loss, search, sums, by_class_of, k, arrays);
            EvaluationState::Done(EvaluationResult {
                at: result.at,
                metrics,
                by_class: by_class.clone(),
                arrays: arrays.clone(),
                verified: *verified,
            })
        }
    };
    view(&result.name, result.checkpoint, state)
}

fn view(
    name: &RequestedEvaluation,
    checkpoint: sojourn_protocol::digest::BlobRef,
    state: EvaluationState,
) -> EvaluationView {
    let RequestedEvaluation { trial, split, epoch } = *name;
    EvaluationView { trial, split, epoch, checkpoint, state }
}
