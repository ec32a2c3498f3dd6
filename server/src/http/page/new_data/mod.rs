//! A new job over data that a browser sends. Its files come one by one, then the job file; the job is made of both as `sojourn submit`
//! makes it: `check.rs` looks at the job file, `make.rs` makes the job, or the job file as `sojourn init` does.

mod check;
mod make;

pub(super) use check::check;

use super::{answer, answer::PageError};
use crate::{
    data_uploads::{DataUpload, DataUploads, UploadStage, path_below},
    data_urls::DataUrl,
    http::{
        App, AppState,
        auth::{User, UserBy},
        error::HttpError,
        uploads::{drain, next_bytes},
    },
    prepare_job::{DraftedJob, PrepareJob},
};
use actix_web::{
    HttpResponse,
    web::{self, Form, Path, Query},
};
use make::{draft_of, make};
use serde::Deserialize;
use sojourn_core::request;
use sojourn_page::new_job::{self as view, Checked, Column, Drafted, Making};
use sojourn_protocol::error::ErrorKind;
use std::sync::Arc;

/// `?name=NAME`.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct Named {
    name: String,
}

/// The form that is sent once all files have come.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct NewJob {
    text: String,
    #[serde(default)]
    again: bool,
}

/// `?bytes=N`.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct Announced {
    #[serde(default)]
    bytes: u64,
}

/// The form by which a job file is wanted for files that have come.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct Wanted {
    /// The file or folder that has the training data.
    data: String,
    /// The column of the labels; guessed where it is empty.
    #[serde(default)]
    label: String,
}

/// Begins an upload of so many bytes: its secret.
pub(in crate::http) async fn begin(
    app: App,
    _: User,
    Query(Announced { bytes }): Query<Announced>,
) -> Result<HttpResponse, PageError> {
    let (uploads, _) = data_uploads(&app)?;
    // A server that stands by takes no files for the active one.
    app.shell.request(request::GetJobs {}).await?;
    let uploads = uploads.clone();
    let secret = web::block(move || uploads.begin(bytes)).await.map_err(HttpError::from)??;
    Ok(HttpResponse::Ok().body(secret))
}

/// Takes a file under the name that the job file has for it.
pub(in crate::http) async fn file(
    app: App,
    _: User,
    secret: Path<String>,
    Query(Named { name }): Query<Named>,
    mut body: web::Payload,
) -> Result<HttpResponse, PageError> {
    let taken = take_file(&app, &secret, name, &mut body).await;
    if taken.is_err() {
        // So that the browser reads the answer.
        drain(&mut body).await;
    }
    taken?;
    Ok(HttpResponse::NoContent().finish())
}

async fn take_file(
    app: &AppState,
    secret: &str,
    name: String,
    body: &mut web::Payload,
) -> Result<(), HttpError> {
    let (uploads, _) = data_uploads(app)?;
    let (uploads, upload) = (uploads.clone(), uploads.get(secret)?);
    let mut file = web::block(move || uploads.begin_file(upload, &name)).await??;
    loop {
        let (bytes, has_ended) = file.wait_for(next_bytes(&app.traffic, body)).await??;
        file = web::block(move || file.write(&bytes).map(|()| file)).await??;
        if has_ended {
            return Ok(web::block(move || file.finish()).await??);
        }
    }
}

/// Begins to make the job, and shows how far that is.
pub(in crate::http) async fn submit(
    app: App,
    by: UserBy,
    secret: Path<String>,
    Form(new): Form<NewJob>,
) -> Result<HttpResponse, PageError> {
    let (uploads, prepare) = data_uploads(&app)?;
    let upload = uploads.get(&secret)?;
    let (text, urls) = (new.text.clone(), uploads.urls());
    app.admit_check(by.0)?;
    let checked = app.job_checks.run(move || check(&text, &urls)).await;
    let checked = checked.map_err(|lost| HttpError::fault(&lost))?;
    if !checked.problems.is_empty() {
        return Ok(answer::html(view::result(&checked)));
    }
    upload.begin_job()?;
    let (app, prepare) = (app.clone().into_inner(), Arc::clone(prepare));
    let made = Arc::clone(&upload);
    // The job is made though the browser has left.
    actix_web::rt::spawn(async move {
        let stage = match make(&app, &made, prepare, (new, by)).await {
            Ok(job) => {
                let files = Arc::clone(&made);
                drop(web::block(move || files.clear()).await);
                UploadStage::Submitted(job)
            }
            Err(why) => UploadStage::Refused(why),
        };
        made.set_stage(stage);
    });
    Ok(shown(&upload))
}

