//! The signals that ask a long-running command to end in good order.

use std::{fs, future::pending};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ends when SIGTERM or SIGINT comes, or SIGHUP, which the end of a terminal or of a connection sends; where that
/// is ignored from the start (`nohup`), it stays so. They are listened for from the call on, not from the first
/// wait. A process that can't listen for them never ends this way.
pub fn requested() -> impl Future<Output = ()> + Send {
    let hangup = heeds(SignalKind::hangup()).then(SignalKind::hangup);
    let [mut hangup, mut terminate, mut interrupt] =
        [hangup, Some(SignalKind::terminate()), Some(SignalKind::interrupt())]
            .map(|kind| kind.and_then(|kind| signal(kind).ok()));
    async move {
        tokio::select! {
            () = heard(&mut hangup) => {}
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

/// Is the signal not ignored?
fn heeds(signal: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    !ignores(&status, signal.as_raw_value())
}

/// Is the signal one of those that a process with this `/proc/PID/status` ignores?
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1)
        .ok()
        .and_then(|bit| mask.checked_shr(bit))
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_those_of_the_mask() {
        let status = "Name:\tsojourn\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores(status, 0) && !ignores(status, 70));
        assert!(!ignores("", 1) && !ignores("SigIgn:\tmany\n", 1));
    }
}
