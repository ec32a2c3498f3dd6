//! Evaluations that users ask for, outside the search.

use super::JobHandler;
use crate::reply::Reply;
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::{JobId, TrialId},
    manifest::DataSplit,
};
use sojourn_state::{Event, ExtraEnd, RequestedEvaluation};

impl JobHandler<'_> {
    /// Opens an evaluation of the trial's best checkpoint, unless it is open or done. One that failed begins anew. Its
    /// name is returned.
    pub(crate) fn evaluate(
        &mut self,
        job: JobId,
        trial: TrialId,
        split: DataSplit,
    ) -> Reply<RequestedEvaluation> {
        let name = self.check_evaluation(job, trial, split)?;
        let known = self.state().find_job(job)?;
        let done = known.extra_result(&name).map(|result| &result.end);
        let open = known.extra(&name).is_some();
        if !open && !matches!(done, Some(ExtraEnd::Evaluated { .. })) {
            self.record(Event::ExtraAsked { job, name })?;
        }
        Ok(name)
    }

    /// The name of the evaluation, where it can be done.
    fn check_evaluation(
        &self,
        job: JobId,
        trial: TrialId,
        split: DataSplit,
    ) -> Result<RequestedEvaluation, ApiError> {
        let (known, of_job) = self.state().find_trial(job, trial)?;
        known.check_whole()?;
        let conflict = |message| Err(ApiError::new(ErrorKind::Conflict, message));
        if known.evaluated_shards(of_job, split).is_empty() {
            return conflict(format!("job {job} has no {} data", split.name()));
        }
        let Some(best) = of_job.best else {
            return conflict(format!("trial {trial} of job {job} has no evaluated epoch yet"));
        };
        if self.state().blobs.is_lost(&best.checkpoint.sha256) {
            return conflict(format!(
                "the server's store has lost the best checkpoint of trial {trial}"
            ));
        }
        Ok(RequestedEvaluation { trial, split, epoch: best.epoch })
    }
}