/// Begins to write a job file for the files that have come, and shows how far that is.
pub(in crate::http) async fn draft(
    app: App,
    by: UserBy,
    secret: Path<String>,
    Form(wanted): Form<Wanted>,
) -> Result<HttpResponse, PageError> {
    let (uploads, prepare) = data_uploads(&app)?;
    let upload = uploads.get(&secret)?;
    app.admit_check(by.0)?;
    path_below(&wanted.data)
        .map_err(|why| HttpError::new(ErrorKind::Invalid, format!("the name of the data {why}")))?;
    upload.begin_job()?;
    let (uploads, prepare, drafted) = (uploads.clone(), Arc::clone(prepare), Arc::clone(&upload));
    actix_web::rt::spawn(async move {
        let stage = match draft_of(uploads, &drafted, prepare, wanted).await {
            Ok(job) => UploadStage::Drafted(Arc::new(job)),
            Err(why) => UploadStage::Refused(why),
        };
        drafted.set_stage(stage);
    });
    Ok(shown(&upload))
}

/// How far it is.
pub(in crate::http) async fn show(
    app: App,
    _: User,
    secret: Path<String>,
) -> Result<HttpResponse, PageError> {
    let (uploads, _) = data_uploads(&app)?;
    let upload = uploads.get(&secret)?;
    Ok(shown(&upload))
}

/// Ends it, and removes its files.
pub(in crate::http) async fn abort(
    app: App,
    _: User,
    secret: Path<String>,
) -> Result<HttpResponse, PageError> {
    let (uploads, _) = data_uploads(&app)?;
    uploads.abort(&secret);
    Ok(HttpResponse::NoContent().finish())
}

/// May files of data be sent here?
pub(super) fn are_taken(app: &AppState) -> bool {
    data_uploads(app).is_ok()
}

/// Where the data of new jobs may be fetched from.
pub(super) fn urls(app: &AppState) -> Arc<[DataUrl]> {
    data_uploads(app).map(|(uploads, _)| uploads.urls()).unwrap_or_default()
}

fn data_uploads(app: &AppState) -> Result<(&DataUploads, &Arc<dyn PrepareJob>), HttpError> {
    let refused = || {
        let message = "this server takes no files of data: `sojourn submit` sends them";
        HttpError::new(ErrorKind::NotFound, message)
    };
    let uploads = app.data_uploads.as_ref().ok_or_else(refused)?;
    Ok((&uploads.0, &uploads.1))
}

fn shown(upload: &DataUpload) -> HttpResponse {
    let refused = |why: Vec<String>| {
        let problems = why.into_iter().map(|why| (None, why)).collect();
        view::result(&Checked { problems, ..Checked::default() })
    };
    answer::html(match upload.stage() {
        UploadStage::Receiving => view::making(Making::Receiving),
        UploadStage::Waiting => view::making(Making::Waiting),
        UploadStage::Reading(bytes, of) => view::making(Making::Reading { bytes, of }),
        UploadStage::Storing(bytes, of) => view::making(Making::Storing { bytes, of }),
        UploadStage::Drafted(job) => view::drafted(&drafted(&job)),
        UploadStage::Submitted(job) => view::made(job),
        UploadStage::Refused(why) => refused(why),
    })
}

fn drafted(job: &DraftedJob) -> Drafted<'_> {
    let columns = job.columns.iter().map(|column| Column {
        name: &column.name,
        holds: &column.holds,
        taken: &column.taken,
    });
    Drafted {
        text: &job.text,
        label: job.label.as_deref(),
        columns: columns.collect(),
        remarks: &job.remarks,
    }
}
