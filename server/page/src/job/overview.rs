//! The first tab of a job: is it going well, which trial leads, and why isn't it faster?

use super::{charts, tab::Tab};
use crate::{
    Viewer,
    address::{of_trial, part_of_job},
    page_link, words,
};
use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    ids::JobId,
    quantity::to_usize,
    spec::SearchSpec,
    tokens::TokenView,
    trial_name,
    view::{JobDetail, JobState, JobView, TrialPhase, TrialState, TrialView},
};
use std::{cmp::Reverse, collections::BTreeMap};

/// How many trials stand among the best.
pub const BEST: u32 = 5;
/// Reasons why trials wait that are named.
const REASONS: usize = 4;

/// The tab. `page_links`: the links to the job's page; `None` for whoever may make none.
#[must_use]
pub fn content(
    job: &JobDetail,
    trials: &[TrialView],
    page_links: Option<&[TokenView]>,
    viewer: Viewer,
) -> Markup {
    let id = job.summary.job;
    html! {
        div.cards {
            section.card.main aria-labelledby="curves-title" {
                h2 #curves-title { "Learning curves" }
                (charts::curves(job, &format!("/v1/jobs/{id}/search"), "short"))
            }
            section.card aria-labelledby="best-title" {
                h2 #best-title { "Best trials" }
                div #best data-live=(part_of_job(id, "best")) { (best(job, trials, viewer)) }
            }
            section.card aria-labelledby="pace-title" {
                h2 #pace-title { "Pace" }
                div #pace data-live=(part_of_job(id, "pace")) { (pace(&job.summary, trials)) }
            }
        }
        div #next data-live=(part_of_job(id, "next")) { (next(&job.summary)) }
        section aria-labelledby="figures-title" {
            h2 #figures-title { "Figures" }
            div #figures data-live=(part_of_job(id, "figures")) { (figures_of(&job.summary, trials, viewer)) }
        }
        section aria-labelledby="links-title" {
            h2 #links-title { "Links for guests" }
            div #shares data-live=(part_of_job(id, "shares")) { (page_link::links(id, page_links)) }
            @if page_links.is_none() { p.hint { "Whoever may change the job can make a link that shows it without a token." } }
        }
    }
}

/// The best trials, with a way to all.
#[must_use]
pub fn best(job: &JobDetail, trials: &[TrialView], viewer: Viewer) -> Markup {
    let SearchSpec { goal, .. } = job.spec.search;
    let id = job.summary.job;
    let mut all: Vec<&TrialView> = trials.iter().filter(|trial| trial.best.is_some()).collect();
    all.sort_by(|a, b| TrialView::leader_board(goal, a, b));
    html! {
        @if all.is_empty() { p.hint { "A trial stands here once its first epoch is evaluated." } }
        @else {
            ol.best {
                @for trial in all.iter().take(to_usize(BEST)) {
                    li {
                        strong.number { (words::metric(trial.best.as_ref().map(|best| best.value))) } " "
                        @if viewer.sees_trials() { a href=(of_trial(id, trial.trial)) { "trial " (trial.trial) } }
                        @else { "trial " (trial.trial) }
                        " " span.hint { (trial.arch) " " (trial_name::choices_text(&trial.choices)) }
                    }
                }
            }
        }
        p { a href=(Tab::Trials.address(id)) { "All " (figures::counted(job.summary.trials.into(), "trial")) } }
    }
}

/// How fast the job goes, and what holds it up.
#[must_use]
pub fn pace(job: &JobView, trials: &[TrialView]) -> Markup {
    let lost = job.leases_expired.saturating_add(job.rejected);
    html! {
        @if let Some(slots) = mean_slots(job) {
            p { strong { (slots) } " slots trained on average"
                @if !job.state.has_ended() { ", " (figures::counted(job.leases_live, "lease")) " live now" } "." }
        } @else { p { (figures::counted(job.leases_live, "lease")) " live now." } }
        @let waiting = reasons(trials);
        @if !waiting.is_empty() {
            ul.reasons {
                @for (why, count) in waiting.iter().take(REASONS) { li { (figures::counted(*count, "trial")) ": " (why) } }
                @if waiting.len() > REASONS { li { (waiting.len() - REASONS) " more reasons" } }
            }
        } @else if job.state == JobState::Running && job.waiting.is_none() { p { "No trial waits." } }
        @if lost > 0 {
            p { (figures::counted(job.leases_expired, "lease")) " ran out, " (figures::counted(job.rejected, "result")) " refused." }
        }
        p { a href=(Tab::Machines.address(job.job)) { "Hops and leases" } " · " a href="/hosts" { "Hosts" } }
    }
}

/// The mean number of slots that trained, from the job's submission to its end; none before the first result, or without an end.
fn mean_slots(job: &JobView) -> Option<String> {
    let elapsed = (job.ended_at? - job.submitted_at).0;
    let each = elapsed.checked_mul(10)?;
    let hundredths = job.train_micros.saturating_add(each / 2).checked_div(each)?;
    Some(format!("{}.{:02}", hundredths / 100, hundredths % 100))
}

/// Why running trials stand still, with how many trials each reason holds, the commonest first.
fn reasons(trials: &[TrialView]) -> Vec<(&str, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.state == TrialState::Running) {
        if let Some(why) = &trial.waiting {
            *counts.entry(why).or_default() += 1;
        }
    }
    let mut all: Vec<(&str, u64)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| Reverse(*count));
    all
}

