//! A trial: its value, its curves, where it has been, what it comes from, and the errors of trainers at it.

use super::{
    gantt::{Timeline, gantt},
    leaders,
    tab::Tab,
    trial_buttons::{Back, changes, checkpoints},
};
use crate::{
    Viewer,
    address::{of_trial, part_of_trial},
    failures, frame, words,
};
use maud::{Markup, html};
use sojourn_protocol::{
    digest::BlobRef,
    figures,
    ids::HostId,
    trial_name,
    unit::Origin,
    view::{FailureView, HopRecord, JobDetail, TrialHistory, TrialView, Verification},
};

/// Hops that the page lists: the last ones.
const HOPS: usize = 50;

/// The content of a trial's page.
#[derive(Debug)]
pub struct Parts {
    /// The trial's job.
    pub job: JobDetail,
    /// All trials of the job, the trial among them.
    pub trials: Vec<TrialView>,
    /// How it came to be.
    pub history: TrialHistory,
    /// The trial's leases.
    pub timeline: Timeline,
    /// The errors of trainers at it.
    pub failures: Vec<FailureView>,
}

/// The page.
#[must_use]
pub fn page(parts: &Parts, trial: &TrialView, viewer: Viewer) -> Markup {
    let (job, number) = (&parts.job.summary, trial.trial);
    let part = |name: &str| part_of_trial(job.job, number, name);
    let content = html! {
        nav.crumbs aria-label="Where this is" {
            a href=(Tab::Overview.address(job.job)) { (job.name) } " › " a href=(Tab::Trials.address(job.job)) { "Trials" }
        }
        h1 { "Trial " (number) " " span.hint { (trial.arch) " " (trial_name::choices_text(&trial.choices)) } }
        section #head data-live=(part("head")) { (head(&parts.job, trial, viewer)) }
        div.cards {
            section.card.main aria-labelledby="curves-title" {
                h2 #curves-title { "Curves" }
                div.chart #trial-curves data-chart="trial" data-from=(part("curves")) data-metric=(job.metric) { }
            }
            section.card aria-labelledby="values-title" { h2 #values-title { "Settings" } (settings(trial)) }
            section.card aria-labelledby="lineage-title" {
                h2 #lineage-title { "Lineage" }
                div #lineage data-live=(part("lineage")) { (lineage(parts, trial)) }
            }
        }
        section aria-labelledby="hops-title" {
            h2 #hops-title { "Hops" }
            div #hops data-live=(part("hops")) { (hops(&parts.history, &parts.timeline)) }
        }
        section aria-labelledby="gantt-title" {
            h2 #gantt-title { "Leases" }
            div #gantt data-live=(part("gantt")) { (gantt(&parts.timeline)) }
        }
        section aria-labelledby="failures-title" {
            h2 #failures-title { "Failures" }
            div #failures data-live=(part("failures")) { (failed(&parts.failures)) }
        }
        p { a href={ (Tab::Events.address(job.job)) "?trial=" (number) } { "Events of this trial" } }
    };
    frame::page(&format!("Trial {number} of {}", job.name), "", &content)
}

/// How far the trial is, its value, and the buttons for it.
#[must_use]
pub fn head(job: &JobDetail, trial: &TrialView, viewer: Viewer) -> Markup {
    let summary = &job.summary;
    let is_best = summary.best.as_ref().is_some_and(|best| best.trial == trial.trial);
    html! {
        p.standing { (leaders::state(trial)) @if is_best { " " span.mark { "★ the best trial of the job" } } }
        dl.headline {
            div { dt { "Epochs" } dd { (words::progress("", trial.epoch.0.into(), trial.epochs.into())) } }
            div { dt { "Hops" } dd { (figures::count(trial.hops)) } }
            div {
                dt { "Best " (summary.metric) }
                dd {
                    @match &trial.best {
                        Some(best) => { strong.large { (words::metric(Some(best.value))) } ", epoch " (best.epoch.0 + 1) }
                        None => span.hint { "no epoch is evaluated yet" },
                    }
                }
            }
            div { dt { "Checkpoints" } dd { (checkpoints(summary.job, trial)) @if trial.checkpoint.is_none() { span.hint { "none yet" } } } }
        }
        @if viewer.may_change(summary) { div.buttons { (changes(summary, &job.spec.search, trial, Back::Trial)) } }
    }
}

fn settings(trial: &TrialView) -> Markup {
    html! {
        table.pairs {
            tbody {
                tr { th scope="row" { "model" } td { (trial.arch) } }
                @for (key, value) in &trial.choices {
                    tr { th scope="row" title=(key) { (trial_name::last_word(key)) } td { (words::setting(value)) } }
                }
            }
        }
        @if trial.choices.is_empty() { p.hint { "Its job searches no setting." } }
    }
}

/// The trial that it is a clone of, its own clones, and digests of what it began with and has made.
#[must_use]
pub fn lineage(parts: &Parts, trial: &TrialView) -> Markup {
    let job = parts.job.summary.job;
    let clones = parts
        .trials
        .iter()
        .filter(|other| other.origin.as_ref().is_some_and(|origin| origin.trial == trial.trial));
    let clones: Vec<&TrialView> = clones.collect();
    let digest = |name: &str, blob: BlobRef| {
        html! { tr { th scope="row" { (name) } td { code.digest { (blob.sha256) } " " span.hint { (figures::bytes(blob.bytes)) } } } }
    };
    let link = |of: &TrialView| html! { a href=(of_trial(job, of.trial)) { "trial " (of.trial) } };
    html! {
        @let ancestors = ancestors(trial, &parts.trials);
        @if ancestors.is_empty() { p { "Began from " @if parts.history.initial_weights.is_some() { "given weights." } @else { "random weights." } } }
        @for (origin, of) in &ancestors {
            p { "Clone of " (link(of)) " after " (figures::counted(origin.epochs.into(), "epoch")) "." }
        }
        @if !clones.is_empty() { p { "Clones: " @for (at, of) in clones.iter().enumerate() { @if at > 0 { ", " } (link(of)) } "." } }
        table.pairs {
            tbody {
                @if let Some(blob) = parts.history.initial_weights { (digest("initial weights", blob)) }
                @if let Some(best) = &trial.best { (digest("best checkpoint", best.checkpoint)) }
                @if let Some(last) = trial.checkpoint { (digest("last checkpoint", last)) }
                @if let Some(class) = trial.numeric_class { tr { th scope="row" { "numeric class" } td { code.digest { (class) } } } }
            }
        }
    }
}

/// The trials that a trial comes from by cloning, the nearest first.
fn ancestors<'a>(trial: &'a TrialView, all: &'a [TrialView]) -> Vec<(&'a Origin, &'a TrialView)> {
    let mut found = Vec::new();
    let mut at = trial;
    // A clone is newer than its origin, so this ends.
    while let Some(origin) = &at.origin {
        let Some(of) = all.iter().find(|of| of.trial == origin.trial && of.trial < at.trial) else {
            break;
        };
        found.push((origin, of));
        at = of;
    }
    found
}

