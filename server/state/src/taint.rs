//! Taint: the trials of a job that hold unconfirmed results of a refuted party, and the work that taking them back would lose.

use super::{Job, State, Trial, TrialEnd};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{HostId, LeaseId, TrialId, Version},
    view::HopRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// A rollback that waits for a user's word, since it would lose much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRollback {
    /// Thousandths of the job's work that it would have lost when it was asked.
    pub lost: u32,
    /// The last lease whose results the rollback is about.
    pub until: LeaseId,
}

/// How to be rid of unconfirmed results of a refuted party in a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taint {
    /// Trials, and how many epochs each of them keeps.
    pub back: Vec<(TrialId, u32)>,
    /// Trials that go on from such a result of another one, and have nothing to go back to; after so many epochs they began.
    pub end: Vec<(TrialId, u32)>,
    /// The work that is lost with both, and all that was done, in thousands of operations.
    pub(crate) lost: u64,
    /// See `lost`.
    pub(crate) done: u64,
}

impl Taint {
    /// Is there nothing to be rid of?
    pub fn is_empty(&self) -> bool {
        self.back.is_empty() && self.end.is_empty()
    }

    /// Thousandths of the work that was done which would be lost.
    pub fn lost_thousandths(&self) -> u32 {
        let ratio = u128::from(self.lost) * 1000 / u128::from(self.done.max(1));
        u32::try_from(ratio).unwrap_or(1000).min(1000)
    }
}

/// The work of a trial's hops, in thousands of operations.
fn work_of<'a>(trial: &Trial, hops: impl Iterator<Item = &'a HopRecord>) -> u64 {
    let batches = hops.map(|hop| hop.end.step.saturating_sub(hop.start.step)).sum();
    trial.work_of(batches)
}

impl Job {
    /// Are results of this job verified, of all hosts or of strangers' alone?
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.verified_quorum().is_some() || self.spec.placement.verifies_strangers()
    }
}

impl State {
    /// A host of each party of which a result was refuted, once.
    pub fn refuted_parties(&self) -> Vec<HostId> {
        let mut parties: Vec<HostId> = Vec::new();
        for host in self.hosts.keys().filter(|host| self.record_of(**host).refuted > 0) {
            if !parties.iter().any(|other| self.are_of_one_party(*other, *host)) {
                parties.push(*host);
            }
        }
        parties
    }

    /// The taint that the party behind a host has left in a job.
    pub fn taint_of(&self, host: HostId, job: &Job) -> Taint {
        let mut first: BTreeMap<TrialId, u32> = BTreeMap::new();
        for (trial, hop) in self.suspect_hops_of_party(host, job) {
            let epoch = hop.epoch().0;
            let known = first.entry(trial.id).or_insert(epoch);
            *known = epoch.min(*known);
        }
        let mut taint = Taint::default();
        if first.is_empty() {
            return taint;
        }
        // A trial has a higher id than the one from which it goes on.
        let mut of_clones: BTreeSet<TrialId> = BTreeSet::new();
        for trial in &job.trials {
            let is_tainted = trial.origin.is_some_and(|origin| {
                let from = first.get(&origin.trial);
                of_clones.contains(&origin.trial)
                    || from.is_some_and(|epoch| *epoch < origin.epochs)
            });
            if is_tainted {
                of_clones.insert(trial.id);
            }
            if matches!(trial.end, Some(TrialEnd::Failed(_) | TrialEnd::Cancelled)) {
                continue;
            }
            taint.done = taint.done.saturating_add(work_of(trial, trial.history.iter()));
            let lost = if is_tainted {
                taint.end.push((trial.id, trial.kept_after(0)));
                work_of(trial, trial.history.iter())
            } else if let Some(epoch) = first.get(&trial.id) {
                let epochs = trial.kept_after(*epoch);
                taint.back.push((trial.id, epochs));
                work_of(trial, trial.history.iter().filter(|hop| hop.epoch().0 >= epochs))
            } else {
                0
            };
            taint.lost = taint.lost.saturating_add(lost);
        }
        taint
    }

    /// Does the state still stand that a clone went on from: is it in the history of the other trial, or of the one from which that has it,
    /// without unconfirmed results of a refuted party? Of a trial that is no clone, it does.
    #[must_use]
    pub fn has_sound_origin(&self, job: &Job, trial: &Trial) -> bool {
        let mut of = trial;
        while let Some(origin) = of.origin {
            let Some(other) = job.trial(origin.trial) else { return false };
            let is_there = match origin.version {
                // The other trial has it from a third one.
                Version(0) => {
                    other.origin.is_some_and(|third| third.checkpoint == origin.checkpoint)
                }
                version => other
                    .history
                    .iter()
                    .any(|hop| (hop.version, hop.checkpoint) == (version, origin.checkpoint)),
            };
            let mut before = other.history.iter().filter(|hop| hop.epoch().0 < origin.epochs);
            if !is_there || before.any(|hop| self.is_suspect(hop)) {
                return false;
            }
            of = other;
        }
        true
    }

    /// Was the user asked about what this party has left in a job, and is that still so?
    pub fn asks_about(&self, host: HostId, job: &Job) -> bool {
        let until = self.record_of(host).suspect_until;
        let mut asked = job.asked.iter();
        asked.any(|(of, asked)| asked.until == until && self.are_of_one_party(*of, host))
    }

    /// Is no unconfirmed result of a refuted party in a job?
    #[must_use]
    pub fn is_beyond_doubt(&self, job: &Job) -> bool {
        self.doubts_of(job).is_empty()
    }

    /// The parties whose unconfirmed results are in a job, though they were refuted.
    pub fn doubts_of(&self, job: &Job) -> Vec<(HostId, Taint)> {
        let parties = self.refuted_parties().into_iter();
        let doubts = parties.map(|host| (host, self.taint_of(host, job)));
        doubts.filter(|(_, taint)| !taint.is_empty()).collect()
    }
}
