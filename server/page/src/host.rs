//! A host: its slots now, its speeds, its cache, how far it is relied on, and what went wrong there.

use crate::{Viewer, failures, frame, hosts, words};
use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    ids::HostId,
    inventory::{Measured, Workload},
    quantity::to_u64,
    view::{CachedOfJob, DeviceView, FailureView, HeldView, HostDetail, HostState, HostView},
};

/// Floating-point operations in a gigaflop.
const GIGA: f64 = 1e9;
/// The interval in seconds at which a part is asked for again that shows what heartbeats say. Other parts are asked for when the
/// journal changes, which heartbeats don't: values of heartbeats belong in `leases`.
const USAGE_SECONDS: u32 = 10;
/// Shards of a job that are named; more are counted.
const MAX_NAMED_SHARDS: usize = 40;

/// The whole page. `failures`: those of all hosts.
#[must_use]
pub fn page(detail: &HostDetail, failures: &[FailureView], viewer: Viewer) -> Markup {
    let host = &detail.host;
    let part = |name: &str| format!("/hosts/{}?part={name}", host.host);
    let section = |id: &str, title: &str, every: Option<u32>, content: Markup| {
        let heading = format!("{id}-title");
        html! {
            section aria-labelledby=(heading) {
                h2 id=(heading) { (title) }
                div id=(id) data-live=(part(id)) data-every=[every] { (content) }
            }
        }
    };
    let content = html! {
        h1 { (host.name) " " span.hint { "host " (host.host) @if !host.owner.is_default() { " of " (host.owner) } } }
        section #head data-live=(part("head")) { (head(host, viewer)) }
        (section("leases", "Slots now", Some(USAGE_SECONDS), leases(host)))
        (section("devices", "Speeds", None, devices(host)))
        (section("cache", "Cache", None, cache(detail)))
        (section("errors", "Errors", None, errors(host.host, failures)))
    };
    frame::page(&host.name, "/hosts", &content)
}

/// The host's state and its record, and the buttons for it.
#[must_use]
pub fn head(host: &HostView, viewer: Viewer) -> Markup {
    let rate = |bytes: Option<u64>| {
        bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{}/s", figures::bytes(bytes)))
    };
    html! {
        p {
            (words::state(host.status())) " "
            @if let HostState::Resting { until } = host.state { span.hint { "gets work again " (words::time(until)) } " " }
            @if let Some(why) = &host.waiting { span.hint { (why) } }
        }
        @if let Some(found_at) = host.copy_found_at {
            p { (figures::counted(host.copies, "other machine")) " had a copy of its identity, last " (words::time(found_at)) ", and had to enrol anew." }
        }
        dl.figures {
            div { dt { "Seen" } dd { @match host.seen_at { Some(at) => (words::time(at)), None => "not since the server started" } } }
            div { dt { "Slots" } dd { (hosts::running(host)) " of " (host.slots) " busy" } }
            div { dt { "Results used" } dd { (figures::count(host.used)) } }
            div { dt { "Leases that ran out" } dd { (figures::count(host.expired)) } }
            div {
                dt { "Deadlines kept" }
                dd { @match host.reliability { Some(ratio) => { (ratio / 10) " %" } None => "none yet" } }
            }
            div {
                dt { "Trust" }
                dd { (trust(host)) @if host.alone { ", " span.hint { "alone in its numeric class: no trial of a job that verifies its results begins there" } } }
            }
            div { dt { "Trained" } dd { (figures::duration(host.train_micros / 1000)) " of slots" } }
            div { dt { "From and to the server" } dd { (rate(host.links.download)) ", " (rate(host.links.upload)) } }
        }
        @if viewer.may_administer() && host.state != HostState::Revoked { (buttons(host)) }
    }
}

/// Results that other hosts came to as well or not, and hops that nobody confirmed.
fn trust(host: &HostView) -> String {
    let record = record(host);
    match host.verified_rate {
        Some(1000..) => format!("{record}; all its results are verified by default"),
        Some(rate) => {
            format!("{record}; 1 in {} of its results is verified by default", 1000 / rate.max(1))
        }
        None => record,
    }
}

