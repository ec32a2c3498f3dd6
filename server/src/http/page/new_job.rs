//! A new job over the data of an earlier one, or over files (`new_data.rs`): its file is checked by what reads job files everywhere, and by what the core
//! refuses of a submission.

use super::{answer, answer::PageError, new_data, pages::Part};
use crate::http::{
    App, AppState,
    auth::{UserBy, UserViewer},
    error::HttpError,
};
use actix_web::{
    HttpResponse,
    http::StatusCode,
    web::{Form, Query},
};
use serde::Deserialize;
use sojourn_core::{check_submission, request};
use sojourn_page::{
    Viewer,
    new_job::{self, Checked, DataOf, FILES},
};
use sojourn_protocol::{
    bounds::Bounded, error::ErrorKind, figures, ids::JobId, jobfile, jobfile::JobFileError,
    quantity::to_u64, spec::JobSpec, view::JobDetail,
};

/// Most bytes of a form with a job file.
pub(in crate::http) const MAX_FORM: usize = 512 << 10;

/// `?over=JOB`, or `?over=files`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Over {
    over: Option<String>,
}

/// The fields of the form.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct NewJob {
    /// A job's number, or [`FILES`].
    over: String,
    text: String,
    #[serde(default)]
    again: bool,
}

/// The page.
pub(in crate::http) async fn show(
    app: App,
    UserViewer(viewer): UserViewer,
    Query(query): Query<Over>,
) -> Result<HttpResponse, PageError> {
    let takes_files = takes_files(&app, viewer);
    let jobs = app.shell.request(request::GetJobs {}).await?;
    let data = query.over.as_deref().map(data_of).transpose()?;
    Ok(answer::html(new_job::page(&jobs, data, takes_files, "", None)))
}

fn takes_files(app: &AppState, viewer: Viewer) -> bool {
    viewer.may_administer() && new_data::are_taken(app)
}

/// The data that a form has chosen.
fn data_of(over: &str) -> Result<DataOf, HttpError> {
    if over == FILES {
        return Ok(DataOf::Files);
    }
    let job = over.parse().map(|number| DataOf::Job(JobId(number)));
    job.map_err(|_| HttpError::new(ErrorKind::Invalid, "`over` is no job's number"))
}

/// Checks a file (`?part=check`), or submits it and leads to the job's page.
pub(in crate::http) async fn submit(
    app: App,
    UserViewer(viewer): UserViewer,
    by: UserBy,
    Query(part): Query<Part>,
    Form(new): Form<NewJob>,
) -> Result<HttpResponse, PageError> {
    app.admit_check(by.0)?;
    let NewJob { over, text, again } = new;
    let data = data_of(&over)?;
    let file = text.clone();
    // Large spaces take a while.
    let (checked, job) = match data {
        DataOf::Job(over) => {
            let earlier = app.shell.request(request::GetJob { job: over }).await?;
            app.job_checks.run(move || check(&file, earlier)).await
        }
        DataOf::Files => {
            let urls = new_data::urls(&app);
            app.job_checks.run(move || (new_data::check(&file, &urls), None)).await
        }
    }
    .map_err(|lost| HttpError::fault(&lost))?;
    if part.name().is_some() {
        return Ok(answer::html(new_job::result(&checked)));
    }
    let Some((spec, data)) = job else {
        let checked = match data {
            // The script of the page sends them and the job file, and not this form.
            DataOf::Files if checked.problems.is_empty() => Checked {
                problems: vec![(None, "files are sent by the page's script".to_owned())],
                ..Checked::default()
            },
            _ => checked,
        };
        let takes_files = takes_files(&app, viewer);
        let jobs = app.shell.request(request::GetJobs {}).await?;
        let page = new_job::page(&jobs, Some(data), takes_files, &text, Some(&checked));
        return Ok(answer::with_status(StatusCode::BAD_REQUEST, page));
    };
    let submitted = app.submit(by, spec, data, again, None).await?;
    Ok(answer::go_to(&format!("/jobs/{}", submitted.job)))
}

type Submission = (Box<JobSpec>, Box<sojourn_protocol::manifest::DataManifest>);

/// The problems of a job file for a job over the data of an earlier one; or the job.
fn check(text: &str, earlier: JobDetail) -> (Checked, Option<Submission>) {
    let refused = |problems| (Checked { problems, ..Checked::default() }, None);
    let mut spec = match jobfile::parse_over(text, &earlier.spec.data) {
        Ok(spec) => spec,
        Err(error) => return refused(at_lines(&error)),
    };
    // Its rows lie in the shards as the earlier job's seed has put them.
    let seed = earlier.spec.data.seed.unwrap_or(earlier.spec.seed);
    spec.data.seed = Some(seed).filter(|seed| *seed != spec.seed);
    spec.placement.visits = spec.placement.visits.or(earlier.spec.placement.visits);
    if let Some(why) = needs_command(&spec) {
        return refused(vec![(None, why.to_owned())]);
    }
    // A file is no request, which is bounded as it is read. Without bounds a space may be larger than the memory.
    if let Err(error) = Bounded::new(&spec) {
        return refused(vec![(None, error.to_string())]);
    }
    match check_submission(&spec, &earlier.data) {
        Err(error) => refused(vec![(None, error.message)]),
        Ok(trials) => {
            let plan = plan(&spec, &earlier, trials);
            let job = (Box::new(spec), Box::new(earlier.data));
            (Checked { plan, ..Checked::default() }, Some(job))
        }
    }
}

/// The problems of a job file, by its lines.
pub(super) fn at_lines(error: &JobFileError) -> Vec<(Option<usize>, String)> {
    error.problems().map(|problem| (Some(problem.line()), problem.to_string())).collect()
}

/// Why a job can only be submitted by the command.
pub(super) fn needs_command(spec: &JobSpec) -> Option<&'static str> {
    if spec.has_graphs() {
        return Some(
            "`arch = \"graph\"` runs your code, on your machine: `sojourn submit` does that",
        );
    }
    spec.search.history.as_ref()?;
    Some("`search.history` is read by `sojourn submit`: leave it out here")
}

/// The plan of what would run, in words.
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
