//! Shows the server that held leases are alive, as often as they ask, and takes its answer.

use crate::{host::Host, runner::UnitRunner};
use sojourn_protocol::api::HeartbeatRequest;
use std::{convert::Infallible, sync::Arc};
use tokio::time::Instant;

/// Sends heartbeats for as long as the daemon runs; none while nothing is held.
pub(crate) async fn beat<R: UnitRunner>(host: Arc<Host<R>>) -> Infallible {
    let mut changes = host.table.subscribe();
    let mut backoff = host.backoff();
    let mut last = Instant::now();
    loop {
        changes.mark_unchanged();
        let Some(every) = host.table.heartbeat_every() else {
            // The table, and with it the sender, lives as long as `host`.
            let _ = changes.changed().await;
            // Its arrival was contact enough.
            last = Instant::now();
            continue;
        };
        tokio::select! {
            () = tokio::time::sleep_until(last + every) => {}
            _ = changes.changed() => continue,
        }
        last = Instant::now();
        let request =
            HeartbeatRequest { holding: host.table.holding(), reported: host.table.awaiting_end() };
        match host.api.heartbeat(&request).await {
            Ok(answer) => {
                backoff.reset();
                host.contact.made();
                host.obey(&answer.drop, &answer.reports, &request.reported);
                host.stop_early(&answer.stop);
            }
            Err(failure) => {
                host.note(&failure);
                host.contact.lost(&failure);
                host.contact.pause(&mut backoff, failure.retry_after()).await;
                // Due at once: the pause was its interval.
                last = Instant::now().checked_sub(every).unwrap_or(last);
            }
        }
    }
}
