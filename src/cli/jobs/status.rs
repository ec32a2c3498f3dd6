//! `sojourn status`: one job and its best trials, once or until it ends.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::{job_ref::JobRef, trials},
        render::{scores, text},
        submit::wait::{self, Watched},
        terminal::{connection::Connection, exit::Failure, output},
    },
};
use sojourn_protocol::{
    ids::JobId,
    manifest::Labels,
    spec::JobSpec,
    view::{EvaluationView, JobDetail, JobView, TrialView},
};

/// Trials that are shown.
const BOARD: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Show it again and again until the job has ended; exit with 1 unless it finished.
    #[arg(long)]
    watch: bool,
    /// Print JSON: one object, with `--watch` one line for each change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    if args.watch {
        return watch(args, &client, job).await;
    }
    let detail = client.job(job).await?;
    if args.json {
        return output::json(&detail);
    }
    let trials = client.trials(job).await?;
    output::line(&page(&detail.summary, &detail.spec, &detail.data.labels, trials))
}

async fn watch(args: &Args, client: &ApiClient, job: JobId) -> Result<(), Failure> {
    let JobDetail { spec, data, .. } = client.job(job).await?;
    let mut drawn = 0;
    let mut last: Option<JobView> = None;
    let ended = wait::until_end(client, job, async |watched| {
        let view = match watched {
            Watched::View(view) => view,
            Watched::Away(reason) => {
                output::remark(&format!("{reason}; trying again"));
                drawn = 0;
                return Ok(());
            }
        };
        if last.as_ref() == Some(view) {
            return Ok(());
        }
        last = Some(view.clone());
        if args.json {
            return output::json_line(view);
        }
        if !output::is_terminal() {
            return output::line(&summary_line(view));
        }
        // A server that goes away between two requests is noticed by the next.
        let Ok(trials) = client.trials(job).await else { return Ok(()) };
        let page = page(view, &spec, &data.labels, trials);
        wait::redraw(drawn, &page)?;
        drawn = page.lines().count();
        Ok(())
    })
    .await?;
    wait::verdict(&ended)
}

fn summary_line(view: &JobView) -> String {
    let waits = view.waiting.as_ref();
    let waits = waits.map(|reason| format!("; waits: {reason}")).unwrap_or_default();
    format!(
        "job {} {}: {} of {} hops, {} of {} trials finished, best {}{waits}",
        view.job,
        view.state.name(),
        view.hops,
        view.hops_expected,
        view.trials_finished,
        view.trials,
        text::best(view),
    )
}

fn page(view: &JobView, spec: &JobSpec, labels: &Labels, mut trials: Vec<TrialView>) -> String {
    let goal = spec.search.goal;
    let mut lines = vec![format!("job {} `{}` {}", view.job, view.name, view.state.name())];
    if let Some(reason) = &view.waiting {
        lines.push(format!("waits        {reason}"));
    }
    if view.thinned {
        lines.push(
            "thinned      its data and all checkpoints but the best model are deleted".to_owned(),
        );
    }
    if !view.note.is_empty() {
        lines.push(format!("note         {}", view.note));
    }
    let failed = match view.trials_failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    lines.push(format!("submitted    {}", text::ago(view.submitted_at)));
    if let Some(end) = view.ended_at {
        lines.push(format!("took         {}", text::duration((end - view.submitted_at).0)));
    }
    if let Some(budget) = spec.placement.budget {
        lines.push(format!("budget       {budget}; `sojourn jobs --cost` says what was spent"));
    }
    if let Some(deadline) = spec.placement.deadline {
        lines.push(format!("deadline     {} after it was submitted", text::duration(deadline.0)));
    }
    lines
        .push(format!("trials       {} of {} finished{failed}", view.trials_finished, view.trials));
    lines.push(format!("hops         {} of {}", view.hops, view.hops_expected));
    lines.push(format!("evaluations  {} of {}", view.evaluations, view.evaluations_expected));
    lines.push(format!(
        "leases       {} live, {} ran out, {} returned, {} copies; results: {} superseded, {} rejected",
        view.leases_live,
        view.leases_expired,
        view.leases_returned,
        view.speculative_leases,
        view.superseded,
        view.rejected
    ));
    lines.push(format!("trained      {}", text::duration(view.train_micros / 1000)));
    lines.push(format!("best         {}", text::best(view)));
    if let Some(test) = &view.test {
        lines.push(format!("test         {}", scores::test(test)));
    }
    trials.sort_by(|a, b| TrialView::leader_board(goal, a, b));
    let hidden = trials.len().saturating_sub(BOARD);
    let mut grid = trials::board(&view.metric);
    for trial in trials.iter().take(BOARD) {
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
