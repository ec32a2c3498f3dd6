//! Makes a job of files that have come: reads the data, stores the shards, submits.

use super::{NewJob, data_uploads};
use crate::{
    data_uploads::{ANY_BLOB, DataUpload, ReadingBounds, UploadStage},
    http::{AppState, auth::UserBy, error::HttpError},
    prepare_job::{BytesRead, DataBounds, JobFiles, PrepareJob, PreparedJob},
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
    let (bounds, reading) =
        (ReadingBounds::new(uploads.clone(), Arc::clone(upload)), Arc::clone(upload));
    let prepared = web::block(move || {
        let bounds = Arc::new(bounds);
        let mut tell = |BytesRead { bytes, of }| reading.set_stage(UploadStage::Reading(bytes, of));
        let (folder, shards) = (reading.data(), reading.shards());
        let asked: Arc<dyn DataBounds> = Arc::<ReadingBounds>::clone(&bounds);
        let limits = bounds.reader_limits();
        let files = JobFiles {
            text: &text,
            folder: &folder,
            shards: &shards,
            hosts,
            earlier,
            bounds: asked,
            limits,
        };
        let prepared = prepare.prepare(files, &mut tell);
        // A format's reader may have other words for what was refused.
        prepared.map_err(|problems| bounds.why().map_or(problems, |why| vec![why]))
    });
    let prepared = prepared.await.map_err(|error| said(error.into()))??;
    let PreparedJob { spec, data, files } = prepared;
    store(app, upload, &spec, &data, &files).await.map_err(said)?;
    let submitted = app.submit(by, Box::new(spec), Box::new(data), again, None).await;
    let submitted = submitted.map_err(said)?;
    Ok(submitted.job)
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
