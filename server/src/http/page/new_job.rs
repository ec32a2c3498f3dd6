//! A new job over the data of an earlier one: its file is checked by what reads job files everywhere, and by what the core
//! refuses of a submission.

use super::{answer, answer::PageError, pages::Part};
use crate::http::{App, auth::User, error::HttpError};
use actix_web::{
    HttpResponse,
    http::StatusCode,
    web::{self, Form, Query},
};
use serde::Deserialize;
use sojourn_core::{check_submission, request};
use sojourn_page::new_job::{self, Checked};
use sojourn_protocol::{
    figures, ids::JobId, jobfile, quantity::to_u64, spec::JobSpec, view::JobDetail,
};

/// Most bytes of a form with a job file.
pub(in crate::http) const MAX_FORM: usize = 512 << 10;

/// `?over=JOB`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Over {
    over: Option<JobId>,
}

/// What the form sends.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct NewJob {
    over: JobId,
    text: String,
    #[serde(default)]
    again: bool,
}

/// The page.
pub(in crate::http) async fn show(
    app: App,
    _: User,
    Query(query): Query<Over>,
) -> Result<HttpResponse, PageError> {
    let jobs = app.shell.request(request::GetJobs {}).await?;
    Ok(answer::html(new_job::page(&jobs, query.over, "", None)))
}

/// Checks a file (`?part=check`), or submits it and leads to the job's page.
pub(in crate::http) async fn submit(
    app: App,
    _: User,
    Query(part): Query<Part>,
    Form(new): Form<NewJob>,
) -> Result<HttpResponse, PageError> {
    let NewJob { over, text, again } = new;
    let earlier = app.shell.request(request::GetJob { job: over }).await?;
    let file = text.clone();
    // Large spaces take a while.
    let checked = web::block(move || check(&file, earlier)).await.map_err(HttpError::from)?;
    if part.name().is_some() {
        return Ok(answer::html(new_job::result(&checked.0)));
    }
    let (checked, job) = checked;
    let Some((spec, data)) = job else {
        let jobs = app.shell.request(request::GetJobs {}).await?;
        let page = new_job::page(&jobs, Some(over), &text, Some(&checked));
        return Ok(answer::with_status(StatusCode::BAD_REQUEST, page));
    };
    let submit = request::Submit { spec, data, again, nonce: None };
    let submitted = app.shell.request(submit).await?;
    Ok(answer::go_to(&format!("/jobs/{}", submitted.job)))
}

type Submission = (Box<JobSpec>, Box<sojourn_protocol::manifest::DataManifest>);

/// What is wrong with a job file for a job over the data of an earlier one; or the job.
fn check(text: &str, earlier: JobDetail) -> (Checked, Option<Submission>) {
    let refused = |problems| (Checked { problems, plan: Vec::new() }, None);
    let mut spec = match jobfile::parse_over(text, &earlier.spec.data) {
        Ok(spec) => spec,
        Err(error) => {
            let problems = error.problems();
            return refused(
                problems.map(|problem| (Some(problem.line()), problem.to_string())).collect(),
            );
        }
    };
    // Its rows lie in the shards as the earlier job's seed has put them.
    let seed = earlier.spec.data.seed.unwrap_or(earlier.spec.seed);
    spec.data.seed = Some(seed).filter(|seed| *seed != spec.seed);
    spec.placement.visits = spec.placement.visits.or(earlier.spec.placement.visits);
    if spec.has_graphs() {
        let why = "`arch = \"graph\"` runs your code, on your machine: `sojourn submit` does that";
        return refused(vec![(None, why.to_owned())]);
    }
    if spec.search.history.is_some() {
        let why = "`search.history` is read by `sojourn submit`: leave it out here";
        return refused(vec![(None, why.to_owned())]);
    }
    match check_submission(&spec, &earlier.data) {
        Err(error) => refused(vec![(None, error.message)]),
        Ok(trials) => {
            let plan = plan(&spec, &earlier, trials);
            let job = (Box::new(spec), Box::new(earlier.data));
            (Checked { problems: Vec::new(), plan }, Some(job))
        }
    }
}

/// What would run, in words.
fn plan(spec: &JobSpec, earlier: &JobDetail, trials: u32) -> Vec<String> {
    let shards = to_u64(earlier.data.train.len());
    let epochs = u64::from(spec.training.epochs);
    let hops = u64::from(trials).saturating_mul(epochs).saturating_mul(shards);
    vec![
        format!("job `{}` over the data of job {}", spec.name, earlier.summary.job),
        format!("{} to begin with", figures::counted(trials.into(), "trial")),
        format!(
            "{} of {}: at most {} for these",
            figures::counted(epochs, "epoch"),
            figures::counted(shards, "shard"),
            figures::counted(hops, "hop")
        ),
        format!("compared by {}", spec.search.metric.name()),
    ]
}
