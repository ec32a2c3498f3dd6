//! The signals that ask a long-running command to end in good order.

use tokio::signal::unix::{SignalKind, signal};

/// Ends when SIGTERM or SIGINT comes; a process that can't listen for them never ends this way.
pub(crate) async fn requested() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
