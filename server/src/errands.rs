//! Carries out the side effects that the core asks for, and deletes old uploads from the spool folder.

use crate::{
    http::AppState,
    shell::{ShellHandle, SideEffect},
    storage_watch::LOOK_INTERVAL,
};
use sojourn_blobs::{Staging, UploadName, Uploads};
use sojourn_protocol::ids::LeaseId;
use std::time::{Duration, SystemTime};
use tokio::{
    runtime::Handle,
    sync::mpsc::UnboundedReceiver,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval, interval_at},
};

/// How often old uploads are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
/// How often blobs that the store has lost are looked for there.
const LOST_INTERVAL: Duration = Duration::from_secs(30);
/// An upload of a blob that wasn't written for so long is deleted. A complete one is published at once.
const BLOB_UPLOAD_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// An incomplete upload of a result that wasn't written for so long is deleted.
const RESULT_UPLOAD_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Carries out side effects until the core has ended.
pub(crate) async fn run(side_effects: UnboundedReceiver<SideEffect>, app: AppState) {
    let (shell, uploads, blobs) = (app.shell.clone(), app.uploads.clone(), app.blobs.clone());
    let storage = app.storage.clone();
    let runtime = Handle::current();
    let mut carried = spawn_blocking(move || {
        carry_out(side_effects, &app, &runtime);
        app.assimilation.assimilators.stop();
    });
    let mut sweeps = interval_at(Instant::now() + SWEEP_INTERVAL, SWEEP_INTERVAL);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut searches = interval(LOST_INTERVAL);
    searches.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut search = None;
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut look: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            _ = &mut carried => return,
            _ = searches.tick() => {
                // One that takes long isn't joined by others.
                if search.as_ref().is_none_or(JoinHandle::is_finished) {
                    let blobs = blobs.clone();
                    search = Some(tokio::spawn(async move { blobs.find_lost().await }));
                }
            }
            _ = looks.tick() => {
                // One on a disk that hangs isn't joined by others.
                if look.as_ref().is_none_or(JoinHandle::is_finished) {
                    let (storage, shell) = (storage.clone(), shell.clone());
                    look = Some(spawn_blocking(move || storage.look_for(&shell)));
                }
            }
            _ = sweeps.tick() => drop(tokio::spawn(sweep(shell.clone(), uploads.clone()))),
        }
    }
}

/// Runs on a thread of its own: each hop has side effects, and most of them block for a moment.
fn carry_out(mut side_effects: UnboundedReceiver<SideEffect>, app: &AppState, runtime: &Handle) {
    let AppState { blobs, uploads, staging, assimilation, .. } = app;
    while let Some(side_effect) = side_effects.blocking_recv() {
        match side_effect {
            SideEffect::Assimilate => assimilation.assimilators.notify(),
            SideEffect::Delete(blob) => {
                let blobs = blobs.clone();
                drop(runtime.spawn(async move { blobs.delete(blob).await }));
            }
            SideEffect::DropUpload(lease) => {
                if let Some(staging) = staging.clone() {
                    drop(runtime.spawn(unstage(app.shell.clone(), staging, lease)));
                }
                for name in [UploadName::Lease(lease), UploadName::Delta(lease)] {
                    if let Err(error) = uploads.remove(name) {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "an upload could not be dropped");
                    }
                }
            }
        }
    }
}

/// Objects that can't be deleted now are found by a later collection.
async fn unstage(shell: ShellHandle, staging: Staging, lease: LeaseId) {
    let unstaged = shell.lease().run(staging.unstage(lease)).await;
    let error: &dyn std::error::Error = match &unstaged {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(lost) => lost,
    };
    tracing::warn!(lease = lease.0, error, "an upload could not be dropped from the store");
}

/// Deletes uploads that aren't needed any more. A complete result stays, however old, while the core may still accept it.
pub(crate) async fn sweep(shell: ShellHandle, uploads: Uploads) {
    let wanted = match shell.live_uploads().await {
        Ok(wanted) => wanted,
        Err(error) => return tracing::warn!(%error, "old uploads can't be looked for"),
    };
    let swept = spawn_blocking(move || {
        uploads.sweep(SystemTime::now(), |name, state| match name {
            UploadName::Blob(_) => Some(BLOB_UPLOAD_TIMEOUT),
            UploadName::Lease(lease) | UploadName::Delta(lease) if !wanted.wants(lease) => {
                Some(Duration::ZERO)
            }
            UploadName::Lease(_) => (!state.complete).then_some(RESULT_UPLOAD_TIMEOUT),
            UploadName::Delta(_) => Some(RESULT_UPLOAD_TIMEOUT),
        })
    });
    match swept.await {
        Ok(Ok(0)) | Err(_) => {}
        Ok(Ok(swept)) => tracing::info!(swept, "old uploads were deleted"),
        Ok(Err(error)) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "old uploads could not be deleted");
        }
    }
}
