//! What the core wants done outside is done here, and the spool folder is kept from growing for ever.

use crate::{
    http::Site,
    shell::{Errand, ShellHandle},
};
use sojourn_assimilator::Workers;
use sojourn_blobs::{Staging, UploadName, Uploads};
use sojourn_protocol::ids::LeaseId;
use std::time::{Duration, SystemTime};
use tokio::{
    runtime::Handle,
    sync::mpsc::UnboundedReceiver,
    time::{Instant, MissedTickBehavior, interval_at},
};

/// How often the spool folder is looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// Blobs that are sent to be published are published at once, or sent again.
const STALE_BLOBS: Duration = Duration::from_secs(24 * 3600);
/// Unfinished results that weren't touched for so long are sent from their start, if at all.
const STALE_LEASES: Duration = Duration::from_secs(7 * 24 * 3600);

/// Carries out what the core wants done outside, until the core has ended.
pub(crate) async fn run(errands: UnboundedReceiver<Errand>, workers: Workers, site: Site) {
    let (shell, uploads) = (site.shell.clone(), site.uploads.clone());
    let runtime = Handle::current();
    let mut carried = tokio::task::spawn_blocking(move || {
        carry_out(errands, &workers, &site, &runtime);
        // Those that wait hear that the core has ended.
        site.assimilators.ring();
        // Ends the assimilators' threads, each after the unit that it is at.
        drop(workers);
    });
    let mut sweeps = interval_at(Instant::now() + SWEEP_EVERY, SWEEP_EVERY);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut carried => return,
            _ = sweeps.tick() => drop(tokio::spawn(sweep(shell.clone(), uploads.clone()))),
        }
    }
}

/// On a thread of its own: every hop has its errands, and most of them block for a moment.
fn carry_out(
    mut errands: UnboundedReceiver<Errand>,
    workers: &Workers,
    site: &Site,
    runtime: &Handle,
) {
    let Site { keeper, uploads, staging, assimilators, .. } = site;
    while let Some(errand) = errands.blocking_recv() {
        match errand {
            Errand::Assimilate => {
                workers.wake();
                assimilators.ring();
            }
            Errand::Delete(blob) => {
                let keeper = keeper.clone();
                drop(runtime.spawn(async move { keeper.delete(blob).await }));
            }
            Errand::DropUpload(lease) => {
                if let Some(staging) = staging.clone() {
                    drop(runtime.spawn(unstage(staging, lease)));
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

/// What can't be thrown away now, a collection finds.
async fn unstage(staging: Staging, lease: LeaseId) {
    if let Err(error) = staging.unstage(lease).await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(lease = lease.0, error, "an upload could not be dropped from the store");
    }
}

/// Throws away uploads that nobody is going to need. A complete result whose lease the core may
/// still take it for stays, however old.
pub(crate) async fn sweep(shell: ShellHandle, uploads: Uploads) {
    let wanted = match shell.wanted_uploads().await {
        Ok(wanted) => wanted,
        Err(error) => return tracing::warn!(%error, "the uploads can't be looked through"),
    };
    let swept = tokio::task::spawn_blocking(move || {
        uploads.sweep(SystemTime::now(), |name, state| match name {
            UploadName::Blob(_) => Some(STALE_BLOBS),
            UploadName::Lease(lease) | UploadName::Delta(lease) if !wanted.wants(lease) => {
                Some(Duration::ZERO)
            }
            UploadName::Lease(_) => (!state.complete).then_some(STALE_LEASES),
            UploadName::Delta(_) => Some(STALE_LEASES),
        })
    });
    match swept.await {
        Ok(Ok(0)) | Err(_) => {}
        Ok(Ok(swept)) => tracing::info!(swept, "old uploads were thrown away"),
        Ok(Err(error)) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "old uploads could not be thrown away");
        }
    }
}
