//! After a refutation: what the party delivered and nobody has confirmed is taken back.
//!
//! Where that would lose more of a job's work than the operator allows, its user is asked. Jobs that have ended stay as they are: their
//! answers say what is in doubt.

use super::ResultHandler;
use crate::fault::CoreFault;
use sojourn_protocol::ids::{HostId, JobId, TrialId};
use sojourn_state::{Event, Job, Taint};

impl ResultHandler<'_> {
    /// Takes back what the parties behind these hosts have left in running jobs, or asks.
    pub(crate) fn take_back(&mut self, hosts: &[HostId]) -> Result<(), CoreFault> {
        let state = &*self.ledger.state;
        let parties = state.refuted_parties().into_iter();
        let parties =
            parties.filter(|party| hosts.iter().any(|host| state.are_of_one_party(*party, *host)));
        let parties: Vec<HostId> = parties.collect();
        parties.into_iter().try_for_each(|host| self.take_back_of(host))
    }

    /// The same of the party whose result a trial has taken in last: where nobody has confirmed that, it was queued before the party was
    /// refuted.
    pub(crate) fn take_back_last(&mut self, job: JobId, trial: TrialId) -> Result<(), CoreFault> {
        let state = &*self.ledger.state;
        let last = state.trial(job, trial).and_then(|trial| trial.history.last());
        let doubtful = last.filter(|hop| state.is_suspect(hop)).map(|hop| hop.host);
        doubtful.map_or(Ok(()), |host| self.take_back(&[host]))
    }

    /// The same of all parties that were ever refuted: a server that starts may have stopped in between.
    pub(crate) fn take_back_all(&mut self) -> Result<(), CoreFault> {
        let parties = self.ledger.state.refuted_parties();
        parties.into_iter().try_for_each(|host| self.take_back_of(host))
    }

    fn take_back_of(&mut self, host: HostId) -> Result<(), CoreFault> {
        let state = &*self.ledger.state;
        let is_open = |job: &&Job| {
            job.is_running()
                && job.grace.is_none()
                && job.verifies()
                && !state.asks_about(host, job)
        };
        let jobs = state.jobs.values().filter(is_open);
        let taints = jobs.map(|job| (job.id, state.taint_of(host, job)));
        let taints: Vec<(JobId, Taint)> = taints.filter(|(_, of)| !of.is_empty()).collect();
        let most = self.ledger.config.most_rolled_back.saturating_mul(10);
        for (job, taint) in taints {
            let lost = taint.lost_thousandths();
            if lost > most {
                self.ledger.record(Event::RollbackAsked { job, host, lost })?;
                continue;
            }
            self.be_rid_of(job, &taint, &format!("host {host} was refuted"))?;
        }
        Ok(())
    }

    /// Takes trials back, and ends those that have nothing to go back to.
    fn be_rid_of(&mut self, job: JobId, taint: &Taint, why: &str) -> Result<(), CoreFault> {
        for (trial, epochs) in &taint.back {
            self.roll_back(job, *trial, *epochs, Some(why.to_owned()))?;
        }
        for (trial, epochs) in &taint.end {
            // Its evaluations since go with that, and it is the best no more.
            self.roll_back(job, *trial, *epochs, Some(why.to_owned()))?;
            let error =
                format!("it goes on from a result of another trial that is in doubt: {why}");
            self.fail_trial(job, *trial, error)?;
        }
        Ok(())
    }

    /// Takes a trial back to where it had trained so many epochs.
    pub(crate) fn roll_back(
        &mut self,
        job: JobId,
        trial: TrialId,
        epochs: u32,
        why: Option<String>,
    ) -> Result<(), CoreFault> {
        let state = &*self.ledger.state;
        if state.trial(job, trial).is_none() {
            return Ok(());
        }
        let in_flight = state.in_flight(job, trial);
        self.ledger.record(Event::TrialRolledBack { job, trial, epochs, why })?;
        self.ledger.planner.outdate_plan(job);
        self.abandon(in_flight)?;
        // A job that stood still goes on: it isn't owed what others got meanwhile.
        self.ledger.planner.enter(self.ledger.state, job);
        Ok(())
    }
}
