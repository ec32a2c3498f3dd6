//! An operator takes trials back to before the results of a host that can't be trusted.

use super::JobHandler;
use crate::{
    event::Event,
    fault::CoreFault,
    reply::Reply,
    state::{JobEnd, Trial, TrialEnd},
};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, RolledBack},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TrialId},
};
use std::collections::BTreeMap;

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
            RollbackRequest::Host { host, .. } => {
                let wanted = self.before_suspect(job, host)?.into_iter();
                let targets = wanted.map(|(trial, epochs)| self.target(job, trial, epochs));
                targets.collect::<Result<_, ApiError>>()?
            }
        };
        if options.preview {
            return Ok(targets);
        }
        for RolledBack { trial, epochs, .. } in &targets {
            self.roll_back(job, *trial, *epochs)?;
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
            Some((JobEnd::Cancelled, _)) => {
                conflict(format!("job {job} was cancelled: submit it again"))
            }
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

    /// For each trial that such a host has worked for: how many epochs were whole before.
    fn before_suspect(&self, job: JobId, host: HostId) -> Result<Vec<(TrialId, u32)>, ApiError> {
        let known = self.state().find_job(job)?;
        if !self.state().hosts.contains_key(&host) {
            return Err(ApiError::new(ErrorKind::NotFound, format!("no host {host}")));
        }
        let mut first: BTreeMap<TrialId, u32> = BTreeMap::new();
        for (trial, hop) in self.state().suspect_hops(host, known) {
            let epoch = hop.epoch().0;
            let before = first.entry(trial.id).or_insert(epoch);
            *before = epoch.min(*before);
        }
        Ok(first.into_iter().collect())
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
        Ok(RolledBack { trial, epochs, version, epochs_lost })
    }

    fn roll_back(&mut self, job: JobId, trial: TrialId, epochs: u32) -> Result<(), CoreFault> {
        if self.state().trial(job, trial).is_none() {
            return Ok(());
        }
        let in_flight = self.state().in_flight(job, trial);
        self.record(Event::TrialRolledBack { job, trial, epochs })?;
        self.results.ledger.planner.outdate_plan(job);
        self.results.abandon(in_flight)?;
        self.enter_fair_share(job);
        Ok(())
    }
}

/// Whole epochs that a trial has trained.
fn trained(trial: &Trial) -> u32 {
    trial.chain.epoch().0
}
