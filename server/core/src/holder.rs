//! The holder of a token.

use sojourn_protocol::{
    ids::{HostId, JobId, TokenId},
    tokens::Rights,
};

/// The holder of a token, among hosts and the tokens that were issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A host's own token.
    Host(HostId),
    /// A host's own token, which was revoked.
    Revoked,
    /// Machines enrol with it.
    Enroller(TokenId),
    /// A user with these rights.
    User(TokenId, Rights),
    /// A guest: whoever has the token sees the page of this job.
    Guest(TokenId, JobId),
    /// The token was a user's or a guest's, and has expired.
    Expired(TokenId),
}
