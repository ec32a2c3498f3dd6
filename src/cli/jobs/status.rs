//! `sojourn status`: one job and its best trials, once or until it ends. On a terminal a job is watched on the screen of `sojourn top`.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::{job_ref::JobRef, top, trials},
        render::{scores, text},
        submit::wait::{self, Watched},
        terminal::{connection::Connection, exit::Failure, output},
    },
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    ids::JobId,
    manifest::Labels,
    quantity::to_usize,
    spec::{Goal, JobSpec, is_replicate},
    trial_name::trial_name,
    view::{
        Configuration, EvaluationView, JobDetail, JobView, TrialState, TrialView, configurations,
    },
};

/// Trials that are shown.
const BOARD: u32 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name. With `--watch` it may be left out: then the whole server is shown, as by `sojourn top`.
    #[arg(value_name = "JOB", required_unless_present = "watch")]
    job: Option<JobRef>,
    /// Show it on the whole terminal until the job has ended; exit with 1 unless it finished. Where stdout is no terminal, print a
    /// line for each change.
    #[arg(long)]
    watch: bool,
    /// Print JSON: one object, with `--watch` and a job one line for each change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let Some(job) = &args.job else {
        return top::server(&args.connection, args.json).await;
    };
    let client = args.connection.client()?;
    let job = job.find(&client).await?;
    let detail = client.call(endpoints::Job::request(job)).await?;
    if args.watch {
        return match !args.json && top::is_possible() {
            true => on_screen(&client, detail).await,
            false => in_lines(args.json, &client, job).await,
        };
    }
    if args.json {
        return output::json(&detail);
    }
    let trials = client.call(endpoints::Trials::request(job).leading(BOARD)).await?;
    output::line(&page(&detail.summary, &detail.spec, &detail.data.labels, trials))
}

/// Shows a job on the whole terminal. Once it has ended, its page stays there.
async fn on_screen(client: &ApiClient, detail: JobDetail) -> Result<(), Failure> {
    let JobDetail { summary, spec, data, .. } = detail;
    let job = summary.job;
    let ended = match summary.state.has_ended() {
        true => summary,
        false => top::job(client.clone(), job)
            .await?
            .ok_or_else(|| Failure::interrupted(format!("job {job} hasn't ended")))?,
    };
    let trials = client.call(endpoints::Trials::request(job).leading(BOARD)).await?;
    output::line(&page(&ended, &spec, &data.labels, trials))?;
    wait::verdict(&ended)
}

/// Prints a line for each change, until the job has ended.
async fn in_lines(json: bool, client: &ApiClient, job: JobId) -> Result<(), Failure> {
    let mut last: Option<JobView> = None;
    let ended = wait::until_end(client, job, async |watched| {
        let view = match watched {
            Watched::View(view) => view,
            Watched::Away(reason) => {
                output::remark(&format!("{reason}; trying again"));
                return Ok(());
            }
        };
        if last.as_ref() == Some(view) {
            return Ok(());
        }
        last = Some(view.clone());
        if json { output::json_line(view) } else { output::line(&summary_line(view)) }
    })
    .await?;
    wait::verdict(&ended)
}

fn summary_line(view: &JobView) -> String {
    let waits = view.waiting.as_ref();
    let waits = waits.map(|reason| format!("; waits: {reason}")).unwrap_or_default();
    let unverified = match view.unverified {
        0 => String::new(),
        results => format!(", {results} results unverified"),
    };
    let times = text::times(view).map_or_else(String::new, |times| format!(", {times}"));
    format!(
        "job {} {}: {} of {} hops{times}, {} of {} trials finished, best {}{unverified}{waits}",
        view.job,
        view.state.name(),
        view.hops,
        view.hops_expected,
        view.trials_finished,
        view.trials,
        text::best(view),
    )
}

