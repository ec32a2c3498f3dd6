//! Counts since the server started: bytes, connections, refusals. The owner of every counter that describes the network side.

use sojourn_protocol::{
    quantity::to_u64,
    view::{RefusalCounts, TrafficView},
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why the server refuses a connection or a request that may be honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are as many connections as the server may have.
    Connections,
    /// There are as many of this address as one may have.
    ConnectionsOfAddress,
    /// There are too many even of those that are told so.
    ConnectionClosed,
    /// Too many requests with unknown tokens came from this address.
    Authentications,
    /// Too many machines have enrolled, or have fetched the programs that they need for it, from this address or with this token.
    Enrolments,
    /// The bodies of all requests, or of one token, take too much memory.
    Bodies,
    /// No request's head, or no rest of a body or of an answer's reading, came in time.
    TooSlow,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
    uploads: AtomicU64,
    downloads: AtomicU64,
    connections: AtomicU64,
    open_connections: AtomicU64,
    requests: AtomicU64,
    body_bytes: AtomicU64,
    failed_authentications: AtomicU64,
    enrolments: AtomicU64,
    refused_connections: AtomicU64,
    refused_connections_of_address: AtomicU64,
    closed_connections: AtomicU64,
    refused_authentications: AtomicU64,
    refused_enrolments: AtomicU64,
    refused_bodies: AtomicU64,
    too_slow: AtomicU64,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Traffic {
    /// Counts bytes that came as a request's body.
    pub(crate) fn received(&self, bytes: usize) {
        add(&self.received, to_u64(bytes));
    }

    /// Counts bytes that an answer streams.
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.sent, to_u64(bytes));
    }

    /// Counts a host's upload of a checkpoint.
    pub(crate) fn uploaded(&self) {
        add(&self.uploads, 1);
    }

    /// Counts a host's download of a blob.
    pub(crate) fn downloaded(&self) {
        add(&self.downloads, 1);
    }

    /// Counts a connection that was admitted.
    pub(crate) fn connected(&self) {
        add(&self.connections, 1);
        add(&self.open_connections, 1);
    }

    /// Counts the end of an admitted connection.
    pub(crate) fn disconnected(&self) {
        self.open_connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a request.
    pub(crate) fn requested(&self) {
        add(&self.requests, 1);
    }

    /// Counts bytes of a body that are in memory from now on.
    pub(crate) fn body_held(&self, bytes: u64) {
        add(&self.body_bytes, bytes);
    }

    /// Counts bytes of a body that are in memory no more.
    pub(crate) fn body_released(&self, bytes: u64) {
        self.body_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts a request with an unknown token, or without one.
    pub(crate) fn authentication_failed(&self) {
        add(&self.failed_authentications, 1);
    }

    /// Counts a machine that became a host.
    pub(crate) fn enrolled(&self) {
        add(&self.enrolments, 1);
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, reason: Refusal) {
        let counter = match reason {
            Refusal::Connections => &self.refused_connections,
            Refusal::ConnectionsOfAddress => &self.refused_connections_of_address,
            Refusal::ConnectionClosed => &self.closed_connections,
            Refusal::Authentications => &self.refused_authentications,
            Refusal::Enrolments => &self.refused_enrolments,
            Refusal::Bodies => &self.refused_bodies,
            Refusal::TooSlow => &self.too_slow,
        };
        add(counter, 1);
    }

    /// All of them at one moment.
    pub(crate) fn totals(&self) -> TrafficView {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TrafficView {
            received_bytes: now(&self.received),
            sent_bytes: now(&self.sent),
            checkpoint_uploads: now(&self.uploads),
            blob_downloads: now(&self.downloads),
            connections: now(&self.connections),
            open_connections: now(&self.open_connections),
            requests: now(&self.requests),
            body_bytes: now(&self.body_bytes),
            failed_authentications: now(&self.failed_authentications),
            enrolments: now(&self.enrolments),
            refused: RefusalCounts {
                connections: now(&self.refused_connections),
                connections_of_address: now(&self.refused_connections_of_address),
                connections_closed: now(&self.closed_connections),
                authentications: now(&self.refused_authentications),
                enrolments: now(&self.refused_enrolments),
                bodies: now(&self.refused_bodies),
                too_slow: now(&self.too_slow),
            },
        }
    }
}
