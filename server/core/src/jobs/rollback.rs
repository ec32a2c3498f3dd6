//! An operator takes trials back to before the results of a host that can't be trusted.

use super::JobHandler;
use crate::{event::Event, fault::CoreFault, reply::Reply, state::TrialEnd};
use sojourn_protocol::{
    api::{RollbackRequest, RolledBack},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TrialId},
};
use std::collections::BTreeMap;

impl JobHandler<'_> {
    /// Takes trials back. The answer says where each of them goes on from.
    pub(crate) fn rollback(
        &mut self,
        job: JobId,
        request: RollbackRequest,
    ) -> Reply<Vec<RolledBack>> {
        let wanted = match request {
            RollbackRequest::Trial { trial, epochs } => vec![(trial, epochs)],
            RollbackRequest::Host { host } => self.before_suspect(job, host)?,
        };
        let targets = wanted.into_iter().map(|(trial, epochs)| self.target(job, trial, epochs));
        let targets: Vec<RolledBack> = targets.collect::<Result<_, ApiError>>()?;
        for RolledBack { trial, epochs, .. } in &targets {
            self.roll_back(job, *trial, *epochs)?;
        }
        Ok(targets)
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