/// The facts that are known of a job, each with its name.
fn facts(view: &JobView, spec: &JobSpec) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(view.waiting.clone().map(|reason| ("waits", reason)));
    facts.extend(view.search_ended.clone().map(|why| ("search", why)));
    facts.extend(view.doubts.iter().map(|doubt| ("in doubt", doubt.to_string())));
    if view.thinned {
        let thinned = "its data and all checkpoints but the best model are deleted";
        facts.push(("thinned", thinned.to_owned()));
    }
    facts.extend(view.owner.as_ref().map(|owner| ("owner", owner.to_string())));
    if !view.note.is_empty() {
        facts.push(("note", view.note.clone()));
    }
    facts.push(("submitted", text::ago(view.submitted_at)));
    facts.extend(text::time_left(view).map(|left| ("time", left)));
    if let Some(end) = view.ended_at {
        facts.push(("took", text::duration((end - view.submitted_at).0)));
    }
    if let Some(budget) = spec.placement.budget {
        facts.push(("budget", format!("{budget}; `sojourn jobs --cost` says what was spent")));
    }
    facts.extend(view.deadline.clone().map(|standing| ("deadline", standing)));
    let failed = match view.trials_failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    facts.push(("trials", format!("{} of {} finished{failed}", view.trials_finished, view.trials)));
    facts.push(("hops", format!("{} of {}", view.hops, view.hops_expected)));
    facts.push(("evaluations", format!("{} of {}", view.evaluations, view.evaluations_expected)));
    let leases = format!(
        "{} live, {} ran out, {} returned, {} copies; results: {} superseded, {} rejected",
        view.leases_live,
        view.leases_expired,
        view.leases_returned,
        view.speculative_leases,
        view.superseded,
        view.rejected
    );
    facts.push(("leases", leases));
    if view.unverified > 0 {
        let results = format!("{} results were taken in that nobody confirmed", view.unverified);
        facts.push(("unverified", results));
    }
    facts.push(("trained", text::duration(view.train_micros / 1000)));
    facts.push(("best", text::best(view)));
    facts.extend(view.test.as_ref().map(|test| ("test", scores::test(test))));
    facts
}

/// The facts of a job beside its line of a table, which has some of them.
pub(super) fn facts_beside_a_line(view: &JobView, spec: &JobSpec) -> Vec<String> {
    let facts = facts(view, spec).into_iter();
    let others = facts.filter(|(name, _)| !["waits", "hops", "best"].contains(name));
    others.map(|(name, fact)| format!("{name} {fact}")).collect()
}

/// The best configuration by the mean over its folds, of those that have a value for each.
fn over_folds(view: &JobView, goal: Goal, trials: &[TrialView]) -> Option<String> {
    let all = configurations(trials, goal);
    let has_failed = |of: &&Configuration| {
        trials.iter().any(|trial| {
            let mut choices = trial.choices.clone();
            choices.retain(|name, _| !is_replicate(name));
            let is_of = trial.arch == of.arch && choices == of.choices;
            is_of && matches!(trial.state, TrialState::Failed { .. })
        })
    };
    let mut whole = all.iter().filter(|of| of.evaluated == of.trials);
    let best = whole.find(|of| !has_failed(of))?;
    let (name, metric) = (trial_name(&best.arch, &best.choices), &view.metric);
    let (mean, deviation) = (text::metric(best.mean?), text::metric(best.deviation?));
    let folds = text::counted(best.trials, "trial");
    Some(format!(
        "{:<12} {metric} {mean} in the mean of {folds} of `{name}`, deviation {deviation}",
        "over folds"
    ))
}

/// The final model of cross-validation, where the best trial is it.
fn final_model(view: &JobView, trials: &[TrialView]) -> Option<String> {
    let best = view.best.as_ref()?.trial;
    let trial = trials.iter().find(|trial| trial.trial == best && trial.refit.is_some())?;
    let epochs = text::counted(u64::from(trial.epochs), "epoch");
    Some(format!(
        "{:<12} trial {best}, trained on all folds for {epochs}; its {} is the mean of the folds",
        "final model", view.metric
    ))
}

fn page(view: &JobView, spec: &JobSpec, labels: &Labels, mut trials: Vec<TrialView>) -> String {
    let goal = spec.search.goal;
    let mut lines = vec![format!("job {} `{}` {}", view.job, view.name, view.state.name())];
    let facts = facts(view, spec).into_iter();
    lines.extend(facts.map(|(name, fact)| format!("{name:<12} {fact}")));
    if spec.search.folds.is_some() && spec.seeds.is_empty() {
        lines.extend(over_folds(view, goal, &trials));
    }
    lines.extend(final_model(view, &trials));
    trials.sort_by(|a, b| TrialView::leader_board(goal, a, b));
    let hidden = view.trials.saturating_sub(BOARD);
    let mut grid = trials::board(&view.metric);
    for trial in trials.iter().take(to_usize(BOARD)) {
        let fields = trials::board_fields(trial);
        if view.best.as_ref().is_some_and(|best| best.trial == trial.trial) {
            grid.bold_row(fields);
        } else {
            grid.row(fields);
        }
    }
    if !grid.is_empty() {
        lines.push(String::new());
        lines.push(grid.text());
    }
    if hidden > 0 {
        lines.push(format!("and {hidden} more: `sojourn trials {}`", view.job));
    }
    if let (Some(result), Labels::Classes(names)) =
        (view.test.as_ref().and_then(EvaluationView::result), labels)
    {
        lines.extend(scores::confusion(result, Some(names)));
    }
    lines.join("\n")
}
