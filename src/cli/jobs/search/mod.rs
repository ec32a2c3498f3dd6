//! `sojourn search`: how far a job's search has got, and what its user changes of it.

mod widen;

use crate::cli::{
    jobs::{job_ref::JobRef, trials_change::why},
    render::text,
    terminal::{connection::Connection, exit::Failure, output, simple::show},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{SearchRequest, SearchTrialState, SearchView, Space},
    quantity::to_u64,
    view::JobDetail,
};

/// Without `--widen` and `--end` it prints how far the search has got.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("change").multiple(true).args(["widen", "end"]))]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Take further combinations from another range of this dimension, as a job file writes it: 'lr = { log_uniform = [1e-5,
    /// 1e-1] }'. May be repeated.
    #[arg(long, value_name = "KEY = VALUE")]
    widen: Vec<String>,
    /// Try no more combinations: the job ends with the trials that it has.
    #[arg(long)]
    end: bool,
    /// Why, for the journal: one line.
    #[arg(long, value_name = "TEXT", value_parser = why, requires = "change")]
    why: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    if !args.end && args.widen.is_empty() {
        let mut view = client.call(endpoints::Search::request(job)).await?;
        if args.json {
            return output::json(&view);
        }
        view.trials.sort_by_key(|of| of.trial);
        return output::line(&said(&view));
    }
    let space = match args.widen.as_slice() {
        [] => None,
        dimensions => {
            let JobDetail { mut spec, space, .. } =
                client.call(endpoints::Job::request(job)).await?;
            if let Some(Space { models, training }) = space.map(|changed| *changed) {
                (spec.models, spec.training) = (models, training);
            }
            let space = widen::space(&spec, dimensions).map_err(Failure::call)?;
            Some(Box::new(space))
        }
    };
    let request =
        SearchRequest { space, end: args.end, why: args.why.clone(), ..SearchRequest::default() };
    let answer = client.call(endpoints::ChangeSearch::request(job, &request)).await?;
    show(&answer, args.json, |_| match (args.end, args.widen.is_empty()) {
        (true, _) => format!("the search of job {job} tries no more combinations"),
        (false, _) => format!(
            "job {job} takes further combinations from the changed space; `sojourn extend --trials` adds some"
        ),
    })
}

/// How far a search has got, in two lines.
fn said(view: &SearchView) -> String {
    let count = |state: SearchTrialState| view.trials.iter().filter(|of| of.state == state).count();
    let states = [
        (SearchTrialState::Running, "running"),
        (SearchTrialState::Waiting, "waiting for a decision"),
        (SearchTrialState::Finished, "finished"),
        (SearchTrialState::Failed, "failed"),
        (SearchTrialState::Cancelled, "cancelled"),
    ];
    let counts: Vec<String> = states
        .iter()
        .map(|(state, word)| (count(*state), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let tried = match (view.open, &view.over) {
        (true, _) => {
            let room = match view.room {
                0 => "no room for more now".to_owned(),
                room => format!("room for {} more", text::counted(u64::from(room), "trial")),
            };
            format!(
                "`{}`: {} of {} combinations tried, {room}",
                view.method, view.suggested, view.wanted
            )
        }
        (false, Some(why)) => format!(
            "`{}`: ended after {}: {why}",
            view.method,
            text::counted(u64::from(view.suggested), "combination")
        ),
        (false, None) => format!(
            "`{}`: all {} tried",
            view.method,
            text::counted(u64::from(view.suggested), "combination")
        ),
    };
    let trials = text::counted(to_u64(view.trials.len()), "trial");
    let of = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    format!("{tried}\n{trials}{of}")
}
