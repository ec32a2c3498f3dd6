//! The metrics of what the server around the core counts: journal, disks, uploads, network.

use crate::{shell::ShellCounts, storage_watch::WatchedDisk, upload_quota::Uploaded};
use sojourn_core::Invariant;
use sojourn_programs::metrics::{MetricWriter, label};
use sojourn_protocol::view::{RefusalCounts, TrafficView};
use std::fmt;

/// How the journal keeps up, and what has failed.
pub(super) fn journal(
    writer: &mut MetricWriter<'_>,
    counts: &ShellCounts,
    unwritten: u64,
) -> fmt::Result {
    let help = "Time of an append to the journal with its sync, since the server's start. An append has the events of many requests.";
    writer.histogram("journal_append_duration_seconds", help, counts.append_seconds())?;
    let help = "Events that are decided and not yet durable.";
    writer.gauge("journal_unwritten_events", help, unwritten)?;
    let help = "Times that the journal could not be written or opened, since the server's start.";
    writer.counter("journal_failures", help, counts.journal_failures())?;
    let help =
        "Times that the core failed and was read anew from the journal, since the server's start.";
    writer.counter("core_faults", help, counts.core_faults())?;
    writer.gauges(
        "invariant_violations",
        "1 where the state broke this invariant when it was read from the journal last, and an operator has accepted that.",
        Invariant::ALL.map(|invariant| {
            (label("invariant", invariant.id()), u64::from(counts.is_violated(invariant)))
        }),
    )
}

/// Disks, and what lies there that no report has named.
pub(super) fn storage(
    writer: &mut MetricWriter<'_>,
    disks: &[WatchedDisk],
    (held, limit): (Uploaded, Uploaded),
) -> fmt::Result {
    let of = |of: fn(&WatchedDisk) -> u64| {
        disks.iter().map(move |disk| (label("folder", disk.folder), of(disk)))
    };
    let help = "Free bytes of the disk that a folder of the server is on.";
    writer.gauges("disk_free_bytes", help, of(|disk| disk.space.free))?;
    writer.gauges("disk_size_bytes", "Bytes of that disk.", of(|disk| disk.space.total))?;
    let help = "Bytes to keep free there: with less no work is given out, with a quarter no checkpoints are taken.";
    writer.gauges("disk_reserve_bytes", help, of(|disk| disk.reserve))?;
    let help = "Uploads of hosts that no report has named yet.";
    writer.gauge("unreported_uploads", help, held.uploads)?;
    let help = "Most uploads that no report has named; beyond it hosts are refused.";
    writer.gauge("unreported_uploads_limit", help, limit.uploads)?;
    let help = "Bytes of the uploads that no report has named yet.";
    writer.gauge("unreported_upload_bytes", help, held.bytes)?;
    let help = "Most bytes of uploads that no report has named; beyond it hosts are refused.";
    writer.gauge("unreported_upload_limit_bytes", help, limit.bytes)
}

/// The metrics of the traffic over the network, and of what was refused.
pub(super) fn network(writer: &mut MetricWriter<'_>, traffic: &TrafficView) -> fmt::Result {
    let TrafficView {
        received_bytes,
        sent_bytes,
        checkpoint_uploads,
        blob_downloads,
        connections,
        open_connections,
        // The histogram of requests counts them.
        requests: _,
        body_bytes,
        failed_authentications,
        enrolments,
        refused,
    } = *traffic;
    let help = "Bytes of blobs that came through this server, since its start.";
    writer.counter("received_bytes", help, received_bytes)?;
    let help = "Bytes of blobs that went out through this server, since its start.";
    writer.counter("sent_bytes", help, sent_bytes)?;
    let help = "Checkpoints that hosts have uploaded, since the server's start.";
    writer.counter("checkpoint_uploads", help, checkpoint_uploads)?;
    let help =
        "Blobs that hosts have downloaded or were sent to the store for, since the server's start.";
    writer.counter("blob_downloads", help, blob_downloads)?;
    let help = "Connections that were admitted, since the server's start.";
    writer.counter("connections", help, connections)?;
    writer.gauge("open_connections", "Admitted connections that are open.", open_connections)?;
    let help = "Bytes of requests' bodies that are in memory before they are understood.";
    writer.gauge("request_body_bytes", help, body_bytes)?;
    let help = "Requests with an unknown token or without one, since the server's start.";
    writer.counter("failed_authentications", help, failed_authentications)?;
    let help = "Machines that became hosts, since the server's start.";
    writer.counter("enrolments", help, enrolments)?;
    let RefusalCounts {
        connections,
        connections_of_address,
        connections_closed,
        authentications,
        enrolments,
        bodies,
        too_slow,
    } = refused;
    let reasons = [
        ("connections", connections),
        ("connections-of-address", connections_of_address),
        ("connections-closed", connections_closed),
        ("authentications", authentications),
        ("enrolments", enrolments),
        ("bodies", bodies),
        ("too-slow", too_slow),
    ];
    let help = "Connections and requests that were refused because a limit was reached, since the server's start.";
    let reasons = reasons.map(|(reason, count)| (label("reason", reason), count));
    writer.counters("refusals", help, reasons)
}
