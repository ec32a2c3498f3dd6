//! The durable state of a host.

use super::{Reliability, Trust, is_default};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, LeaseId, TokenId},
    machines::MachineName,
    names::OwnerName,
    time::UnixMillis,
};
use std::collections::BTreeSet;

/// An enrolled host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The host's id.
    pub id: HostId,
    /// The host's name, for people.
    pub name: String,
    /// The person or group that answers for it.
    #[serde(default, skip_serializing_if = "OwnerName::is_default")]
    pub owner: OwnerName,
    /// The issued token with which it enrolled; `None`: the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The operator has vouched for its owner: it is believed as the operator's own machines are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trusted: bool,
    /// The bought machine that it is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineName>,
    /// Hash of its token.
    pub token_sha256: Digest,
    /// When it enrolled.
    pub enrolled_at: UnixMillis,
    /// When it was heard of, as far as the journal says: at most a third of the time late after which hosts are forgotten. 0:
    /// not yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seen_at: UnixMillis,
    /// Whether the host's token was taken away.
    pub revoked: bool,
    /// Whether an operator has blocked the host: then it gets no new work.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked: bool,
    /// The host's live leases.
    pub live: BTreeSet<LeaseId>,
    /// How many of the host's results were used.
    pub used: u64,
    /// How many of the host's leases expired.
    pub expired: u64,
    /// The share of deadlines that it meets.
    #[serde(default)]
    pub reliability: Reliability,
    /// The record of its verified results.
    #[serde(default)]
    pub trust: Trust,
    /// Trainer errors that it reported.
    pub failures: u64,
    /// Trainer errors since its last result that was used.
    pub failures_in_a_row: u32,
    /// The last trainer error.
    pub last_error: Option<String>,
    /// Microseconds of training and evaluating in results that were used.
    pub train_micros: u64,
}

impl Host {
    /// A host that has just enrolled.
    #[must_use]
    pub fn new(
        id: HostId,
        name: String,
        owner: OwnerName,
        token_sha256: Digest,
        at: UnixMillis,
    ) -> Self {
        Self {
            id,
            name,
            owner,
            token: None,
            trusted: false,
            machine: None,
            token_sha256,
            enrolled_at: at,
            seen_at: UnixMillis(0),
            revoked: false,
            blocked: false,
            live: BTreeSet::new(),
            used: 0,
            expired: 0,
            reliability: Reliability::default(),
            trust: Trust::default(),
            failures: 0,
            failures_in_a_row: 0,
            last_error: None,
            train_micros: 0,
        }
    }

    /// May it get new work, as far as operators say?
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        !self.revoked && !self.blocked
    }

    /// The last time for which the journal says that it was there.
    #[must_use]
    pub fn last_known_at(&self) -> UnixMillis {
        self.enrolled_at.max(self.seen_at)
    }
}
