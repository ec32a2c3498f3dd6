//! The calls by which a host keeps in touch with its server: work, heartbeats, leases that are given back.

use crate::{context::Context, message::Message};
use sojourn_client_core::{AskId, Event, ReleaseReason};
use sojourn_http::{CallError, Recovery, trace::current};
use sojourn_protocol::{
    api::{HeartbeatRequest, ReleaseAnswer, ReleaseRequest, WorkRequest},
    ids::LeaseId,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// A failed call, for the agent.
pub(crate) fn retry_of(failure: Option<&CallError>) -> sojourn_client_core::CallError {
    let retry_after = failure.and_then(CallError::retry_after).map(Into::into);
    sojourn_client_core::CallError { retry_after }
}

/// The output of a call; `None` if it takes longer than `limit`.
async fn limited<T>(limit: Option<Duration>, call: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => timeout(limit, call).await.ok(),
        None => Some(call.await),
    }
}

/// Asks for work, for at most `limit`.
pub(crate) async fn ask<R>(
    context: Arc<Context<R>>,
    ask: AskId,
    request: WorkRequest,
    limit: Option<Duration>,
) {
    let result = limited(limit, context.server.api.work(&request)).await;
    let (inventory, trace) = (request.inventory, current());
    context.send(match result {
        Some(result) => Message::Work { ask, inventory, trace, result },
        None => Message::Event(Event::Work(ask, Err(retry_of(None)))),
    });
}

/// Sends a heartbeat.
pub(crate) async fn beat<R>(context: Arc<Context<R>>, request: HeartbeatRequest) {
    let result = context.server.api.heartbeat(&request).await;
    context.send(Message::Heartbeat(result));
}

/// Gives leases back; waits for the answer for at most `limit`.
pub(crate) async fn release<R>(
    context: Arc<Context<R>>,
    leases: Vec<LeaseId>,
    reason: ReleaseReason,
    limit: Option<Duration>,
) {
    let request = ReleaseRequest { leases: leases.clone(), reason };
    let result = limited(limit, context.server.api.release(&request)).await;
    let result = match result {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(failure)) => {
            context.note(&failure);
            match failure.recovery() {
                Recovery::Retry | Recovery::End => Err(retry_of(Some(&failure))),
                Recovery::Gone | Recovery::Amend(_) => Ok(ReleaseAnswer { released: Vec::new() }),
            }
        }
        None => Err(retry_of(None)),
    };
    context.tell(Event::Released(leases, result));
}
