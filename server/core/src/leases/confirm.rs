//! A host goes on with a trial while its result is uploaded: whether the lease that it holds for that is granted.
//!
//! The lease is provisional until the result before it was taken in. Then it is granted, or else withdrawn.

use super::handler::LeaseHandler;
use crate::fault::CoreFault;
use sojourn_protocol::{ids::LeaseId, manifest::DataSplit, unit::shard_index};
use sojourn_scheduling::leases::{Deadline, ProvisionalLease};
use sojourn_state::{Event, Lease, UnitKey};

impl LeaseHandler<'_> {
    /// A lease's result has been taken in: the provisional lease that goes on from it is granted, where it can be.
    pub(crate) fn confirm(&mut self, after: LeaseId) -> Result<(), CoreFault> {
        let Some(provisional) = self.ledger.leases.provisional_mut().take_after(after) else {
            return Ok(());
        };
        if !self.may_confirm(&provisional) {
            self.ledger.withdrawn(&provisional);
            return Ok(());
        }
        let ProvisionalLease { lease, takes, why, .. } = provisional;
        let (id, sent_at) = (lease.id, lease.granted_at);
        let job = lease.unit.job();
        self.ledger.planner.pass_over_before(self.ledger.state, job);
        self.ledger.record(Event::LeaseGranted {
            lease: id,
            host: lease.host,
            device: lease.device,
            unit: lease.unit,
            then: lease.then,
            until: lease.until,
            base: lease.base,
            class: lease.class,
            speculative_for: None,
            why,
        })?;
        let deadline = Deadline { sent_at, ..self.occupancy().new_deadline(id) };
        self.ledger.leases.deadlines_mut().set(id, deadline);
        self.ledger.consider_speculation();
        self.ledger.planner.charge(self.ledger.state, job, id, takes);
        Ok(())
    }

    fn may_confirm(&self, provisional: &ProvisionalLease) -> bool {
        let state = &*self.ledger.state;
        let lease = &provisional.lease;
        let UnitKey::Train { job, trial, shard, .. } = lease.unit else { return false };
        let Some(job) = state.jobs.get(&job).filter(|job| job.is_open()) else { return false };
        let Some(trial) = job.trial(trial) else { return false };
        state.hosts.get(&lease.host).is_some_and(|host| !host.revoked)
            && self.hosts.session(lease.host).is_some()
            && trial.is_runnable()
            && trial.version == lease.base
            && trial.checkpoint == Some(provisional.base)
            && trial.chain.next(shard) == Some(provisional.start)
            && !state.blobs.is_lost(&provisional.base.sha256)
            && state.lost_data(job).is_none()
            && state.admits_host(job, lease.host)
            && state.lease(lease.id).is_none()
    }

    /// The host will hold the shards that a lease needs by the time that it runs.
    pub(crate) fn expect_shards(&mut self, lease: &Lease) {
        let Some(session) = self.hosts.session_mut(lease.host) else { return };
        let Some(job) = self.ledger.state.jobs.get(&lease.unit.job()) else { return };
        let train = &job.data.train;
        let split = match lease.unit {
            UnitKey::Train { .. } => None,
            UnitKey::Evaluate { .. } => Some(DataSplit::Valid),
            UnitKey::Extra { name, .. } => Some(name.split),
        };
        let evaluated = job.trial(lease.unit.trial()).zip(split);
        let evaluated = evaluated.map(|(trial, split)| job.evaluated_shards(trial, split));
        let visited = lease.visits().filter_map(|shard| train.get(shard_index(shard)));
        for shard in visited.chain(evaluated.iter().flat_map(|shards| shards.iter())) {
            session.will_have(job.id, train, shard.blob.sha256);
        }
    }
}
