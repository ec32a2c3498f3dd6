//! Carries out the side effects that the core asks for, and sees to what is done on a schedule.

use crate::{
    http::AppState,
    shell::{ShellHandle, SideEffect},
    storage_watch::LOOK_INTERVAL,
    upload_sweeps::{self, SWEEP_INTERVAL},
};
use sojourn_blobs::{Staging, UploadName};
use sojourn_protocol::ids::LeaseId;
use std::time::Duration;
use tokio::{
    runtime::Handle,
    sync::mpsc::UnboundedReceiver,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval, interval_at},
};

/// How often blobs that the store has lost are looked for there.
const LOST_INTERVAL: Duration = Duration::from_secs(30);

/// Carries out side effects until the core has ended.
pub(crate) async fn run(side_effects: UnboundedReceiver<SideEffect>, app: AppState) {
    let (shell, blobs, sweeper) = (app.shell.clone(), app.blobs.clone(), app.clone());
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
                    let data_uploads = sweeper.data_uploads.clone();
                    look = Some(spawn_blocking(move || {
                        storage.look_for(&shell);
                        if let Some((uploads, _)) = data_uploads {
                            uploads.sweep(std::time::Instant::now());
                        }
                    }));
                }
            }
            _ = sweeps.tick() => {
                let AppState { shell, uploads, staging, quota, .. } = sweeper.clone();
                drop(tokio::spawn(upload_sweeps::run_once(shell, uploads, staging, quota)));
            }
        }
    }
}

/// Runs on a thread of its own: each hop has side effects, and most of them block for a moment.
fn carry_out(mut side_effects: UnboundedReceiver<SideEffect>, app: &AppState, runtime: &Handle) {
    let AppState { blobs, uploads, staging, assimilation, quota, .. } = app;
    while let Some(side_effect) = side_effects.blocking_recv() {
        match side_effect {
            SideEffect::Assimilate => assimilation.assimilators.notify(),
            SideEffect::Delete(blob) => {
                let blobs = blobs.clone();
                drop(runtime.spawn(async move { blobs.delete(blob).await }));
            }
            SideEffect::DropUpload(lease) => {
                quota.forget(lease);
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
