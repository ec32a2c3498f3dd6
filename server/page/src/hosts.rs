//! Hosts: what they are, what they do, and what went wrong there.

use crate::{frame, words};
use maud::{Markup, html};
use sojourn_protocol::{figures, view::HostView};

/// All hosts.
#[must_use]
pub fn page(hosts: &[HostView]) -> Markup {
    let content = html! {
        h1 { "Hosts" }
        section #hosts data-live="/hosts?part=hosts" { (list(hosts)) }
    };
    frame::page("Hosts", "/hosts", &content)
}

/// The part of the page that changes.
#[must_use]
pub fn list(hosts: &[HostView]) -> Markup {
    if hosts.is_empty() {
        let command = "sojourn client --server URL --token TOKEN";
        return html! { p.hint { "No hosts yet: " code { (command) } " on a machine makes one." } };
    }
    html! {
        div.wide tabindex="0" role="region" aria-label="Hosts" {
            table {
                thead {
                    tr {
                        th.number scope="col" { "Host" }
                        th scope="col" { "Name" }
                        th scope="col" { "State" }
                        th scope="col" { "Seen" }
                        th scope="col" { "Slots" }
                        th scope="col" { "Units" }
                        th scope="col" { "Cache" }
                        th.number scope="col" { "Used" }
                        th.number scope="col" { "Ran out" }
                        th scope="col" { "Reliable" }
                        th.number scope="col" { "Trained" }
                        th scope="col" { "Last error" }
                    }
                }
                tbody {
                    @for host in hosts {
                        tr #{ "host-" (host.host) } {
                            td.number { (host.host) }
                            th scope="row" { a href={ "/hosts/" (host.host) } { (host.name) } @if !host.owner.is_default() { " " span.hint { "of " (host.owner) } } }
                            td { (words::state(host.status())) @if let Some(why) = &host.waiting { " " span.hint { (why) } } }
                            td { @if let Some(at) = host.seen_at { (words::time(at)) } }
                            td { (running(host)) " of " (host.slots) " busy" }
                            td {
                                ul.units {
                                    @for lease in &host.leases {
                                        li { a href={ "/jobs/" (lease.job) } { "job " (lease.job) } ": " (lease.unit) }
                                    }
                                }
                            }
                            td { (cache(host)) }
                            td.number { (figures::count(host.used)) }
                            td.number { (figures::count(host.expired)) }
                            td { @if let Some(ratio) = host.reliability { (ratio / 10) " %" } }
                            td.number { (figures::duration(host.train_micros / 1000)) }
                            td { @if let Some(error) = &host.last_error { details { summary { (host.failures) " failed" } pre { (error) } } } }
                        }
                    }
                }
            }
        }
    }
}

pub(crate) fn running(host: &HostView) -> usize {
    host.leases.iter().filter(|lease| lease.running).count()
}

pub(crate) fn cache(host: &HostView) -> String {
    let blobs = figures::counted(host.cached, "blob");
    host.cache
        .map_or_else(|| blobs.clone(), |most| format!("{blobs}, {} at most", figures::bytes(most)))
}
