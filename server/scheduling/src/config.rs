//! Settings of the core that an operator may choose.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{quotas::Quotas, time::Millis};
use sojourn_workgen::PolicyName;

/// A host that wasn't heard of for this long is forgotten, where the operator says nothing else: 90 days.
pub const DEFAULT_FORGET_HOSTS: Millis = Millis::from_secs(90 * 24 * 3600);

/// [`CoreConfig::most_rolled_back`] where the operator says nothing else.
pub const DEFAULT_MOST_ROLLED_BACK: u32 = 25;

const fn most_rolled_back() -> u32 {
    DEFAULT_MOST_ROLLED_BACK
}

const fn forget_hosts() -> Millis {
    DEFAULT_FORGET_HOSTS
}

/// The core's settings. They are not journalled: a server may start with others on the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreConfig {
    /// A lease runs out when its host wasn't heard of for this long.
    pub lease_term: Millis,
    /// How often hosts are to send heartbeats.
    pub heartbeat_every: Millis,
    /// A unit is never overdue before this has passed without progress.
    pub least_due: Millis,
    /// How long a host may keep a lease without starting it (downloads, queues).
    pub start_grace: Millis,
    /// Hosts that wait for work are answered, empty, after at most this.
    pub longest_wait: Millis,
    /// A blob that nothing refers to any more is condemned after this.
    pub condemn_after: Millis,
    /// A blob that nothing has referred to yet is condemned after this: a large submission takes long.
    pub awaited_for: Millis,
    /// A condemned blob is deleted after this.
    pub delete_after: Millis,
    /// An assimilator that took work and said nothing is forgotten after this.
    pub assimilation_term: Millis,
    /// A lease that ended without a report is forgotten after this, a reported one after a 24th of it.
    pub remember_leases: Millis,
    /// A host that wasn't heard of for this long is forgotten, and up to a third later.
    #[serde(default = "forget_hosts")]
    pub forget_hosts: Millis,
    /// First cool-down of a host after repeated errors. It doubles each time.
    pub first_rest: Millis,
    /// Hops of one trial under one lease, at most. `None`: as many as make the transfers of the checkpoint worth while,
    /// and one where these are negligible.
    pub most_hops: Option<u32>,
    /// Per cent of a job's work that speculative leases may add to it, at most; 0: there are none.
    pub most_copied: u32,
    /// Per cent of a job's work that a rollback after a refutation may lose without anybody's word, at most; 0: its user is always
    /// asked.
    #[serde(default = "most_rolled_back")]
    pub most_rolled_back: u32,
    /// The policy that assigns hops to hosts.
    pub policy: PolicyName,
    /// How much of jobs that have ended is kept.
    #[serde(default)]
    pub retention: Retention,
    /// Bounds of users' tokens for which no others are set.
    #[serde(default)]
    pub quotas: Quotas,
}

/// How much of jobs that have ended a server keeps. A limit that isn't set limits nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// So many jobs, those that ended last.
    pub jobs: Option<u32>,
    /// Jobs that ended no longer ago than this.
    pub age: Option<Millis>,
    /// So many bytes of blobs, of the jobs that ended last; a blob of several of them counts once.
    pub bytes: Option<u64>,
    /// The fate of the others.
    pub beyond: BeyondRetention,
}

/// The fate of a job that isn't kept as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeyondRetention {
    /// The job loses its data and its checkpoints, but the best model; its figures stay.
    #[default]
    Thin,
    /// The job is deleted.
    Delete,
}

impl Retention {
    /// Is everything kept?
    #[must_use]
    pub const fn keeps_all(&self) -> bool {
        self.jobs.is_none() && self.age.is_none() && self.bytes.is_none()
    }
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self::with_lease_term(Millis::from_secs(60))
    }
}

/// How often the journal notes that a host is there, in the time after which it would be forgotten.
const SEEN_NOTES: u64 = 3;

impl CoreConfig {
    /// How often the journal notes that a host is there.
    pub const fn note_interval(&self) -> Millis {
        Millis(self.forget_hosts.0 / SEEN_NOTES)
    }

    /// The defaults around a lease term.
    #[must_use]
    pub fn with_lease_term(lease_term: Millis) -> Self {
        Self {
            lease_term,
            heartbeat_every: Millis((lease_term.0 / 4).max(1)),
            least_due: Millis(lease_term.0.saturating_mul(2)),
            start_grace: Millis(lease_term.0.saturating_mul(10)),
            longest_wait: Millis(Millis::from_secs(25).0),
            condemn_after: Millis::from_secs(120),
            awaited_for: Millis::from_secs(24 * 3600),
            delete_after: Millis::from_secs(60),
            assimilation_term: lease_term,
            remember_leases: Millis::from_secs(24 * 3600),
            forget_hosts: DEFAULT_FORGET_HOSTS,
            first_rest: Millis(lease_term.0),
            most_hops: None,
            most_copied: 5,
            most_rolled_back: DEFAULT_MOST_ROLLED_BACK,
            policy: PolicyName::default(),
            retention: Retention::default(),
            quotas: Quotas::DEFAULT,
        }
    }
}
