//! The header of a job, which stands on each of its tabs: state, progress, expected end, cost, the best trial, and the buttons.

use crate::{Viewer, address::of_trial, words};
use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    money::MicroUsd,
    view::{BestView, JobState, JobView, TimeLeft},
};

/// The cost of the machines that were bought for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The cost up to now.
    pub paid: MicroUsd,
    /// The most that it may be.
    pub budget: Option<MicroUsd>,
}

/// How far a job is, and the buttons for it.
#[must_use]
pub fn head(job: &JobView, cost: Option<Cost>, viewer: Viewer) -> Markup {
    html! {
        (standing(job))
        dl.headline {
            div {
                dt { "Progress" }
                dd { (words::progress("", job.hops, job.hops_expected)) " hops" }
            }
            div { (end(job)) }
            div {
                dt { "Cost" }
                dd {
                    @if let Some(Cost { paid, budget }) = cost {
                        strong { (paid) } @if let Some(budget) = budget { " of " (budget) } ", "
                    }
                    (figures::duration(job.train_micros / 1000)) " of slots"
                }
            }
            div.widest {
                dt { "Best " (job.metric) }
                dd { @match &job.best { Some(best) => (best_of(job, best, viewer)), None => span.hint { "no epoch is evaluated yet" } } }
            }
        }
        @if viewer.may_change(job) { (buttons(job)) }
        @else if viewer.may_submit() { div.buttons { (over(job)) } }
    }
}

/// The job's state, and all that somebody should know of it at once.
fn standing(job: &JobView) -> Markup {
    html! {
        p.standing {
            (words::state(job.state.name())) " "
            @if let Some(why) = &job.waiting { span.hint { (why) } }
            @else if job.state == JobState::Running {
                span.hint { (figures::counted(job.leases_live, "lease")) " live" }
            }
        }
        @if let Some(why) = &job.search_ended { p.hint { "The search tries no more combinations: " (why) } }
        @for doubt in &job.doubts { p.error { (doubt) } }
        @if !job.note.is_empty() { p.note { (job.note) } }
    }
}

/// When the job ends, or when it has ended and how long it took.
fn end(job: &JobView) -> Markup {
    html! {
        @match (job.ended_at, job.time_left) {
            (Some(at), _) => {
                dt { "Ended" }
                dd { (words::time(at)) ", after " (figures::duration((at - job.submitted_at).0)) }
            }
            (None, Some(left)) => { dt { "Time left" } dd { (time_left(left)) } }
            (None, None) => { dt { "Time left" } dd { span.hint { "not known while no host trains it" } } }
        }
    }
}

/// `12 min expected, 9.5 min at least`.
fn time_left(left: TimeLeft) -> Markup {
    html! {
        @if let Some(expected) = left.expected { strong { (figures::duration(expected.0)) } " expected, " }
        span title="No schedule is shorter on the machines that are there" { (figures::duration(left.at_least.0)) " at least" }
    }
}

/// The best trial, with a way to it and to its checkpoint.
fn best_of(job: &JobView, best: &BestView, viewer: Viewer) -> Markup {
    let (id, trial) = (job.job, best.trial);
    let name = format!("job-{id}-trial-{trial}-best.safetensors");
    let label = format!("Download the best checkpoint of trial {trial}");
    html! {
        strong.large { (words::metric(Some(best.value))) } " "
        @if viewer.sees_trials() { a href=(of_trial(id, trial)) { "trial " (trial) } } @else { "trial " (trial) }
        ", epoch " (best.epoch.0 + 1)
        @if viewer.may_download() {
            " · " a href={ "/v1/blobs/" (best.checkpoint.sha256) } download=(name) title=(figures::bytes(best.checkpoint.bytes)) aria-label=(label) { "Download" }
        }
    }
}

/// The way to another job over the data of this one, which every submitter has.
fn over(job: &JobView) -> Markup {
    html! { a.button href={ "/jobs/new?over=" (job.job) } { "New job over this data" } }
}

/// The buttons of a job.
fn buttons(job: &JobView) -> Markup {
    let address = format!("/jobs/{}", job.job);
    let button = |action: &str, text: &str| {
        html! { form method="post" action=(address) { input type="hidden" name="action" value=(action); button { (text) } } }
    };
    html! {
        div.buttons {
            @match job.state {
                JobState::Running => (button("pause", "Pause")),
                JobState::Paused => (button("resume", "Resume")),
                JobState::Finished | JobState::Failed | JobState::Cancelled => {}
            }
            @if !job.state.has_ended() {
                details #cancel { summary { "Cancel" } p { "Its trials end with what they have." } (button("cancel", "Cancel this job")) }
            }
            @let is_cancelled = job.state == JobState::Cancelled;
            details #extend {
                summary { @if is_cancelled { "Go on" } @else { "Add epochs" } }
                @if is_cancelled { p { "Its trials go on from what they had when the job was cancelled." } }
                form method="post" action=(address) {
                    input type="hidden" name="action" value="extend";
                    input type="hidden" name="reopen" value=(is_cancelled);
                    label { "Epochs in all " input name="epochs" type="number" min="1" required; }
                    button { @if is_cancelled { "Go on" } @else { "Extend" } }
                }
            }
            (over(job))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::tokens::Rights;

    fn job() -> JobView {
        serde_json::from_str(include_str!("../../tests/job.json")).unwrap()
    }

    #[test]
    fn the_header_leads_to_the_best_trial_and_its_checkpoint() {
        let text = head(&job(), None, Viewer::of(Rights::Read)).into_string();
        assert!(text.contains("href=\"/jobs/1/trials/0\"") && text.contains("download="), "{text}");
        assert!(text.contains("after 10 min"), "{text}");
        assert!(!text.contains("<button"), "{text}");
        let guest = head(&job(), None, Viewer::GUEST).into_string();
        assert!(!guest.contains("/jobs/") && !guest.contains("/v1/"), "{guest}");
    }

    #[test]
    fn money_stands_beside_its_budget() {
        let cost = Cost { paid: MicroUsd(1_250_000), budget: Some(MicroUsd(5_000_000)) };
        let text = head(&job(), Some(cost), Viewer::of(Rights::Read)).into_string();
        assert!(text.contains("$1.25</strong> of $5"), "{text}");
    }
}
