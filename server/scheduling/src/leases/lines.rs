//! Bytes that are on the lines of hosts: results on their way to the server, and blobs on their way to hosts.

use super::{Deadline, Occupancy};
use sojourn_protocol::{
    ids::{HostId, LeaseId},
    quantity::mul_div,
    unit::shard_index,
};
use sojourn_state::Lease;

/// Microseconds of an upload after which its rate is believed.
const MIN_MEASURED: u64 = 1_000_000;

impl Occupancy<'_> {
    /// Microseconds until the result of a lease should be at the server, where its unit is trained: at the rate at which it
    /// came so far, or by its host's line. An upload that is later than that is assumed to need the same delay once more.
    /// 0 where the unit isn't trained, or is an evaluation.
    pub fn sent_in(&self, lease: LeaseId) -> u64 {
        let Some((known, deadline)) = self.uploading(lease) else { return 0 };
        let bytes = self.state.upload_bytes(known).unwrap_or(0);
        let unsent = bytes.saturating_sub(deadline.uploaded);
        let should_take = match self.upload_rate(deadline) {
            Some(rate) => {
                mul_div(unsent, 1_000_000, rate).max(self.cost.send_time(known.host, unsent))
            }
            None => self.cost.send_time(known.host, unsent),
        };
        let passed = self.elapsed(deadline.uploaded_at);
        should_take.saturating_sub(passed).max(passed.saturating_sub(should_take))
    }

    /// Microseconds until a host should have sent all results that are on their way from it.
    pub fn line_free_in(&self, host: HostId) -> u64 {
        let live = self.state.hosts.get(&host).into_iter().flat_map(|host| &host.live);
        live.fold(0_u64, |all, lease| all.saturating_add(self.sent_in(*lease)))
    }

    /// Microseconds until a host should have the blobs of a lease that it hasn't begun, and those of the leases before it.
    pub fn fetched_in(&self, lease: LeaseId) -> u64 {
        let Some(known) = self.state.leases.get(&lease) else { return 0 };
        let live = self.state.hosts.get(&known.host).into_iter().flat_map(|host| &host.live);
        let before = live.take_while(|other| **other <= lease);
        let missing = before.filter_map(|other| self.missing_bytes(*other));
        self.cost.fetch_time(known.host, missing.fold(0, u64::saturating_add))
    }

    /// Microseconds until a host should have the blobs of all its leases.
    pub fn all_fetched_in(&self, host: HostId) -> u64 {
        let live = self.state.hosts.get(&host).and_then(|host| host.live.last());
        live.map_or(0, |last| self.fetched_in(*last))
    }

    /// Bytes of its blobs that the host of a lease hasn't fetched, as far as it has reported; `None` where it has begun.
    fn missing_bytes(&self, lease: LeaseId) -> Option<u64> {
        let (known, deadline) = (self.state.leases.get(&lease)?, self.leases.deadline(lease)?);
        if deadline.started || deadline.is_finished() {
            return None;
        }
        let (job, session) =
            (self.state.jobs.get(&known.unit.job())?, self.hosts.session(known.host)?);
        let trial = job.trial(known.unit.trial())?;
        let shards = known.visits().filter_map(|shard| job.data.train.get(shard_index(shard)));
        let lacking = shards.filter(|shard| !session.cached.contains(&shard.blob.sha256));
        let has_trained = trial.history.last().is_none_or(|hop| hop.host == known.host);
        let checkpoint = if has_trained { 0 } else { trial.checkpoint_bytes };
        let bytes = lacking.fold(checkpoint, |all, shard| all.saturating_add(shard.blob.bytes));
        let unfetched = deadline.bounds.allowance.bytes.saturating_sub(deadline.fetched);
        Some(bytes.min(unfetched))
    }

    /// Bytes per second of an upload, as far as its host has reported it; `None` where that is too little to tell.
    fn upload_rate(&self, deadline: &Deadline) -> Option<u64> {
        let took = (deadline.uploaded_at - deadline.finished_at?).0.saturating_mul(1000);
        let is_known = deadline.uploaded > 0 && took >= MIN_MEASURED;
        is_known.then(|| mul_div(deadline.uploaded, 1_000_000, took).max(1))
    }

    /// A live lease whose unit is trained.
    fn uploading(&self, lease: LeaseId) -> Option<(&Lease, &Deadline)> {
        let deadline = self.leases.deadline(lease).filter(|deadline| deadline.is_finished())?;
        Some((self.state.leases.get(&lease)?, deadline))
    }
}
