//! An operator takes trials back to before what a host delivered that can't be trusted.

use super::failing::cleanup_of;
use crate::{command::ReplyTo, core::Core, effect::Answer, event::Event, state::TrialEnd};
use sojourn_protocol::{
    api::{RollbackRequest, RolledBack},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TrialId},
};
use std::collections::BTreeMap;

impl Core {
    pub(crate) fn rollback(&mut self, to: ReplyTo, job: JobId, request: RollbackRequest) {
        let wanted = match request {
            RollbackRequest::Trial { trial, epochs } => Ok(vec![(trial, epochs)]),
            RollbackRequest::Host { host } => self.before_doubtful(job, host),
        };
        let targets = wanted.and_then(|wanted| {
            wanted.into_iter().map(|(trial, epochs)| self.target(job, trial, epochs)).collect()
        });
        let targets: Vec<RolledBack> = match targets {
            Ok(targets) => targets,
            Err(error) => return self.reply(to, Err(error)),
        };
        for RolledBack { trial, epochs, .. } in &targets {
            self.roll_back(job, *trial, *epochs);
        }
        self.reply(to, Ok(Answer::RolledBack(targets)));
    }

    /// For each trial that such a host has worked for: how many epochs were whole before.
    fn before_doubtful(&self, job: JobId, host: HostId) -> Result<Vec<(TrialId, u32)>, ApiError> {
        let known = self.job(job)?;
        if !self.state.hosts.contains_key(&host) {
            return Err(ApiError::new(ErrorKind::NotFound, format!("no host {host}")));
        }
        let mut first: BTreeMap<TrialId, u32> = BTreeMap::new();
        for (trial, hop) in self.doubtful(host, known) {
            let epoch = hop.epoch().0;
            let before = first.entry(trial.id).or_insert(epoch);
            *before = epoch.min(*before);
        }
        Ok(first.into_iter().collect())
    }

    /// Where a trial can be taken back to: after at most so many epochs.
    fn target(&self, job: JobId, trial: TrialId, epochs: u32) -> Result<RolledBack, ApiError> {
        let (_, known) = self.known_trial(job, trial)?;
        let conflict = |what: String| Err(ApiError::new(ErrorKind::Conflict, what));
        match &known.end {
            Some(TrialEnd::Failed(_)) => return conflict(format!("trial {trial} has failed")),
            Some(TrialEnd::Cancelled) => return conflict(format!("trial {trial} was cancelled")),
            Some(TrialEnd::Finished) | None => {}
        }
        let trained = known.chain.epoch().0;
        let most = if known.chain.is_done() { known.epochs() } else { trained };
        if epochs > most {
            return conflict(format!(
                "trial {trial} has trained {most} epochs: there is no way back to {epochs}"
            ));
        }
        let epochs = known.kept_after(epochs);
        let version = known.history.iter().rev().find(|hop| hop.epoch().0 < epochs);
        let version = version.map_or_else(Default::default, |hop| hop.version);
        Ok(RolledBack { trial, epochs, version })
    }

    fn roll_back(&mut self, job: JobId, trial: TrialId, epochs: u32) {
        let Some(known) = self.state.trial(job, trial) else { return };
        let under_way = cleanup_of(known);
        self.emit(Event::TrialRolledBack { job, trial, epochs });
        self.plan_outdated(job);
        self.clean_up(under_way);
        self.shares_of(job).enter(job);
        self.soft.work_changed = true;
    }
}
