//! The network traffic of a server since it started, and what the server refused.

use serde::{Deserialize, Serialize};

/// Counts of one server since it started. They only grow, but for `open_connections` and `body_bytes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct TrafficView {
    /// Bytes of blobs that came.
    pub received_bytes: u64,
    /// Bytes of blobs that went out.
    pub sent_bytes: u64,
    /// Checkpoints that hosts have uploaded.
    pub checkpoint_uploads: u64,
    /// Blobs that hosts have downloaded, or were sent to the store for.
    pub blob_downloads: u64,
    /// Connections that were admitted.
    pub connections: u64,
    /// Of these, the ones that are open now.
    pub open_connections: u64,
    /// Requests whose head came.
    pub requests: u64,
    /// Bytes of bodies that are in memory now, before they are understood.
    pub body_bytes: u64,
    /// Requests with an unknown token, or without one.
    pub failed_authentications: u64,
    /// Machines that became hosts.
    pub enrolments: u64,
    /// Refusals, by reason.
    pub refused: RefusalCounts,
}

/// Refusals since the server started, by the limit that was reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RefusalCounts {
    /// Connections beyond all that the server may have. They were told so.
    pub connections: u64,
    /// Connections beyond those of one address. They were told so.
    pub connections_of_address: u64,
    /// Connections that were closed at once: too many were being told so.
    pub connections_closed: u64,
    /// Requests from an address that had sent too many unknown tokens.
    pub authentications: u64,
    /// Enrolments beyond the rate of an address or of a token.
    pub enrolments: u64,
    /// Requests whose bodies would have taken too much memory.
    pub bodies: u64,
    /// Connections that were closed because nothing came, or nothing was read, for too long.
    pub too_slow: u64,
}
