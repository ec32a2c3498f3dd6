//! Errors on hosts: by host and error, and by trial and error, with counts and the end of the trainer's log.

use crate::{address::of_trial, frame, words};
use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
    view::{FailureView, HostView},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Rows of a table at most: those that were last.
const MAX_ROWS: usize = 100;
/// Hosts or trials of a row that are named; more are counted.
const MAX_NAMED: usize = 8;

/// Errors that are shown together.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The host or the trial of the errors, as the page shows it; empty on the page of one host.
    of: Markup,
    error: &'a str,
    count: u64,
    last_at: UnixMillis,
    /// Where else they were: trials of a host, or hosts of a trial.
    places: Vec<String>,
    log: Option<&'a str>,
}

/// The page.
#[must_use]
pub fn page(failures: &[FailureView], hosts: &[HostView]) -> Markup {
    let content = html! {
        h1 { "Failures" }
        section #failures data-live="/failures?part=failures" { (list(failures, hosts)) }
    };
    frame::page("Failures", "/failures", &content)
}

/// The part of the page that changes.
#[must_use]
pub fn list(failures: &[FailureView], hosts: &[HostView]) -> Markup {
    if failures.is_empty() {
        return html! { p.hint { "No trainer has failed, as far as this server has heard." } };
    }
    let all: Vec<&FailureView> = failures.iter().collect();
    let names: BTreeMap<HostId, &str> =
        hosts.iter().map(|host| (host.host, host.name.as_str())).collect();
    html! {
        h2 { "By host" }
        (table(&by(&all, |one| one.host, |host| host_link(*host, &names), trial_name), "Failures by host", true))
        h2 { "By trial" }
        (table(
            &by(&all, |one| (one.job, one.trial), |(job, trial)| trial_link(*job, *trial), |one| format!("host {}", one.host)),
            "Failures by trial", true,
        ))
    }
}

/// The failures of one host, grouped by error.
pub(crate) fn by_host<'a>(failures: &[&'a FailureView]) -> Vec<Group<'a>> {
    by(failures, |_| (), |()| Markup::default(), trial_name)
}

/// The failures of one trial, grouped by error.
pub(crate) fn by_error<'a>(failures: &[&'a FailureView]) -> Vec<Group<'a>> {
    by(failures, |_| (), |()| Markup::default(), |one| format!("host {}", one.host))
}

/// Groups failures by a key and their error, the last ones first. `name` shows a key, `place` says where else a failure was.
fn by<'a, K: Ord>(
    failures: &[&'a FailureView],
    key: impl Fn(&FailureView) -> K,
    name: impl Fn(&K) -> Markup,
    place: impl Fn(&FailureView) -> String,
) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(K, &str), Vec<&'a FailureView>> = BTreeMap::new();
    for failure in failures {
        groups.entry((key(failure), failure.error.as_str())).or_default().push(failure);
    }
    let group = |((key, error), all): ((K, &'a str), Vec<&'a FailureView>)| {
        let last = all.iter().max_by_key(|one| one.last_at)?;
        let places: BTreeSet<String> = all.iter().map(|one| place(one)).collect();
        let count = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        let (last_at, log) = (last.last_at, last.log.as_deref());
        Some(Group {
            of: name(&key),
            error,
            count,
            last_at,
            places: places.into_iter().collect(),
            log,
        })
    };
    let mut groups: Vec<Group<'a>> = groups.into_iter().filter_map(group).collect();
    groups.sort_by_key(|group| Reverse(group.last_at));
    groups
}

fn host_link(host: HostId, names: &BTreeMap<HostId, &str>) -> Markup {
    let name = names.get(&host).copied();
    html! { a href={ "/hosts/" (host) } { (name.unwrap_or("forgotten host")) } " " span.hint { "host " (host) } }
}

fn trial_link(job: JobId, trial: TrialId) -> Markup {
    html! { a href=(of_trial(job, trial)) { "trial " (trial) } " " span.hint { "of job " (job) } }
}

fn trial_name(failure: &FailureView) -> String {
    format!("trial {} of job {}", failure.trial, failure.job)
}

/// A table of groups. `is_by`: has it a first column with what they are grouped by?
pub(crate) fn table(groups: &[Group<'_>], label: &str, is_by: bool) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(label) {
            table.failures {
                thead { tr {
                    @if is_by { th scope="col" { "Of" } }
                    th scope="col" { "Error" } th.number scope="col" { "Count" } th scope="col" { "Last" } th scope="col" { "Where" }
                } }
                tbody { @for group in groups.iter().take(MAX_ROWS) { (row(group, is_by)) } }
            }
        }
        @if groups.len() > MAX_ROWS { p.hint { (groups.len() - MAX_ROWS) " more aren't shown." } }
    }
}

fn row(group: &Group<'_>, is_by: bool) -> Markup {
    let named = group.places.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = group.places.len().saturating_sub(MAX_NAMED);
    html! {
        tr {
            @if is_by { th scope="row" { (group.of) } }
            td.error-text {
                (group.error)
                @if let Some(log) = group.log { details { summary { "Log" } pre tabindex="0" { (log) } } }
            }
            td.number { (figures::count(group.count)) }
            td { (words::time(group.last_at)) }
            td { (named) @if more > 0 { " and " (more) " more" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failure(host: u64, trial: u32, error: &str, count: u64, at: u64) -> FailureView {
        serde_json::from_value(json!({
            "host": host, "job": 1, "trial": trial, "kind": "trainer", "error": error, "count": count,
            "first_at": 1, "last_at": at, "lease": 1, "log": format!("log <{at}>"),
        }))
        .unwrap()
    }

    #[test]
    fn failures_are_counted_by_host_and_by_trial_the_last_ones_first() {
        let all = [
            failure(3, 4, "nan", 2, 10),
            failure(3, 5, "nan", 3, 30),
            failure(7, 4, "disk", 1, 20),
        ];
        let all: Vec<&FailureView> = all.iter().collect();
        let of = |groups: &[Group<'_>]| -> Vec<(String, u64, u64, usize)> {
            let one = |group: &Group<'_>| {
                (group.error.to_owned(), group.count, group.last_at.0, group.places.len())
            };
            groups.iter().map(one).collect()
        };
        let by_host = by(&all, |one| one.host, |_| Markup::default(), trial_name);
        assert_eq!(of(&by_host), [("nan".into(), 5, 30, 2), ("disk".into(), 1, 20, 1)]);
        assert_eq!(by_host[0].log, Some("log <30>"), "the log of the last one");
        let by_trial = by(&all, |one| one.trial, |_| Markup::default(), |one| one.host.to_string());
        assert_eq!(of(&by_trial).len(), 3);
        assert_eq!(of(&super::by_host(&all)), of(&by_host));
    }

    #[test]
    fn texts_of_hosts_are_text_and_no_markup() {
        let failures = [failure(3, 4, "<script>x", 1, 10)];
        let text = list(&failures, &[]).into_string();
        assert!(text.contains("&lt;script&gt;x") && text.contains("log &lt;10&gt;"), "{text}");
        assert!(!text.contains("<script"), "{text}");
        assert!(list(&[], &[]).into_string().contains("No trainer has failed"));
    }
}
