//! The durable state: jobs, hosts, tokens, leases, machines, blobs.

use crate::{
    Blobs, DataSizes, Host, IssuedTokens, Job, JournalPosition, Lease, Machines, Open, Past, Trial,
    Trust, is_default, parties::Owners,
};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId, LeaseId, TrialId},
    names::OwnerName,
    time::{Millis, UnixMillis},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The durable state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The number of the last event in it.
    pub position: JournalPosition,
    /// The time of the last event in it.
    pub at: UnixMillis,
    /// How long a lease that ended without a report is remembered (a constant of the fold, so that it is
    /// replayed alike); a reported one for a twenty-fourth of that.
    pub(crate) remember: Millis,
    /// Jobs by id.
    pub jobs: BTreeMap<JobId, Job>,
    /// Jobs by the digest of their submission.
    pub job_keys: BTreeMap<Digest, JobId>,
    /// Jobs by the nonce of the call that submitted them.
    pub job_nonces: BTreeMap<String, JobId>,
    /// Hosts by id.
    pub hosts: BTreeMap<HostId, Host>,
    /// Hosts by the hash of their token; revoked ones are not here.
    pub tokens: BTreeMap<Digest, HostId>,
    /// The hashes of the tokens of revoked hosts. An index, which a snapshot doesn't hold.
    #[serde(skip)]
    pub revoked_tokens: BTreeSet<Digest>,
    /// The owners of hosts. An index, which a snapshot doesn't hold.
    #[serde(skip)]
    pub(crate) owners: Owners,
    /// The last of the hosts that were forgotten: their ids are never given again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) last_forgotten: HostId,
    /// The last of the jobs that were deleted: their ids are never given again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) last_deleted: JobId,
    /// The records of strangers, by owner: of all hosts that each has had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub records: BTreeMap<OwnerName, Trust>,
    /// Tokens that the server has issued.
    #[serde(default, skip_serializing_if = "IssuedTokens::is_empty")]
    pub issued: IssuedTokens,
    /// Bought machines and their costs.
    #[serde(default, skip_serializing_if = "Machines::is_empty")]
    pub machines: Machines,
    /// Live leases.
    pub leases: BTreeMap<LeaseId, Arc<Lease>>,
    /// Leases that have ended, for late and repeated reports.
    pub past: BTreeMap<LeaseId, Past>,
    /// When each of `past` is forgotten, soonest first.
    pub(crate) past_order: BTreeSet<(UnixMillis, LeaseId)>,
    /// Blobs and their references.
    pub blobs: Blobs,
    /// The last lease's id.
    pub last_lease: LeaseId,
}

impl State {
    /// The state before the first event. Ended leases will be remembered for `remember`.
    #[must_use]
    pub fn new(remember: Millis) -> Self {
        Self {
            position: JournalPosition(0),
            at: UnixMillis(0),
            remember,
            jobs: BTreeMap::new(),
            job_keys: BTreeMap::new(),
            job_nonces: BTreeMap::new(),
            hosts: BTreeMap::new(),
            tokens: BTreeMap::new(),
            revoked_tokens: BTreeSet::new(),
            owners: Owners::default(),
            last_forgotten: HostId(0),
            last_deleted: JobId(0),
            records: BTreeMap::new(),
            issued: IssuedTokens::default(),
            machines: Machines::default(),
            leases: BTreeMap::new(),
            past: BTreeMap::new(),
            past_order: BTreeSet::new(),
            blobs: Blobs::default(),
            last_lease: LeaseId(0),
        }
    }

    /// Computes the indexes, which a snapshot doesn't hold.
    pub(crate) fn index(&mut self) {
        self.issued.index();
        self.owners = Owners::of(self.hosts.values());
        let revoked = self.hosts.values().filter(|host| host.revoked);
        self.revoked_tokens = revoked.map(|host| host.token_sha256).collect();
        for job in self.jobs.values_mut() {
            job.open = Open::of(&job.trials);
            job.sizes = DataSizes::of(&job.data, job.spec.search.folds);
            job.kept = job.count_kept();
        }
        for lease in self.leases.values() {
            if let Some(job) = self.jobs.get_mut(&lease.unit.job()) {
                job.add_host(lease.host);
            }
        }
    }

    /// A lease, live or past.
    #[must_use]
    pub fn lease(&self, lease: LeaseId) -> Option<&Arc<Lease>> {
        let past = || self.past.get(&lease).map(|past| &past.lease);
        self.leases.get(&lease).or_else(past)
    }

    /// The owner of a host; `None` where there is no such host.
    #[must_use]
    pub fn owner_of(&self, host: HostId) -> Option<&OwnerName> {
        self.hosts.get(&host).map(|host| &host.owner)
    }

    /// A trial by name.
    #[must_use]
    pub fn trial(&self, job: JobId, trial: TrialId) -> Option<&Trial> {
        self.jobs.get(&job)?.trial(trial)
    }

    /// Does this lease's unit still need a result like it: for a hop, is its base the trial's current
    /// version; for an evaluation, is it still to be done?
    #[must_use]
    pub fn is_wanted(&self, lease: &Lease) -> bool {
        self.jobs.get(&lease.unit.job()).is_some_and(|job| job.wants(lease))
    }
}
