//! How a daemon ends: what can be finished in time is, what was trained is sent, and the rest given back.

use crate::{
    host::{Host, Leaving},
    notice::Notice,
    runner::UnitRunner,
};
use sojourn_protocol::{
    api::{HeartbeatRequest, ReleaseRequest, WorkRequest},
    ids::LeaseId,
    reason::ReleaseReason,
    time::Millis,
};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::time::{Instant, timeout, timeout_at};

/// What is kept of a machine's last time, at most, to stop hops and to send their parts.
const LONGEST_RESERVE: Duration = Duration::from_secs(30);

/// Works off what runs, for as long as the machine's time allows, and takes nothing new. Without a notice it is
/// the owner who wants that, and has the time.
pub(crate) async fn wind_down<R: UnitRunner>(host: &Host<R>, notice: Option<&Notice>) {
    let left = notice.and_then(Notice::left);
    match (notice.map(|notice| notice.what.as_str()), left.map(|left| left.as_secs())) {
        (Some(what), Some(seconds)) => {
            tracing::warn!(what, seconds, "this machine is going to be taken away; winding down");
        }
        (Some(what), None) => tracing::warn!(
            what,
            "the cloud says that it may soon take this machine away; finishing what runs, and taking \
             nothing new"
        ),
        (None, _) => tracing::info!("winding down, as the owner says"),
    }
    let given_back = give_back(host, host.table.stop_unstarted(), ReleaseReason::Stopping);
    let given_back = async { given_back.await + give_back_unheard(host).await };
    let done = async {
        let mut changes = host.table.subscribe();
        while host.table.is_busy() && changes.changed().await.is_ok() {}
    };
    let work = async { tokio::join!(given_back, done) };
    match left {
        // A hop that doesn't fit loses nothing by going on until then.
        Some(left) => drop(timeout(left - reserve(left), work).await),
        None => drop(work.await),
    }
}

/// Has hops end with the parts that they have trained and gives everything else back; the daemon stays.
pub(crate) async fn clear_out<R: UnitRunner>(host: &Host<R>) {
    let given_back = give_back(host, host.table.stop_others(), ReleaseReason::Paused).await;
    if given_back > 0 {
        tracing::info!(given_back, "nothing is computed for long; units are given back");
    }
}

/// Gives back what hasn't begun to run; what runs is finished and sent.
pub(crate) async fn return_unstarted<R: UnitRunner>(host: &Host<R>) {
    let given_back =
        give_back(host, host.table.stop_unstarted(), ReleaseReason::MonthlyBudget).await;
    if given_back > 0 {
        tracing::info!(given_back, "no more bytes may come this month; units are given back");
    }
}

/// How much of the time that is left belongs to the farewell.
fn reserve(left: Duration) -> Duration {
    (left / 2).min(LONGEST_RESERVE)
}

/// Has hops end with the parts that they have trained, gives everything else back, and lets results on
/// their way arrive: all of it in the time that a farewell has, or a notice leaves, where that is more. What is
/// trained comes to the disk in any case.
///
/// ```text
/// begin                      half             three quarters            end
///   | hops end by themselves  | hops are ended | the rest is given back  |
///   | results arrive, and what doesn't run is given back                 |
/// ```
pub(crate) async fn farewell<R: UnitRunner>(host: &Host<R>, notice: Option<&Notice>) {
    let patience = host.timing.farewell;
    let time = notice.and_then(Notice::left).map_or(patience, |left| left.max(patience));
    let begun = Instant::now();
    tracing::info!("stopping; what is trained is being sent");
    host.leave(Leaving::Early);
    let others = host.table.stop_others();
    let given_back = AtomicUsize::new(0);
    let others = async {
        given_back
            .fetch_add(give_back(host, others, ReleaseReason::Stopping).await, Ordering::Relaxed);
        given_back.fetch_add(give_back_unheard(host).await, Ordering::Relaxed);
    };
    let results = async {
        timeout_at(begun + time / 2, ended(host)).await.ok();
        // Trainers that don't listen leave what they have kept.
        host.leave(Leaving::Now);
        timeout_at(begun + time * 3 / 4, ended(host)).await.ok();
        let late = give_back(host, host.table.stop_all(), ReleaseReason::Stopping);
        let late = async { given_back.fetch_add(late.await, Ordering::Relaxed) };
        let sent = async {
            tokio::select! {
                () = arrived(host) => hear_ends(host).await,
                // The next start sends them; on a machine that goes there is none.
                () = host.contact.went_away(), if notice.is_none() => {}
            }
        };
        tokio::join!(late, sent);
    };
    // Whatever doesn't make it is on disk.
    let all = async { tokio::join!(others, results) };
    timeout_at(begun + time, all).await.ok();
    let (given_back, kept) = (given_back.into_inner(), host.table.undelivered());
    tracing::info!(given_back, kept, "client stopped");
}

/// Ends what is asked for, and gives back what was granted in an answer that nobody waited for any more.
async fn give_back_unheard<R: UnitRunner>(host: &Host<R>) -> usize {
    let request = WorkRequest {
        demand: Vec::new(),
        holding: host.table.holding(),
        reported: Vec::new(),
        wait: Millis(0),
        inventory: None,
    };
    match timeout(host.timing.farewell, host.api.work(&request)).await {
        Ok(Ok(answer)) => {
            host.contact.made();
            let leases = answer.leases.into_iter().map(|lease| lease.id).collect();
            give_back(host, leases, ReleaseReason::Stopping).await
        }
        Ok(Err(failure)) => {
            host.contact.lost(&failure);
            0
        }
        Err(_) => 0,
    }
}

/// Ends when no hop runs any more.
async fn ended<R: UnitRunner>(host: &Host<R>) {
    let mut changes = host.table.subscribe();
    while host.table.ending() > 0 && changes.changed().await.is_ok() {}
}

/// Ends when no result is on its way any more.
async fn arrived<R: UnitRunner>(host: &Host<R>) {
    let mut changes = host.table.subscribe();
    while host.table.undelivered() > 0 && changes.changed().await.is_ok() {}
}

/// Asks what has become of reports, once: results that the server is done with needn't stay on disk.
async fn hear_ends<R: UnitRunner>(host: &Host<R>) {
    let reported = host.table.awaiting_end();
    if reported.is_empty() {
        return;
    }
    let request = HeartbeatRequest { holding: host.table.holding(), reported };
    if let Ok(answer) = host.api.heartbeat(&request).await {
        host.obey(&answer.drop, &answer.reports, &request.reported);
    }
}

/// Gives leases back, in one attempt; those of which the server doesn't hear run out. How many they are.
async fn give_back<R: UnitRunner>(
    host: &Host<R>,
    leases: Vec<LeaseId>,
    reason: ReleaseReason,
) -> usize {
    let count = leases.len();
    if count > 0 {
        let request = ReleaseRequest { leases, reason };
        let release = timeout(host.timing.farewell, host.api.release(&request));
        if !matches!(release.await, Ok(Ok(_))) {
            tracing::warn!(count, "the server didn't hear which units are given back");
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_short_time_is_for_the_farewell() {
        let seconds = Duration::from_secs;
        for (left, kept) in [(0, 0), (30, 15), (60, 30), (120, 30)] {
            assert_eq!(reserve(seconds(left)), seconds(kept));
        }
    }
}
