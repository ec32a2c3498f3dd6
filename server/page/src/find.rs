//! Finding jobs, trials, hosts and settings by words.

use crate::{address::of_trial, frame, job, words};
use maud::{Markup, html};
use serde::Deserialize;
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    view::{HostView, JobDetail, JobView},
};

/// Jobs or hosts that are listed at most.
const MAX_LISTED: usize = 50;
/// The newest jobs, so many, have their settings looked through.
pub const MAX_SEARCHED: usize = 20;

/// `?q=WORDS`: what is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Query {
    q: String,
}

impl Query {
    /// A trial that is named as `3/7`: trial 7 of job 3.
    #[must_use]
    pub fn trial(&self) -> Option<(JobId, TrialId)> {
        let (job, trial) = self.q.trim().split_once('/')?;
        Some((JobId(job.trim().parse().ok()?), TrialId(trial.trim().parse().ok()?)))
    }

    /// A number alone: a job's or a host's.
    fn number(&self) -> Option<u64> {
        self.q.trim().parse().ok()
    }

    fn words(&self) -> Vec<String> {
        self.q.split_whitespace().map(str::to_lowercase).collect()
    }

    fn is_empty(&self) -> bool {
        self.q.trim().is_empty()
    }
}

/// The things that a query may find.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'a> {
    /// All jobs.
    pub jobs: &'a [JobView],
    /// Jobs of which the settings are known, the newest first; [`MAX_SEARCHED`] at most.
    pub details: &'a [JobDetail],
    /// All hosts.
    pub hosts: &'a [HostView],
    /// The trial that the query [names](Query::trial), where it is there.
    pub trial: Option<(JobId, TrialId)>,
}

/// A setting that a job's search varies.
#[derive(Debug, PartialEq)]
struct Setting<'a> {
    job: &'a JobView,
    name: String,
}

/// All that was found.
#[derive(Debug, Default, PartialEq)]
pub struct Found<'a> {
    trial: Option<(JobId, TrialId)>,
    jobs: Vec<&'a JobView>,
    hosts: Vec<&'a HostView>,
    settings: Vec<Setting<'a>>,
}

impl<'a> Found<'a> {
    /// Everything that a query finds. A job or a host is found by its number, or where each of the words is in its name, its owner's name, its state
    /// or its note; a setting where one of its job's search has all the words.
    #[must_use]
    pub fn of(query: &Query, searched: Searched<'a>) -> Self {
        if query.is_empty() {
            return Self::default();
        }
        let (number, words) = (query.number(), query.words());
        let has_all = |texts: &[&str]| {
            let texts = texts.join("\n").to_lowercase();
            words.iter().all(|word| texts.contains(word))
        };
        let is_job = |job: &&JobView| {
            let owner = job.owner.as_ref().map(ToString::to_string).unwrap_or_default();
            number == Some(job.job.0) || has_all(&[&job.name, &owner, job.state.name(), &job.note])
        };
        let is_host = |host: &&HostView| {
            number == Some(host.host.0)
                || has_all(&[&host.name, &host.owner.to_string(), host.status()])
        };
        let settings = searched.details.iter().flat_map(|detail| {
            let names = job::searched_settings(detail);
            names.into_iter().map(|name| Setting { job: &detail.summary, name })
        });
        Self {
            trial: searched.trial,
            jobs: searched.jobs.iter().rev().filter(is_job).take(MAX_LISTED).collect(),
            hosts: searched.hosts.iter().filter(is_host).take(MAX_LISTED).collect(),
            settings: settings
                .filter(|setting| has_all(&[&setting.name]))
                .take(MAX_LISTED)
                .collect(),
        }
    }

