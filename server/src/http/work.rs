//! Requests of hosts: work, heartbeats, releases, results.

use super::{
    App, AppState, JsonAnswer, JsonResult, auth::Host, checkpoints::check_owner, complete_uploads,
    error::HttpError, failures, features::CallerFeatures, incarnation::CallerIncarnation,
    request_body::Body,
};
use actix_web::web;
use sojourn_blobs::{Staging, UploadName};
use sojourn_core::request;
use sojourn_http::trace::{UNITS, current};
use sojourn_protocol::{
    api::{
        HeartbeatAnswer, HeartbeatRequest, Held, HeldState, ReleaseAnswer, ReleaseRequest,
        ReportAnswer, WorkAnswer, WorkRequest,
    },
    error::ErrorKind,
    ids::HostId,
    inventory::Device,
    report::{Outcome, Report},
    trace::TraceContext,
};
use tracing::Instrument as _;

pub(super) async fn work(
    app: App,
    Host(host): Host,
    features: CallerFeatures,
    incarnation: CallerIncarnation,
    Body(mut request): Body<WorkRequest>,
) -> JsonResult<WorkAnswer> {
    incarnation.check(&app, host).await?;
    count_received(&app, &mut request.holding).await?;
    let names_no_engine = request
        .inventory
        .as_ref()
        .is_some_and(|inventory| inventory.devices.iter().any(Device::names_no_engine));
    let JsonAnswer(mut answer) = app.answer(request::Ask { host, request }).await?;
    for lease in &mut answer.leases {
        lease.cpu_shares = lease.cpu_shares.filter(|_| features.host_shares);
    }
    for lease in &answer.leases {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        tracing::debug!(target: UNITS, lease = lease.id.0, host = host.0, job = job.0, trial = trial.0, "lease granted");
    }
    // It took this server for an older one.
    answer.send_inventory |= features.engines && names_no_engine;
    Ok(JsonAnswer(answer))
}

pub(super) async fn heartbeat(
    app: App,
    Host(host): Host,
    incarnation: CallerIncarnation,
    Body(mut request): Body<HeartbeatRequest>,
) -> JsonResult<HeartbeatAnswer> {
    incarnation.check(&app, host).await?;
    count_received(&app, &mut request.holding).await?;
    app.answer(request::Heartbeat { host, request }).await
}

pub(super) async fn release(
    app: App,
    Host(host): Host,
    Body(request): Body<ReleaseRequest>,
) -> JsonResult<ReleaseAnswer> {
    let ReleaseRequest { leases, reason } = request;
    let said = reason.to_string();
    let answer = app.answer(request::Release { host, leases, reason }).await?;
    for lease in &answer.0.released {
        tracing::debug!(target: UNITS, lease = lease.0, host = host.0, reason = said, "lease given back");
    }
    Ok(answer)
}

pub(super) async fn report(
    app: App,
    Host(host): Host,
    Body(report): Body<Report>,
) -> JsonResult<ReportAnswer> {
    // A task of its own: the mark of a report that isn't acknowledged is taken back even if the client hangs up.
    let current = current();
    let reported = async move { acknowledge(&app, host, report, current).await };
    let reported = actix_web::rt::spawn(reported.in_current_span());
    Ok(JsonAnswer(reported.await.map_err(|error| HttpError::fault(&error))??))
}

async fn acknowledge(
    app: &AppState,
    host: HostId,
    report: Report,
    trace: Option<TraceContext>,
) -> Result<ReportAnswer, HttpError> {
    let lease = report.lease;
    let checkpoint = match &report.outcome {
        Outcome::Trained(trained) => Some(trained.checkpoint),
        Outcome::Evaluated(_) | Outcome::Failed(_) => None,
    };
    let mut uploaded = None;
    if let Some(blob) = checkpoint {
        // Only the lease's own host keeps others from replacing the upload.
        check_owner(app, host, lease).await?;
        uploaded = complete_uploads::is_whole(app, lease, blob).await?.then_some(blob);
        if let Some(trace) = trace {
            // Before the core has it: an assimilator may take it at once.
            app.assimilation.traces.reported(lease, trace);
        }
    }
    let failure = match &report.outcome {
        Outcome::Failed(failure) => Some(failure.clone()),
        Outcome::Trained(_) | Outcome::Evaluated(_) => None,
    };
    let answer = app.shell.request(request::Report { host, report, uploaded }).await;
    match &answer {
        Ok(_) => {
            let has_checkpoint = uploaded.is_some();
            tracing::debug!(target: UNITS, lease = lease.0, host = host.0, has_checkpoint, "result acknowledged");
            app.quota.forget(lease);
            if let Some(failure) = failure {
                failures::count(app, host, lease, failure).await?;
            }
        }
        // It may be journalled: the host asks again.
        Err(error) if matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Internal) => {}
        Err(_) => {
            if let Some(blob) = uploaded {
                app.assimilation.traces.ended(lease);
                complete_uploads::take_back(app, lease, blob).await?;
            }
        }
    }
    Ok(answer?)
}

/// Of a result that is uploaded, a host is believed as far as bytes of it have come. Where uploads go past the server, the
/// core bounds them by the size of the result.
async fn count_received(app: &AppState, holding: &mut [Held]) -> Result<(), HttpError> {
    let is_direct = app.staging.as_ref().is_some_and(Staging::takes_uploads);
    let is_sent = |held: &Held| matches!(held.state, HeldState::Sending { .. });
    let sending: Vec<_> = holding.iter_mut().filter(|held| is_sent(held)).collect();
    if is_direct || sending.is_empty() {
        return Ok(());
    }
    let names = sending.iter().map(|held| UploadName::Lease(held.lease)).collect::<Vec<_>>();
    let uploads = app.uploads.clone();
    let received = web::block(move || {
        let received = |name| uploads.state(name).map_or(0, |(_, state)| state.offset);
        names.into_iter().map(received).collect::<Vec<u64>>()
    });
    for (held, received) in sending.into_iter().zip(received.await?) {
        if let HeldState::Sending { sent } = &mut held.state {
            *sent = (*sent).min(received);
        }
    }
    Ok(())
}
