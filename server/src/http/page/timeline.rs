//! The leases of a job in time, from its events and from what its hosts hold now.

use super::recent_events::LastEvents;
use crate::{
    http::{AppState, error::HttpError},
    shell::wall_time,
};
use sojourn_core::{Event, LeaseEnd, Record, UnitKey, request};
use sojourn_page::job::{LeaseBar, LeaseBarEnd, Timeline};
use sojourn_protocol::{
    figures,
    ids::{HostId, LeaseId, ShardId, TrialId},
    report::Outcome,
    residency::MoveKind,
    time::{Millis, UnixMillis},
    view::{HostView, JobView},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// How far the timeline of a job that goes on reaches back.
const LIVE_SPAN: Millis = Millis::from_secs(3_600);

/// The leases of a job: the last hour where it goes on, else from its beginning to its end, as far as its last events reach.
pub(super) async fn collect(
    app: &AppState,
    job: &JobView,
    last: &LastEvents,
) -> Result<Timeline, HttpError> {
    let hosts = app.shell.request(request::GetHosts {}).await?;
    Ok(timeline(job, &hosts, last, wall_time()))
}

fn timeline(job: &JobView, hosts: &[HostView], of: &LastEvents, now: UnixMillis) -> Timeline {
    let last = of.records.back().map_or(job.submitted_at, |record| record.at);
    // The machine's clock may be behind that of the journal.
    let until = job.ended_at.unwrap_or(now.max(last));
    let begin = match job.ended_at {
        Some(_) => job.submitted_at,
        None => job.submitted_at.max(UnixMillis(until.0.saturating_sub(LIVE_SPAN.0))),
    };
    // What was before the events isn't known.
    let known = of.records.front().filter(|_| of.has_earlier);
    let mut leases = bars(&of.records, until);
    for (host, held) in
        hosts.iter().flat_map(|host| host.leases.iter().map(move |held| (host, held)))
    {
        if held.job == job.job {
            let bar = leases.entry(held.lease).or_insert_with(|| LeaseBar {
                lease: held.lease,
                host: host.host,
                trial: held.trial,
                unit: held.unit.clone(),
                from: UnixMillis(until.0.saturating_sub(held.age.0)),
                to: until,
                end: LeaseBarEnd::Live,
                cpu_share: None,
                moved: None,
            });
            bar.cpu_share = held.cpu_share;
        }
    }
    Timeline {
        from: known.map_or(begin, |first| first.at.max(begin)).min(until),
        until,
        ended: job.ended_at.is_some(),
        names: hosts.iter().map(|host| (host.host, host.name.clone())).collect(),
        leases: leases.into_values().collect(),
    }
}

/// Leases that were granted in these events. One that hasn't ended in them is live, `until` then.
fn bars(records: &VecDeque<Arc<Record>>, until: UnixMillis) -> BTreeMap<LeaseId, LeaseBar> {
    let mut bars: BTreeMap<LeaseId, LeaseBar> = BTreeMap::new();
    let mut moves: BTreeMap<TrialId, (HostId, MoveKind)> = BTreeMap::new();
    for record in records {
        let (lease, end) = match &record.event {
            Event::LeaseGranted { lease, host, unit, then, .. } => {
                let trial = unit.trial();
                let has_come = matches!(unit, UnitKey::Train { .. })
                    && moves.get(&trial).is_some_and(|(to, _)| to == host);
                let moved =
                    if has_come { moves.remove(&trial).map(|(_, kind)| kind) } else { None };
                let bar = LeaseBar {
                    lease: *lease,
                    host: *host,
                    trial,
                    unit: words(unit, then),
                    from: record.at,
                    to: until.max(record.at),
                    end: LeaseBarEnd::Live,
                    cpu_share: None,
                    moved,
                };
                bars.insert(*lease, bar);
                continue;
            }
            Event::TrialMoved { trial, from, to, kind, .. } => {
                if from != to {
                    moves.insert(*trial, (*to, *kind));
                }
                continue;
            }
            Event::LeaseEnded { lease, end } => (lease, end_of(end)),
            Event::ReportAcknowledged { report, .. } => {
                let end = match report.outcome {
                    Outcome::Failed(_) => LeaseBarEnd::Failed,
                    Outcome::Trained(_) | Outcome::Evaluated(_) => LeaseBarEnd::Reported,
                };
                (&report.lease, end)
            }
            _ => continue,
        };
        // A late report doesn't change when its lease ran out.
        if let Some(bar) = bars.get_mut(lease).filter(|bar| bar.end == LeaseBarEnd::Live) {
            (bar.to, bar.end) = (record.at, end);
        }
    }
    bars
}

const fn end_of(end: &LeaseEnd) -> LeaseBarEnd {
    match end {
        LeaseEnd::Silent | LeaseEnd::Overdue => LeaseBarEnd::Expired,
        LeaseEnd::GivenBack { .. } => LeaseBarEnd::Returned,
        LeaseEnd::Revoked => LeaseBarEnd::Revoked,
    }
}

fn words(unit: &UnitKey, then: &[ShardId]) -> String {
    match unit {
        UnitKey::Train { epoch, shard, .. } => {
            format!("train epoch {}, {}", epoch.0 + 1, figures::shards(*shard, then))
        }
        UnitKey::Evaluate { epoch, .. } => format!("evaluate epoch {}", epoch.0 + 1),
        UnitKey::Extra { name, .. } => {
            format!("evaluate epoch {} on the {} data", name.epoch.0 + 1, name.split.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use sojourn_core::JournalPosition;

    fn record(at: u64, event: Value) -> Record {
        let event = serde_json::from_value(event).unwrap();
        Record { position: JournalPosition(at), at: UnixMillis(at), event }
    }

    fn last(records: impl IntoIterator<Item = Record>, has_earlier: bool) -> LastEvents {
        let records = records.into_iter().map(Arc::new).collect();
        let mut last = LastEvents::default();
        (last.records, last.has_earlier) = (records, has_earlier);
        last
    }

    fn granted(at: u64, lease: u64) -> Record {
        let unit = json!({ "train": { "job": 1, "trial": 4, "epoch": 1, "shard": 2, "from": 0 } });
        let lease = json!({
            "lease": lease, "host": 3, "unit": unit, "then": [0], "base": 0, "why": "a test",
        });
        record(at, json!({ "lease-granted": lease }))
    }

    fn ended(at: u64, lease: u64, end: Value) -> Record {
        record(at, json!({ "lease-ended": { "lease": lease, "end": end } }))
    }

    fn reported(at: u64, lease: u64, outcome: Value) -> Record {
        let report = json!({ "lease": lease, "outcome": outcome });
        record(at, json!({ "report-acknowledged": { "report": report, "host": 3 } }))
    }

    #[test]
    fn a_lease_lasts_from_its_grant_to_what_ends_it() {
        let evaluated = json!({ "evaluated": { "version": 1, "shards": [], "train_micros": 1 } });
        let failed = json!({ "failed": { "kind": "trainer", "message": "m" } });
        let records = [
            granted(10, 1),
            granted(11, 2),
            granted(12, 3),
            granted(13, 4),
            ended(20, 1, json!("silent")),
            reported(25, 1, evaluated.clone()),
            reported(26, 2, evaluated),
            reported(27, 3, failed),
            // It was granted before these events.
            ended(28, 9, json!("revoked")),
        ];
        let bars = bars(&last(records, false).records, UnixMillis(40));
        let of = |lease: u64| {
            let bar = &bars[&LeaseId(lease)];
            (bar.from.0, bar.to.0, bar.end)
        };
        assert_eq!(of(1), (10, 20, LeaseBarEnd::Expired));
        assert_eq!(of(2), (11, 26, LeaseBarEnd::Reported));
        assert_eq!(of(3), (12, 27, LeaseBarEnd::Failed));
        assert_eq!(of(4), (13, 40, LeaseBarEnd::Live));
        assert_eq!((bars.len(), &*bars[&LeaseId(1)].unit), (4, "train epoch 2, shards 2 and 0"));
    }

    #[test]
    fn the_first_hop_on_the_host_to_which_a_trial_moved_has_the_move() {
        let moved = |at: u64, from: u64, kind: &str| {
            let event = json!({
                "job": 1, "trial": 4, "from": from, "to": 3, "kind": kind, "from_load": 2.0, "to_load": 0.0,
            });
            record(at, json!({ "trial-moved": event }))
        };
        // A stay that counts as a move is none.
        let records = [
            granted(10, 1),
            moved(11, 5, "rebalance"),
            granted(12, 2),
            granted(13, 3),
            moved(14, 3, "speculative"),
            granted(15, 4),
        ];
        let bars = bars(&last(records, false).records, UnixMillis(40));
        let moves: Vec<_> = bars.values().map(|bar| bar.moved).collect();
        assert_eq!(moves, [None, Some(MoveKind::Rebalance), None, None]);
    }

    fn job(submitted_at: u64, ended_at: Option<u64>) -> JobView {
        let examples: Value =
            serde_json::from_str(include_str!("../openapi/examples.json")).unwrap();
        let job: JobView = serde_json::from_value(examples["JobView"].clone()).unwrap();
        let ended_at = ended_at.map(UnixMillis);
        JobView { submitted_at: UnixMillis(submitted_at), ended_at, ..job }
    }

    fn host() -> HostView {
        let examples: Value =
            serde_json::from_str(include_str!("../openapi/examples.json")).unwrap();
        serde_json::from_value(examples["HostView"].clone()).unwrap()
    }

    #[test]
    fn a_job_that_goes_on_shows_its_last_hour_and_one_that_has_ended_all() {
        let (begin, now) = (1_000, UnixMillis(10_000_000));
        let records = last([granted(2_000, 1)], false);
        let of = |job: &JobView, last: &LastEvents| {
            let timeline = timeline(job, &[], last, now);
            (timeline.from.0, timeline.until.0)
        };
        assert_eq!(of(&job(begin, None), &records), (10_000_000 - 3_600_000, 10_000_000));
        assert_eq!(of(&job(9_000_000, None), &last([], false)), (9_000_000, 10_000_000));
        assert_eq!(of(&job(begin, Some(5_000)), &records), (begin, 5_000));
        let many = last((0..20).map(|n| granted(2_000 + n, n)), true);
        assert_eq!(of(&job(begin, Some(5_000)), &many), (2_000, 5_000), "no event is known before");
    }

    #[test]
    fn a_bar_has_the_cpu_share_that_its_host_says_now() {
        let now = UnixMillis(10_000_000);
        let records = last([granted(9_000_000, 12), granted(9_000_000, 13)], false);
        let timeline = timeline(&job(1_000, None), &[host()], &records, now);
        let cpu_shares: Vec<_> = timeline.leases.iter().map(|bar| bar.cpu_share).collect();
        assert_eq!(cpu_shares, [host().leases[0].cpu_share, None]);
    }

    #[test]
    fn what_hosts_hold_is_shown_though_its_grant_is_no_event_here() {
        let now = UnixMillis(10_000_000);
        let timeline = timeline(&job(1_000, None), &[host()], &last([], false), now);
        let [bar] = &timeline.leases[..] else { panic!("{timeline:?}") };
        assert_eq!((bar.lease, bar.host.0, bar.end), (LeaseId(12), 3, LeaseBarEnd::Live));
        assert_eq!((bar.from.0, bar.to), (10_000_000 - 1_500, now));
        assert_eq!(timeline.names[&bar.host], "lab-7");
        assert_eq!(bar.cpu_share, host().leases[0].cpu_share);
        assert!(bar.cpu_share.is_some(), "the example has one");
    }
}
