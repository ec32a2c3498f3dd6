//! An operator takes trials back to before the results of a host that can't be trusted.

use super::{JobHandler, control::was_cancelled};
use crate::reply::Reply;
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, RolledBack},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TrialId},
};
use sojourn_state::{JobEnd, Taint, Trial, TrialEnd};

/// Why a trial ends that goes on from a result that is taken back.
const ENDED: &str = "it goes on from a result of another trial that was taken back";

impl JobHandler<'_> {
    /// Takes trials back, or says what that would lose. The answer says where each of them goes on from.
    pub(crate) fn rollback(
        &mut self,
        job: JobId,
        request: RollbackRequest,
    ) -> Reply<Vec<RolledBack>> {
        let options = request.options();
        self.check_job(job, options)?;
        let targets: Vec<RolledBack> = match request {
            RollbackRequest::Trial { trial, epochs, .. } => {
                self.check_kept(job, trial, epochs)?;
                vec![self.target(job, trial, epochs)?]
            }
            RollbackRequest::Host { host, .. } => self.before_suspect(job, host)?,
        };
        if options.preview {
            return Ok(targets);
        }
        for RolledBack { trial, epochs, ends, .. } in &targets {
            self.results.roll_back(job, *trial, *epochs, None)?;
            if *ends {
                self.results.fail_trial(job, *trial, ENDED.to_owned())?;
            }
        }
        Ok(targets)
    }

    /// Does the job run, or is an ended one to go on?
    fn check_job(&self, job: JobId, options: RollbackOptions) -> Result<(), ApiError> {
        let known = self.state().find_job(job)?;
        known.check_whole()?;
        let conflict = |message: String| Err(ApiError::new(ErrorKind::Conflict, message));
        if known.grace.is_some() {
            return conflict(format!("the time of job {job} is up: extend it first"));
        }
        match known.end {
            Some((JobEnd::Cancelled, _)) => conflict(was_cancelled(known)),
            Some((JobEnd::Finished | JobEnd::Failed, _)) if !options.reopen => conflict(format!(
                "job {job} has ended, and taking a trial back has it go on: say so with `--reopen`"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Is the end of that epoch kept, or is the trial to begin anew?
    fn check_kept(&self, job: JobId, trial: TrialId, epochs: u32) -> Result<(), ApiError> {
        let (_, known) = self.state().find_trial(job, trial)?;
        if epochs == 0 || known.kept_after(epochs) == epochs || epochs > trained(known) {
            return Ok(());
        }
        let kept: Vec<String> = known.kept.keys().map(|epoch| (epoch.0 + 1).to_string()).collect();
        let kept = match kept.is_empty() {
            true => "no epoch's end of it is kept".to_owned(),
            false => format!("only the ends of epochs {} are kept", kept.join(", ")),
        };
        Err(ApiError::new(
            ErrorKind::Conflict,
            format!(
                "trial {trial} can't go back to after epoch {epochs}: {kept}; with 0 it begins anew"
            ),
        ))
    }

    /// Where the trials that a refuted host, or another of its party, has worked for can be taken back to.
    fn before_suspect(&self, job: JobId, host: HostId) -> Result<Vec<RolledBack>, ApiError> {
        let known = self.state().find_job(job)?;
        if !self.state().hosts.contains_key(&host) {
            return Err(ApiError::new(ErrorKind::NotFound, format!("no host {host}")));
        }
        let Taint { back, end, .. } = self.state().taint_of(host, known);
        let back = back.into_iter().map(|(trial, epochs)| self.target(job, trial, epochs));
        let end = end.into_iter().map(|(trial, epochs)| {
            let begun = self.target(job, trial, epochs)?;
            Ok(RolledBack { ends: true, ..begun })
        });
        back.chain(end).collect()
    }

    /// Where a trial can be taken back to: after at most so many epochs.
    fn target(&self, job: JobId, trial: TrialId, epochs: u32) -> Result<RolledBack, ApiError> {
        let (_, known) = self.state().find_trial(job, trial)?;
        let conflict = |what: String| Err(ApiError::new(ErrorKind::Conflict, what));
        match &known.end {
            Some(TrialEnd::Failed(_)) => return conflict(format!("trial {trial} has failed")),
            Some(TrialEnd::Cancelled) => return conflict(format!("trial {trial} was cancelled")),
            Some(TrialEnd::Finished) | None => {}
        }
        let most = trained(known);
        if epochs > most {
            return conflict(format!(
                "trial {trial} has trained {most} epochs: there is no way back to {epochs}"
            ));
        }
        let epochs = known.kept_after(epochs);
        let version = known.history.iter().rev().find(|hop| hop.epoch().0 < epochs);
        let version = version.map_or_else(Default::default, |hop| hop.version);
        // The epoch that is being trained is lost too.
        let begun = u32::from(known.history.last().is_some_and(|hop| hop.epoch().0 >= most));
        let epochs_lost = most.saturating_sub(epochs) + begun;
        Ok(RolledBack { trial, epochs, version, epochs_lost, ends: false })
    }
}

/// Whole epochs that a trial has trained.
fn trained(trial: &Trial) -> u32 {
    trial.chain.epoch().0
}
