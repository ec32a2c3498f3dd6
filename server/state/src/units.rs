//! A job's units by name: which are open, who is at them, and who has failed.

use super::{
    ExtraEvaluation, ExtraResult, FailedBy, Job, Lease, RequestedEvaluation, Trial,
    merging::ShardUnit,
};
use crate::event::UnitKey;
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId, Version},
};
use std::collections::{BTreeMap, BTreeSet};

impl Job {
    /// An open evaluation outside the search.
    #[must_use]
    pub fn extra(&self, name: &RequestedEvaluation) -> Option<&ExtraEvaluation> {
        self.extras.iter().find(|extra| extra.name == *name)
    }

    /// An evaluation outside the search that has ended.
    #[must_use]
    pub fn extra_result(&self, name: &RequestedEvaluation) -> Option<&ExtraResult> {
        self.trial(name.trial)?.extra_result(name)
    }

    /// Opens an evaluation of what is its trial's best checkpoint now; one that failed begins anew. Gives
    /// the checkpoint, which is referred to from now on.
    pub(super) fn open_extra(&mut self, name: RequestedEvaluation) -> Option<BlobRef> {
        let trial = self.trial_mut(name.trial)?;
        let checkpoint = trial.best.filter(|best| best.epoch == name.epoch)?.checkpoint;
        let inherited = trial.origin.is_some_and(|origin| name.epoch.0 < origin.epochs);
        // What a clone goes on from isn't of its own chain.
        let version = trial.version_after(name.epoch).or(inherited.then_some(Version(0)))?;
        trial.extras.retain(|result| result.name != name);
        self.extras.push(ExtraEvaluation {
            name,
            version,
            checkpoint,
            live: BTreeSet::new(),
            failures: BTreeMap::new(),
            verification: None,
        });
        Some(checkpoint)
    }

    /// See [`super::State::is_wanted`].
    #[must_use]
    pub fn wants(&self, lease: &Lease) -> bool {
        let Some(trial) = self.trial(lease.unit.trial()) else { return false };
        match &lease.unit {
            UnitKey::Train { .. } => trial.wants_hop(lease),
            UnitKey::Evaluate { epoch, .. } => {
                trial.is_running()
                    && lease.id > trial.void_until
                    && trial.evaluations.contains_key(epoch)
            }
            UnitKey::Extra { name, .. } => self.extra(name).is_some(),
        }
    }

    /// Live leases of a unit; `None` where the unit isn't open.
    #[must_use]
    pub fn live_of(&self, unit: &UnitKey) -> Option<&BTreeSet<LeaseId>> {
        let trial = self.trial(unit.trial())?;
        match unit {
            UnitKey::Train { shard, .. } => match &trial.merging {
                None => Some(&trial.live),
                Some(merging) => merging.units.get(shard).map(|unit| &unit.live),
            },
            UnitKey::Evaluate { epoch, .. } => trial.evaluations.get(epoch).map(|e| &e.live),
            UnitKey::Extra { name, .. } => self.extra(name).map(|extra| &extra.live),
        }
    }

    /// Trainer errors at a unit; `None` where the unit isn't open.
    #[must_use]
    pub fn failures_of(&self, unit: &UnitKey) -> Option<&BTreeMap<HostId, FailedBy>> {
        let trial = self.trial(unit.trial())?;
        match unit {
            UnitKey::Train { shard, .. } => match &trial.merging {
                None => Some(&trial.failures),
                Some(merging) => merging.units.get(shard).map(|unit| &unit.failures),
            },
            UnitKey::Evaluate { epoch, .. } => trial.evaluations.get(epoch).map(|e| &e.failures),
            UnitKey::Extra { name, .. } => self.extra(name).map(|extra| &extra.failures),
        }
    }

    /// Live leases of an open unit, and the trainer errors at it.
    pub(super) fn attempts_mut(
        &mut self,
        unit: &UnitKey,
    ) -> Option<(&mut BTreeSet<LeaseId>, &mut BTreeMap<HostId, FailedBy>)> {
        match unit {
            UnitKey::Train { trial, shard, .. } => {
                let trial = self.trial_mut(*trial)?;
                match &mut trial.merging {
                    None => Some((&mut trial.live, &mut trial.failures)),
                    Some(merging) => {
                        let unit = merging.units.entry(*shard).or_default();
                        Some((&mut unit.live, &mut unit.failures))
                    }
                }
            }
            UnitKey::Evaluate { trial, epoch, .. } => {
                let evaluation = self.trial_mut(*trial)?.evaluations.get_mut(epoch)?;
                Some((&mut evaluation.live, &mut evaluation.failures))
            }
            UnitKey::Extra { name, .. } => {
                let extra = self.extras.iter_mut().find(|extra| extra.name == *name)?;
                Some((&mut extra.live, &mut extra.failures))
            }
        }
    }
}

impl Trial {
    /// The leases under which hops run that nobody else is at, and for which the trial waits: in hop order its next
    /// hop's, or that of who is asked to come to its result as well; where results are merged those of an epoch of
    /// which no shard is left to hand out.
    pub fn alone(&self) -> impl Iterator<Item = LeaseId> + '_ {
        let is_alone = self.live.len() == 1 && self.awaiting.is_empty();
        let next = self.live.iter().filter(move |_| is_alone);
        let merging = self.merging.iter().filter(|merging| merging.waits());
        let units = merging.flat_map(|merging| merging.units.values());
        let alone =
            units.filter(|unit| unit.is_waited_for()).flat_map(|unit: &ShardUnit| &unit.live);
        next.chain(alone).copied()
    }
}