/// The hops that made its versions, the last first.
#[must_use]
pub fn hops(history: &TrialHistory, timeline: &Timeline) -> Markup {
    if history.hops.is_empty() {
        return html! { p.hint { "No hop is in its model yet." } };
    }
    html! {
        @if history.hops.len() > HOPS {
            p.hint { "The last " (HOPS) " of " (history.hops.len()) "; " code { "sojourn export " (history.job) " --csv tables" } " writes all." }
        }
        div.wide tabindex="0" role="region" aria-label="Hops of the trial" {
            table {
                thead {
                    tr {
                        th.number scope="col" { "Version" }
                        th.number scope="col" { "Epoch" }
                        th scope="col" { "Shards" }
                        th scope="col" { "Host" }
                        th scope="col" { "Reported" }
                        th scope="col" { "Under lease for" }
                        th scope="col" { "Checkpoint" }
                    }
                }
                tbody { @for hop in history.hops.iter().rev().take(HOPS) { (hop_of(hop, timeline)) } }
            }
        }
    }
}

fn hop_of(hop: &HopRecord, timeline: &Timeline) -> Markup {
    let lease = timeline.leases.iter().find(|bar| bar.lease == hop.lease);
    let shards: Vec<String> = hop.shards().map(|shard| shard.to_string()).collect();
    html! {
        tr #{ "version-" (hop.version) } {
            th.number scope="row" { (hop.version) }
            td.number { (hop.epoch().0 + 1) }
            td { (shards.join(", ")) }
            td { (host(hop.host, timeline)) }
            td { @match lease { Some(bar) => (words::time(bar.to)), None => span.hint { "earlier" } } }
            td { @if let Some(bar) = lease { (figures::duration((bar.to - bar.from).0)) } }
            td {
                code.digest title=(hop.checkpoint.sha256) { (short(&hop.checkpoint)) }
                @match hop.verified {
                    Some(Verification::Confirmed) => " confirmed",
                    Some(Verification::Unverified) => { " " strong.error { "unverified" } }
                    None => {}
                }
            }
        }
    }
}

fn host(host: HostId, timeline: &Timeline) -> Markup {
    html! {
        @match timeline.names.get(&host) {
            Some(name) => { a href={ "/hosts/" (host) } { (name) } }
            None => { "host " (host) }
        }
    }
}

/// The first digits of a digest.
fn short(blob: &BlobRef) -> String {
    blob.sha256.to_string().chars().take(12).collect()
}

/// The errors of trainers at it, grouped.
#[must_use]
pub fn failed(all: &[FailureView]) -> Markup {
    let all: Vec<&FailureView> = all.iter().collect();
    html! {
        @if all.is_empty() { p.hint { "No trainer has failed at it, as far as this server has heard." } }
        @else { (failures::table(&failures::by_error(&all), "Failures of the trial", false)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::leaders::tests::trial;
    use sojourn_protocol::ids::TrialId;

    fn clone(number: u32, of: u32) -> TrialView {
        let digest = "486ea46224d1bb4fb680f34f7c9ad96a8f24ec88be73ea8e5a6c65260e9cb8a7";
        let origin = serde_json::from_value(serde_json::json!({
            "trial": of, "epochs": 2, "version": 2, "step": 0, "checkpoint": { "sha256": digest, "bytes": 1 },
        }));
        TrialView { origin: origin.ok(), ..trial(number, 0.1) }
    }

    #[test]
    fn the_origins_of_a_clone_are_found_the_nearest_first() {
        let all = [trial(0, 0.1), clone(1, 0), trial(2, 0.1), clone(3, 1)];
        let found = |of: &TrialView| -> Vec<TrialId> {
            ancestors(of, &all).into_iter().map(|(_, trial)| trial.trial).collect()
        };
        assert_eq!(found(&all[3]), [TrialId(1), TrialId(0)]);
        assert_eq!(found(&all[2]), []);
        assert_eq!(found(&clone(3, 3)), [], "a trial is no clone of itself");
    }
}
