//! Which of a job's units could be granted now: kept from event to event, so that a request for work
//! needn't look at every trial.

use super::trial::{PendingEvaluation, Trial};
use sojourn_protocol::ids::{Epoch, TrialId};
use std::collections::{BTreeMap, BTreeSet};

/// A job's open units. It follows from the trials, so it isn't stored with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Open {
    /// Trials with hops that nobody has, and how many.
    hops: BTreeMap<TrialId, usize>,
    /// All of them.
    hops_in_all: usize,
    /// Trials with a result that one more host is to come to as well.
    verifications: BTreeSet<TrialId>,
    /// Evaluations that nobody has, oldest first.
    evaluations: BTreeSet<(Epoch, TrialId)>,
}

impl Open {
    /// The open units of these trials.
    #[must_use]
    pub fn of(trials: &[Trial]) -> Self {
        // Trials are looked at once: of very many each look misses the cache. Each map is built from a list in order: one by
        // one takes several times as long.
        let mut hops = Vec::with_capacity(trials.len());
        let (mut verifications, mut evaluations) = (Vec::new(), Vec::new());
        for trial in trials {
            let open = trial.open_hops();
            if open > 0 {
                hops.push((trial.id, open));
            }
            if trial.incomplete_verifications().next().is_some() {
                verifications.push(trial.id);
            }
            evaluations.extend(trial.open_evaluations().map(|(epoch, _)| (epoch, trial.id)));
        }
        Self {
            hops_in_all: hops.iter().map(|(_, open)| open).sum(),
            hops: hops.into_iter().collect(),
            verifications: verifications.into_iter().collect(),
            evaluations: evaluations.into_iter().collect(),
        }
    }

    /// Something has happened to a trial's hop or evaluation in this epoch.
    pub(super) fn renew(&mut self, trial: &Trial, epoch: Epoch) {
        self.renew_hop(trial);
        let waits = trial.evaluations.get(&epoch).is_some_and(PendingEvaluation::is_open);
        if waits && trial.is_running() {
            self.evaluations.insert((epoch, trial.id));
        } else {
            self.evaluations.remove(&(epoch, trial.id));
        }
    }

    /// Something has happened to a trial: to its hops, and to any of its evaluations.
    pub(super) fn renew_all(&mut self, trial: &Trial) {
        self.renew_hop(trial);
        // Only epochs that it has trained have evaluations.
        for epoch in (0..=trial.chain.epoch().0).map(Epoch) {
            self.evaluations.remove(&(epoch, trial.id));
        }
        let open = trial.open_evaluations().map(|(epoch, _)| (epoch, trial.id));
        self.evaluations.extend(open);
    }

    fn renew_hop(&mut self, trial: &Trial) {
        let open = trial.open_hops();
        let before = match open {
            0 => self.hops.remove(&trial.id),
            _ => self.hops.insert(trial.id, open),
        };
        self.hops_in_all = self.hops_in_all + open - before.unwrap_or(0);
        if trial.incomplete_verifications().next().is_some() {
            self.verifications.insert(trial.id);
        } else {
            self.verifications.remove(&trial.id);
        }
    }

    /// Trials of which a hop could be granted now, in order.
    pub fn hops(&self) -> impl Iterator<Item = TrialId> + '_ {
        self.hops.keys().copied()
    }

    /// Could a hop of this trial be granted now?
    #[must_use]
    pub fn has_hop(&self, trial: TrialId) -> bool {
        self.hops.contains_key(&trial)
    }

    /// Is there a trial of which a result could be checked now?
    #[must_use]
    pub fn has_verifications(&self) -> bool {
        !self.verifications.is_empty()
    }

    /// Trials of which a result could be checked now, in order.
    pub fn verifications(&self) -> impl Iterator<Item = TrialId> + '_ {
        self.verifications.iter().copied()
    }

    /// Evaluations that could be granted now, oldest first.
    pub fn evaluations(&self) -> impl ExactSizeIterator<Item = (Epoch, TrialId)> + '_ {
        self.evaluations.iter().copied()
    }

    /// How many units these are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.hops_in_all + self.verifications.len() + self.evaluations.len()
    }
}
