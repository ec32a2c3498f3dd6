//! Makes a job of files that have come: reads the data, stores the shards, submits. Or a job file: looks at the data.

use super::{NewJob, Wanted, data_uploads};
use crate::{
    data_uploads::{ANY_BLOB, DataUpload, DataUploads, ReadingBounds, UploadStage},
    http::{AppState, auth::UserBy, error::HttpError},
    prepare_job::{
        BytesRead, DataBounds, DraftFiles, DraftedJob, JobFiles, PrepareJob, PreparedJob,
        ReaderLimits,
    },
    storage_watch::Coming,
};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::JobId,
    jobfile,
    manifest::DataManifest,
    spec::JobSpec,
    view::JobDetail,
};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// Makes the job, or says why not.
pub(super) async fn make(
    app: &AppState,
    upload: &Arc<DataUpload>,
    prepare: Arc<dyn PrepareJob>,
    (new, by): (NewJob, UserBy),
) -> Result<JobId, Vec<String>> {
    let said = |error: HttpError| vec![error.to_string()];
    let (uploads, _) = data_uploads(app).map_err(said)?;
    let _turn = uploads.turn().await;
    let NewJob { text, again } = new;
    let hosts =
        app.shell.request(request::GetHosts {}).await.map_err(|error| said(error.into()))?;
    let earlier = if again { Vec::new() } else { earlier(app, &text).await.map_err(said)? };
    let shards = upload.shards();
    let prepared =
        read(uploads.clone(), upload, move |Reading { folder, bounds, limits }, tell| {
            let files = JobFiles {
                text: &text,
                folder: &folder,
                shards: &shards,
                hosts,
                earlier,
                bounds,
                limits,
            };
            prepare.prepare(files, tell)
        });
    let PreparedJob { spec, data, files } = prepared.await?;
    store(app, upload, &spec, &data, &files).await.map_err(said)?;
    let submitted = app.submit(by, Box::new(spec), Box::new(data), again, None).await;
    let submitted = submitted.map_err(said)?;
    Ok(submitted.job)
}

/// Writes a job file for the files that have come, or says why there can be none.
pub(super) async fn draft_of(
    uploads: DataUploads,
    upload: &Arc<DataUpload>,
    prepare: Arc<dyn PrepareJob>,
    Wanted { data, label }: Wanted,
) -> Result<DraftedJob, Vec<String>> {
    let _turn = uploads.turn().await;
    let drafted = read(uploads.clone(), upload, move |Reading { folder, bounds, limits }, tell| {
        let label = Some(label.as_str()).filter(|label| !label.is_empty());
        prepare.draft(DraftFiles { folder: &folder, data: &data, label, bounds, limits }, tell)
    });
    drafted.await
}

/// The files that are read, and the bounds of that.
struct Reading {
    folder: PathBuf,
    bounds: Arc<dyn DataBounds>,
    limits: ReaderLimits,
}

/// Reads the files that have come under the bounds of their upload, which shows how far that is.
async fn read<T: Send + 'static>(
    uploads: DataUploads,
    upload: &Arc<DataUpload>,
    read: impl FnOnce(Reading, &mut dyn FnMut(BytesRead)) -> Result<T, Vec<String>> + Send + 'static,
) -> Result<T, Vec<String>> {
    let bounds = Arc::new(ReadingBounds::new(uploads, Arc::clone(upload)));
    let upload = Arc::clone(upload);
    let outcome = web::block(move || {
        let mut tell = |BytesRead { bytes, of }| upload.set_stage(UploadStage::Reading(bytes, of));
        let asked: Arc<dyn DataBounds> = Arc::<ReadingBounds>::clone(&bounds);
        let limits = bounds.reader_limits();
        let outcome = read(Reading { folder: upload.data(), bounds: asked, limits }, &mut tell);
        // A format's reader may have other words for what was refused.
        outcome.map_err(|problems| bounds.why().map_or(problems, |why| vec![why]))
    });
    outcome.await.map_err(|error| vec![HttpError::from(error).to_string()])?
}

/// Jobs of the name that a job file has, the newest first.
async fn earlier(app: &AppState, text: &str) -> Result<Vec<JobDetail>, HttpError> {
    let Ok(spec) = jobfile::parse(text) else { return Ok(Vec::new()) };
    let mut details = Vec::new();
    for job in app.shell.request(request::GetJobs {}).await?.iter().rev() {
        if job.name == spec.name {
            details.push(app.shell.request(request::GetJob { job: job.job }).await?);
        }
    }
    Ok(details)
}

/// Puts the blobs of a job into the store that it lacks.
async fn store(
    app: &AppState,
    upload: &DataUpload,
    spec: &JobSpec,
    data: &DataManifest,
    files: &BTreeMap<Digest, PathBuf>,
) -> Result<(), HttpError> {
    let blobs: BTreeMap<Digest, BlobRef> =
        data.blobs().chain(spec.blobs()).map(|blob| (blob.sha256, blob)).collect();
    let missing = app.blobs.missing(blobs.values().copied().collect()).await?;
    let missing: Vec<BlobRef> =
        missing.iter().filter_map(|blob| blobs.get(blob)).copied().collect();
    let of = missing.iter().map(|blob| blob.bytes).sum();
    let mut stored = 0_u64;
    for blob in missing {
        upload.set_stage(UploadStage::Storing(stored, of));
        if upload.is_aborted() {
            return Err(ApiError::new(ErrorKind::Conflict, "it was ended").into());
        }
        app.storage.admit(ANY_BLOB, Coming { spooled: 0, stored: blob.bytes })?;
        let file = files.get(&blob.sha256).ok_or_else(|| {
            let message = format!("the blob {} was not made", blob.sha256);
            HttpError::new(ErrorKind::Internal, message)
        })?;
        app.blobs.publish(blob, file).await?;
        stored = stored.saturating_add(blob.bytes);
    }
    Ok(())
}