fn record(host: &HostView) -> String {
    let unverified = match host.unverified {
        0 => String::new(),
        hops => format!(", {hops} hops taken in unverified"),
    };
    let verified = match (host.confirmed, host.refuted) {
        (0, 0) => "no result was verified yet".to_owned(),
        (confirmed, refuted) => {
            let doubt = match host.suspects.len() {
                0 => String::new(),
                suspects => format!(", {suspects} in doubt"),
            };
            format!(
                "{confirmed} confirmed ({} in a row), {refuted} refuted{doubt}",
                host.confirmed_in_row
            )
        }
    };
    format!("{verified}{unverified}")
}

fn buttons(host: &HostView) -> Markup {
    let address = format!("/hosts/{}", host.host);
    let button = |action: &str, text: &str| {
        html! { form method="post" action=(address) { input type="hidden" name="action" value=(action); button { (text) } } }
    };
    html! {
        div.buttons {
            @if host.blocked { (button("unblock", "Unblock")) }
            @else {
                details #block {
                    summary { "Block" }
                    p { "It gets no new work until it is unblocked. What it holds goes on." }
                    (button("block", "Block this host"))
                }
            }
            details #revoke {
                summary { "Revoke" }
                p { "Its right to work ends for ever, and others do what it holds." }
                (button("revoke", "Revoke this host"))
            }
        }
    }
}

/// The leases that the host holds: the work of its slots.
#[must_use]
pub fn leases(host: &HostView) -> Markup {
    if host.leases.is_empty() {
        return html! { p.hint { "It holds no leases." } };
    }
    html! {
        div.wide tabindex="0" role="region" aria-label="Leases that it holds" {
            table {
                thead { tr {
                    th.number scope="col" { "Lease" } th scope="col" { "Job" } th.number scope="col" { "Trial" }
                    th scope="col" { "Unit" } th scope="col" { "State" } th.number scope="col" { "For" }
                    th scope="col" { "Takes" }
                } }
                tbody {
                    @for lease in &host.leases {
                        tr #{ "lease-" (lease.lease) } {
                            th.number scope="row" { (lease.lease) }
                            td { a href={ "/jobs/" (lease.job) } { "job " (lease.job) } }
                            td.number { (lease.trial) }
                            td { (lease.unit) }
                            td { (words::state(if lease.running { "running" } else { "waits" })) }
                            td.number { (figures::duration(lease.age.0)) }
                            td { (taken(lease)) }
                        }
                    }
                }
            }
        }
    }
}

/// The resources of the host that a running unit takes, and the unit's CPU share.
fn taken(lease: &HeldView) -> String {
    let usage = lease.usage.map(|usage| usage.to_string());
    let cpu_share = lease.cpu_share.map(|cpu_share| cpu_share.to_string());
    usage.into_iter().chain(cpu_share).collect::<Vec<_>>().join("; ")
}

/// How fast it is: by class of its arithmetic, and as measured by workload.
#[must_use]
pub fn devices(host: &HostView) -> Markup {
    if host.devices.is_empty() {
        return html! { p.hint { "It hasn't said what it has." } };
    }
    html! {
        div.wide tabindex="0" role="region" aria-label="Speeds by class" {
            table {
                thead { tr {
                    th scope="col" { "Device" } th.number scope="col" { "Slots" } th scope="col" { "Memory" } th scope="col" { "Class" }
                    th.number scope="col" { "Gflop/s" } th.number scope="col" { "Estimates off by" } th scope="col" { "Engines" }
                } }
                tbody { @for device in &host.devices { (classes(device)) } }
            }
        }
        @if host.devices.iter().any(|device| !device.measured.is_empty()) {
            div.wide tabindex="0" role="region" aria-label="Speeds by workload" {
                table {
                    thead { tr {
                        th scope="col" { "Workload" } th scope="col" { "Device" } th.number scope="col" { "Rows a second" }
                        th.number scope="col" { "Memory" }
                    } }
                    tbody {
                        @for device in &host.devices { @for measured in &device.measured { (workload(device, measured)) } }
                    }
                }
            }
        }
    }
}

