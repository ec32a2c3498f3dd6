//! The events of a job: sentences by hour and kind, which filters narrow.

use crate::words;
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sojourn_protocol::{
    figures,
    ids::{HostId, JobId, TrialId},
    quantity::to_u64,
    time::UnixMillis,
    view::EventView,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// Events of one hour and kind that are listed: the last ones.
const LISTED: usize = 60;
const HOUR: u64 = 3_600_000;

/// The kind of an event, in the order in which an hour has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A user's action.
    People,
    /// Something that went wrong.
    Trouble,
    /// A decision of the search.
    Search,
    /// An epoch was evaluated.
    Evaluations,
    /// Leases and the results of hops.
    Leases,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::People, Self::Trouble, Self::Search, Self::Evaluations, Self::Leases];

    const fn name(self) -> &'static str {
        match self {
            Self::People => "people",
            Self::Trouble => "trouble",
            Self::Search => "search",
            Self::Evaluations => "evaluations",
            Self::Leases => "leases",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::People => "By people",
            Self::Trouble => "Trouble",
            Self::Search => "Search",
            Self::Evaluations => "Evaluations",
            Self::Leases => "Leases and hops",
        }
    }
}

/// An event, with what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The event.
    pub event: EventView,
    /// The event's kind.
    pub kind: Kind,
    /// The trial that it is about, where that is known.
    pub trial: Option<TrialId>,
    /// The host that it is about, where that is known.
    pub host: Option<HostId>,
}

/// The events that are shown: the query of the page's address. An empty field lets all pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Filter {
    trial: String,
    host: String,
    kind: String,
}

impl Filter {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn shows(&self, entry: &Entry) -> bool {
        let is = |wanted: &str, of: Option<String>| {
            wanted.trim().is_empty() || of.as_deref() == Some(wanted.trim())
        };
        is(&self.trial, entry.trial.map(|trial| trial.to_string()))
            && is(&self.host, entry.host.map(|host| host.to_string()))
            && is(&self.kind, Some(entry.kind.name().to_owned()))
    }

    fn query(&self) -> String {
        let Self { trial, host, kind } = self;
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        format!("trial={}&host={}&kind={}", encoded(trial), encoded(host), encoded(kind))
    }
}

/// The tab of a job's page. `has_earlier`: are there events before these?
#[must_use]
pub fn tab(job: JobId, entries: &[Entry], has_earlier: bool, filter: &Filter) -> Markup {
    html! {
        form.filter method="get" role="search" aria-label="Filter events" {
            label {
                "Kind "
                select name="kind" {
                    option value="" { "all" }
                    @for kind in Kind::ALL { option value=(kind.name()) selected[kind.name() == filter.kind] { (kind.title()) } }
                }
            }
            label { "Trial " input.short name="trial" inputmode="numeric" value=(filter.trial); }
            label { "Host " input.short name="host" inputmode="numeric" value=(filter.host); }
            button { "Show" }
            @if !filter.is_empty() { a href={ "/jobs/" (job) "/events" } { "Show all" } }
        }
        div #events data-live={ "/jobs/" (job) "?part=events&" (filter.query()) } { (list(job, entries, has_earlier, filter)) }
    }
}

/// Events by hour and kind, the last ones first.
#[must_use]
pub fn list(job: JobId, entries: &[Entry], has_earlier: bool, filter: &Filter) -> Markup {
    let mut hours: BTreeMap<(Reverse<u64>, Kind), Vec<&Entry>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| filter.shows(entry)) {
        hours.entry((Reverse(entry.event.at.0 / HOUR), entry.kind)).or_default().push(entry);
    }
    let mut last = None;
    html! {
        @if hours.is_empty() { p.hint { "No such event among the last " (figures::count(to_u64(entries.len()))) "." } }
        @for ((Reverse(hour), kind), group) in &hours {
            @if last.replace(*hour) != Some(*hour) { h2.hour { (hour_of(*hour)) } }
            // Leases are the most, and seldom what somebody looks for.
            details.group id={ "events-" (hour) "-" (kind.name()) } open[*kind != Kind::Leases || !filter.is_empty()] {
                summary { (kind.title()) " " span.hint { (figures::count(to_u64(group.len()))) } }
                ol.events { @for entry in group.iter().rev().take(LISTED) { (line(&entry.event)) } }
                @if group.len() > LISTED { p.hint { (group.len() - LISTED) " earlier ones of this hour: narrow the filter, or " code { "sojourn events " (job) } } }
            }
        }
        @if has_earlier { p.hint { "Earlier events: " code { "sojourn events " (job) } } }
    }
}

/// `2026-12-01 14:00 UTC`, of the hours since 1970.
fn hour_of(hour: u64) -> String {
    let whole = figures::timestamp(UnixMillis(hour.saturating_mul(HOUR)));
    let (date, time) = whole.split_once('T').unwrap_or((&whole, ""));
    format!("{date} {} UTC", time.get(..5).unwrap_or_default())
}

fn line(event: &EventView) -> Markup {
    html! {
        li #{ "event-" (event.position) } {
            (words::time(event.at)) " " span title=(event.kind) { (event.sentence()) }
            @if let Some(decision) = &event.decision { " " details { summary { "why" } p { (decision) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(position: u64, at: u64, kind: Kind, trial: u32) -> Entry {
        let event = serde_json::from_value(json!({
            "position": position, "at": at, "kind": "a-kind", "event": {}, "text": format!("sentence {position}"),
        }));
        Entry { event: event.unwrap(), kind, trial: Some(TrialId(trial)), host: None }
    }

    #[test]
    fn events_stand_by_hour_and_kind_the_last_first() {
        let all = [
            entry(1, 10, Kind::People, 0),
            entry(2, HOUR + 10, Kind::Leases, 1),
            entry(3, HOUR + 20, Kind::People, 1),
            entry(4, HOUR + 30, Kind::People, 2),
        ];
        let text = list(JobId(1), &all, false, &Filter::default()).into_string();
        let places: Vec<usize> =
            [4, 3, 2, 1].map(|n| text.find(&format!("sentence {n}<")).unwrap()).into();
        assert!(places.is_sorted(), "{text}");
        assert_eq!(text.matches("1970-01-01 01:00 UTC").count(), 1, "{text}");
        assert_eq!(text.matches(" open").count(), 2, "leases are closed: {text}");
    }

    #[test]
    fn a_filter_shows_the_events_of_a_trial_a_host_or_a_kind() {
        let of_host = Entry { host: Some(HostId(3)), ..entry(9, 1, Kind::Leases, 4) };
        let all = [entry(1, 10, Kind::People, 1), entry(2, 20, Kind::Search, 11), of_host];
        let shown = |filter: Filter| {
            let text = list(JobId(1), &all, false, &filter).into_string();
            [1, 2, 9].map(|n| text.contains(&format!("sentence {n}<")))
        };
        let none = Filter::default;
        assert_eq!(shown(Filter { trial: "1".into(), ..none() }), [true, false, false]);
        assert_eq!(shown(Filter { host: " 3".into(), ..none() }), [false, false, true]);
        assert_eq!(shown(Filter { kind: "search".into(), ..none() }), [false, true, false]);
        assert_eq!(shown(Filter { kind: "x".into(), ..none() }), [false; 3]);
        assert_eq!(shown(none()), [true; 3]);
    }
}