/// The next steps after a job's end: its best model, and more of the search.
#[must_use]
pub fn next(job: &JobView) -> Markup {
    if !job.state.has_ended() {
        return Markup::default();
    }
    let id = job.job;
    html! {
        section.card aria-labelledby="next-title" {
            h2 #next-title { "Next" }
            @match &job.best {
                Some(_) => (commands(id, &[
                    (format!("sojourn export {id} --best -o best.safetensors"), "writes the best model with its scaling"),
                    ("sojourn predict best.safetensors rows.csv -o predictions.csv".to_owned(), "runs it over new rows"),
                    (format!("sojourn report {id} -o report.html"), "writes what came of the job into one file"),
                ])),
                None => { p { "No trial has a value. " a href="/failures" { "Failures" } " says what went wrong." } }
            }
            p.hint {
                @if job.state == JobState::Cancelled { "Go on has its trials train on. " } @else { "Add epochs trains its trials for longer. " }
                "New job over this data tries other settings over the same shards."
            }
        }
    }
}

fn commands(job: JobId, lines: &[(String, &str)]) -> Markup {
    html! {
        dl.commands aria-label={ "Commands for job " (job) } {
            @for (command, does) in lines { div { dt { code { (command) } } dd { (does) } } }
        }
    }
}

/// Trials by how far they are.
#[derive(Debug, Default)]
struct Phases {
    finished: u64,
    failed: u64,
    not_started: u64,
}

impl Phases {
    fn of(trials: &[TrialView]) -> Self {
        let mut phases = Self::default();
        for trial in trials {
            match (trial.phase, &trial.state) {
                (Some(TrialPhase::NotStarted), _) => phases.not_started += 1,
                (_, TrialState::Failed { .. }) => phases.failed += 1,
                (_, TrialState::Finished) => phases.finished += 1,
                (_, TrialState::Running | TrialState::Cancelled) => {}
            }
        }
        phases
    }
}

/// The job's counts.
#[must_use]
pub fn figures_of(job: &JobView, trials: &[TrialView], viewer: Viewer) -> Markup {
    let Phases { finished, failed, not_started } = Phases::of(trials);
    html! {
        dl.figures {
            div { dt { "Evaluations" } dd { (words::progress("", job.evaluations, job.evaluations_expected)) } }
            div {
                dt { "Trials" }
                dd {
                    (figures::count(job.trials.into())) ", " (figures::count(finished)) " finished"
                    @if failed > 0 { ", " strong.error { (figures::count(failed)) " failed" } }
                    @if not_started > 0 { ", " (figures::count(not_started)) " not started" }
                }
            }
            @if let Some(owner) = job.owner.as_ref().filter(|_| viewer.sees_owners()) { div { dt { "Owner" } dd { (owner) } } }
            @if let Some(standing) = &job.deadline { div { dt { "Deadline" } dd { (standing) } } }
            div { dt { "Submitted" } dd { (words::time(job.submitted_at)) } }
            div {
                dt { "Leases" }
                dd { (job.leases_live) " live, " (job.leases_expired) " ran out, " (job.rejected) " results refused" }
            }
            @if job.unverified > 0 {
                div { dt { "Unverified" } dd { strong.error { (figures::counted(job.unverified, "result")) " that nobody confirmed" } } }
            }
            div { dt { "In the store" } dd { (figures::bytes(job.disk_bytes)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::leaders::tests::trial;

    fn job() -> JobView {
        serde_json::from_str(include_str!("../../tests/job.json")).unwrap()
    }

    #[test]
    fn trials_that_never_began_have_not_failed() {
        let failed = TrialState::Failed { error: "NaN".into() };
        let of = |phase| TrialView { phase: Some(phase), state: failed.clone(), ..trial(1, 0.1) };
        let text = figures_of(&job(), &[of(TrialPhase::NotStarted)], Viewer::GUEST).into_string();
        assert!(text.contains("1 not started") && !text.contains("failed"), "{text}");
        let text = figures_of(&job(), &[of(TrialPhase::Failed)], Viewer::GUEST).into_string();
        assert!(text.contains("1 failed") && !text.contains("not started"), "{text}");
    }

    #[test]
    fn reasons_to_wait_are_counted_the_commonest_first() {
        let of = |why: &str| TrialView { waiting: Some(why.into()), ..trial(1, 0.1) };
        let trials = [of("a"), of("b"), of("b"), trial(4, 0.1)];
        assert_eq!(reasons(&trials), [("b", 2), ("a", 1)]);
        let text = pace(&job(), &trials).into_string();
        assert!(text.contains("2 trials: b") && text.contains("0.01</strong> slots"), "{text}");
    }

    #[test]
    fn an_ended_job_says_what_comes_next_and_a_running_one_does_not() {
        let text = next(&job()).into_string();
        assert!(
            text.contains("sojourn export 1 --best") && text.contains("Add epochs trains"),
            "{text}"
        );
        let running = JobView { state: JobState::Running, ..job() };
        assert_eq!(next(&running).into_string(), "");
        let text = next(&JobView { best: None, ..job() }).into_string();
        assert!(text.contains("No trial has a value"), "{text}");
    }
}
