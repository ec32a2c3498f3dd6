//! The signals that ask a process to end in good order.

use std::future::pending;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ends when SIGTERM or SIGINT comes. They are listened for from the call on.
pub(super) fn requested() -> impl Future<Output = ()> + Send {
    let [mut terminate, mut interrupt] =
        [SignalKind::terminate(), SignalKind::interrupt()].map(|kind| signal(kind).ok());
    async move {
        tokio::select! {
            () = heard(&mut terminate) => {}
            () = heard(&mut interrupt) => {}
        }
    }
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => pending().await,
    }
}
