//! The buttons and checkpoints of a trial, for its row on the leader board and for its page.

use maud::{Markup, html};
use sojourn_protocol::{
    digest::BlobRef,
    figures,
    ids::JobId,
    spec::{SearchMethod, SearchSpec},
    view::{JobState, JobView, TrialState, TrialView},
};

/// The page that follows a button of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// The leader board.
    Board,
    /// The trial's page.
    Trial,
}

impl Back {
    const fn name(self) -> &'static str {
        match self {
            Self::Board => "trials",
            Self::Trial => "trial",
        }
    }
}

/// A trial's checkpoints that can be downloaded.
pub(super) fn checkpoints(job: JobId, trial: &TrialView) -> Markup {
    let link = |blob: &BlobRef, text: &str| {
        let name = format!("job-{job}-trial-{}-{text}.safetensors", trial.trial);
        let label = format!("Download the {text} checkpoint of trial {}", trial.trial);
        html! { a href={ "/v1/blobs/" (blob.sha256) } download=(name) title=(figures::bytes(blob.bytes)) aria-label=(label) { (text) } }
    };
    let (best, last) = (trial.best.as_ref().map(|best| best.checkpoint), trial.checkpoint);
    html! {
        @if let Some(best) = &best { (link(best, "best")) " " }
        @if let Some(last) = last.filter(|last| Some(*last) != best) { (link(&last, "last")) }
    }
}

/// May a failed trial be run again? In a cancelled job or a population none is, nor is the one with the job's best model.
fn may_begin_anew(job: &JobView, search: &SearchSpec, trial: &TrialView) -> bool {
    let is_population = matches!(search.method, SearchMethod::Pbt(_));
    let has_best = job.best.as_ref().is_some_and(|best| best.trial == trial.trial);
    job.state != JobState::Cancelled && !is_population && !has_best
}

/// May a trial be cloned? In a cancelled job, and of one fold, none is. A clone begins where an epoch has ended, and has epochs left.
fn may_be_cloned(job: &JobView, search: &SearchSpec, trial: &TrialView) -> bool {
    let has_end_of_epoch = trial.checkpoint.is_some() && trial.epoch.0 > 0;
    let has_epochs_left = trial.epoch.0 < trial.epochs;
    let is_kept = job.state != JobState::Cancelled && !job.thinned && search.folds.is_none();
    is_kept && has_end_of_epoch && has_epochs_left
}

/// The buttons of a trial. `back`: the page that follows.
pub(super) fn changes(job: &JobView, search: &SearchSpec, trial: &TrialView, back: Back) -> Markup {
    let address = format!("/jobs/{}", job.job);
    let action = match trial.state {
        TrialState::Running => Some(("stop", "Stop")),
        // A model on all folds that was stopped is done without.
        TrialState::Finished if trial.refit.is_some() => None,
        TrialState::Finished | TrialState::Failed { .. } if trial.stopped.is_some() => {
            Some(("revive", "Go on"))
        }
        TrialState::Failed { .. } if may_begin_anew(job, search, trial) => {
            Some(("retry", "Run again"))
        }
        TrialState::Finished | TrialState::Failed { .. } | TrialState::Cancelled => None,
    };
    html! {
        @if let Some((action, text)) = action {
            form method="post" action=(address) {
                input type="hidden" name="action" value=(action);
                input type="hidden" name="back" value=(back.name());
                input type="hidden" name="trial" value=(trial.trial);
                button.plain aria-label={ (text) " trial " (trial.trial) } { (text) }
            }
        }
        @if may_be_cloned(job, search, trial) {
            details id={ "clone-" (trial.trial) } {
                summary aria-label={ "Clone trial " (trial.trial) } { "Clone" }
                form method="post" action=(address) {
                    input type="hidden" name="action" value="clone";
                    input type="hidden" name="back" value=(back.name());
                    input type="hidden" name="trial" value=(trial.trial);
                    label { "Settings " input name="set" placeholder="lr=1e-4"; }
                    button { "Clone" }
                }
            }
        }
    }
}