/// A row for each class of a device.
fn classes(device: &DeviceView) -> Markup {
    let engines: Vec<&str> = device.engines.iter().map(|engine| engine.name.as_str()).collect();
    let mut of: Vec<(String, f64)> = device
        .classes
        .iter()
        .map(|class| {
            (format!("{} {}", class.instructions, class.numeric_class.short()), class.flops)
        })
        .collect();
    if of.is_empty() {
        of.push((device.numeric_class.short(), device.flops));
    }
    html! {
        @for (class, flops) in of {
            tr {
                th scope="row" { (device.name) }
                td.number { (device.slots) }
                td { @if let Some(memory) = device.memory { (figures::bytes(memory)) } }
                td { (class) }
                td.number { (format!("{:.1}", flops / GIGA)) }
                td.number { @if let Some(off) = device.estimate_error { "±" (off.div_ceil(10)) " %" } }
                td { (engines.join(", ")) }
            }
        }
    }
}

fn workload(device: &DeviceView, measured: &Measured) -> Markup {
    let Workload { model, shape, batch_size, .. } = &measured.workload;
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let rows = measured.nanos_per_row.and_then(|nanos| 1_000_000_000_u64.checked_div(nanos));
    html! {
        tr {
            th scope="row" { (model.name()) " over " (shape.join(" × ")) ", batches of " (batch_size) }
            td { (device.name) }
            td.number { @if let Some(rows) = rows { (figures::count(rows)) } }
            td.number {
                @if measured.out_of_memory { span.error { "too little" } }
                @else if let Some(peak) = measured.peak_memory { (figures::bytes(peak)) }
            }
        }
    }
}

/// The content of the host's cache.
#[must_use]
pub fn cache(detail: &HostDetail) -> Markup {
    html! {
        p.hint {
            (hosts::cache(&detail.host))
            @if detail.other_blobs > 0 { "; " (figures::counted(detail.other_blobs, "blob")) " of no job that there is" }
        }
        @if !detail.cache.is_empty() {
            div.wide tabindex="0" role="region" aria-label="Cache by jobs" {
                table {
                    thead { tr {
                        th scope="col" { "Job" } th scope="col" { "Shards" } th.number scope="col" { "Other data" }
                        th.number scope="col" { "Checkpoints" } th.number scope="col" { "Size" }
                    } }
                    tbody { @for of in &detail.cache { (cached(of)) } }
                }
            }
        }
    }
}

fn cached(of: &CachedOfJob) -> Markup {
    let named: Vec<String> =
        of.shards.iter().take(MAX_NAMED_SHARDS).map(ToString::to_string).collect();
    let more = of.shards.len().saturating_sub(named.len());
    html! {
        tr {
            th scope="row" { a href={ "/jobs/" (of.job) } { (of.name) } " " span.hint { "job " (of.job) } }
            td {
                (of.shards.len()) " of " (of.of_shards)
                @if !named.is_empty() { ": " (named.join(", ")) @if more > 0 { " and " (figures::count(to_u64(more))) " more" } }
            }
            td.number { (of.other_data) }
            td.number { (of.checkpoints) }
            td.number { (figures::bytes(of.bytes)) }
        }
    }
}

/// The failures on the host, by error. `failures`: those of all hosts.
#[must_use]
pub fn errors(host: HostId, failures: &[FailureView]) -> Markup {
    let here: Vec<&FailureView> = failures.iter().filter(|failure| failure.host == host).collect();
    if here.is_empty() {
        return html! { p.hint { "No errors that this server has heard of." } };
    }
    failures::table(&failures::by_host(&here), "Errors of this host", false)
}