    /// The page of what was found, where that is one thing alone.
    #[must_use]
    pub fn only(&self) -> Option<String> {
        match (self.trial, &self.jobs[..], &self.hosts[..], &self.settings[..]) {
            (Some((job, trial)), ..) => Some(of_trial(job, trial)),
            (None, [job], [], []) => Some(of_job(job.job)),
            (None, [], [host], []) => Some(of_host(host.host)),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn of_job(job: JobId) -> String {
    format!("/jobs/{job}")
}

fn of_host(host: HostId) -> String {
    format!("/hosts/{host}")
}

/// The field, and what was found.
#[must_use]
pub fn page(query: &Query, found: &Found<'_>) -> Markup {
    let content = html! {
        h1 { "Find" }
        form.filter role="search" method="get" action="/find" {
            input type="search" name="q" value=(query.q) autofocus aria-label="Jobs, trials, hosts, settings" aria-describedby="find-hint";
            button { "Find" }
        }
        p.hint #find-hint {
            "A name, an owner, a state, a word of a note, a setting, or a number. " code { "3/7" } " is trial 7 of job 3."
        }
        @if !query.is_empty() { (results(found)) }
    };
    frame::page("Find", "/find", &content)
}

fn results(found: &Found<'_>) -> Markup {
    html! {
        @if found.is_empty() { p role="status" { "Nothing is called that." } }
        @if !found.jobs.is_empty() {
            h2 { "Jobs" }
            ul.links {
                @for job in &found.jobs {
                    li {
                        a.named href=(of_job(job.job)) { (job.name) } " "
                        span.hint { "job " (job.job) @if let Some(owner) = &job.owner { " of " (owner) } } " "
                        (words::state(job.state.name()))
                    }
                }
            }
        }
        @if !found.hosts.is_empty() {
            h2 { "Hosts" }
            ul.links {
                @for host in &found.hosts {
                    li {
                        a.named href=(of_host(host.host)) { (host.name) } " " span.hint { "host " (host.host) } " "
                        (words::state(host.status()))
                    }
                }
            }
        }
        @if !found.settings.is_empty() {
            h2 { "Settings" }
            ul.links {
                @for Setting { job, name } in &found.settings {
                    li { a href={ (of_job(job.job)) "/charts" } { (name) } " " span.hint { "of job " (job.job) ", " (job.name) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(job: u64, name: &str) -> JobDetail {
        let mut detail: JobDetail =
            serde_json::from_str(include_str!("../tests/detail.json")).unwrap();
        (detail.summary.job, detail.summary.name) = (JobId(job), name.to_owned());
        detail
    }

    fn query(q: &str) -> Query {
        Query { q: q.to_owned() }
    }

    fn numbers(found: &Found<'_>) -> Vec<u64> {
        found.jobs.iter().map(|job| job.job.0).collect()
    }

    #[test]
    fn jobs_are_found_by_each_of_their_words_and_by_number() {
        let details = [detail(12, "widths of Digits"), detail(3, "digits")];
        let jobs = [details[1].summary.clone(), details[0].summary.clone()];
        let searched = Searched { jobs: &jobs, details: &details, hosts: &[], trial: None };
        let found = |q: &str| Found::of(&query(q), searched);
        // The newest first.
        assert_eq!(numbers(&found("digits")), [12, 3]);
        assert_eq!(numbers(&found("DIGITS wid")), [12]);
        assert_eq!(numbers(&found("3")), [3]);
        assert_eq!(numbers(&found("nothing like it")), Vec::<u64>::new());
        assert!(found("nothing like it").is_empty());
        assert!(found("  ").is_empty(), "without words nothing is found");
        assert_eq!(found("wid").only().as_deref(), Some("/jobs/12"));
        assert_eq!(found("digits").only(), None);
    }

    #[test]
    fn settings_are_found_in_the_searches_that_vary_them() {
        let details = [detail(3, "digits")];
        let searched = Searched { jobs: &[], details: &details, hosts: &[], trial: None };
        let found = Found::of(&query("hidden"), searched);
        let names: Vec<&str> = found.settings.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["model[0].hidden"]);
        let html = page(&query("hidden"), &found).into_string();
        assert!(html.contains("href=\"/jobs/3/charts\""), "{html}");
    }

    #[test]
    fn a_trial_is_named_by_two_numbers_and_its_page_is_gone_to() {
        assert_eq!(query(" 3/7 ").trial(), Some((JobId(3), TrialId(7))));
        for other in ["3", "3/", "/7", "a/b", "3/7/1"] {
            assert_eq!(query(other).trial(), None, "{other}");
        }
        let trial = query("3/7").trial();
        let searched = Searched { jobs: &[], details: &[], hosts: &[], trial };
        assert_eq!(Found::of(&query("3/7"), searched).only().as_deref(), Some("/jobs/3/trials/7"));
    }

    #[test]
    fn what_is_looked_for_is_shown_as_text() {
        let searched = Searched { jobs: &[], details: &[], hosts: &[], trial: None };
        let query = query("<script>\"x\"");
        let html = page(&query, &Found::of(&query, searched)).into_string();
        assert!(
            html.contains("&lt;script&gt;&quot;x&quot;") && !html.contains("<script>\""),
            "{html}"
        );
        assert!(html.contains("Nothing is called that."));
    }
}
