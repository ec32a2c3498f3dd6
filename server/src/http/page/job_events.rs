//! The last events of a job, each with what it is about.

use super::recent_events::LastEvents;
use crate::http::{error::HttpError, events};
use sojourn_core::{Event, Record};
use sojourn_page::events::{Entry, Kind};
use sojourn_protocol::{
    ids::{HostId, LeaseId, TrialId},
    spec::CpuSharePolicy,
};
use std::{collections::BTreeMap, sync::Arc};

/// The events with their trials and hosts. Of a lease that was granted before the first of them, these aren't known.
pub(super) fn entries(
    last: &LastEvents,
    cpu_shares: CpuSharePolicy,
) -> Result<Vec<Entry>, HttpError> {
    let mut leases: BTreeMap<LeaseId, (TrialId, HostId)> = BTreeMap::new();
    let entry = |record: &Arc<Record>| {
        if let Event::LeaseGranted { lease, host, unit, .. } = &record.event {
            leases.insert(*lease, (unit.trial(), *host));
        }
        let of_lease = record.event.lease().and_then(|lease| leases.get(&lease));
        let event = events::view(record, cpu_shares)?;
        // Events name what they are about alike, by the fields `trial` and `host`.
        let named = |field: &str| {
            let number = event.event.get(field).and_then(serde_json::Value::as_u64)?;
            u32::try_from(number).ok()
        };
        let trial = of_lease.map(|(trial, _)| *trial).or_else(|| named("trial").map(TrialId));
        let host = of_lease.map(|(_, host)| *host);
        let host = host.or_else(|| named("host").map(|host| HostId(host.into())));
        Ok(Entry { kind: kind(&record.event, &event.event), event, trial, host })
    };
    last.records.iter().map(entry).collect()
}

/// The kind of an event. `fields`: the event's, of which `by` names the user who asked for it.
fn kind(event: &Event, fields: &serde_json::Value) -> Kind {
    match event {
        Event::LeaseGranted { .. }
        | Event::LeaseEnded { .. }
        | Event::ReportAcknowledged { .. }
        | Event::Assimilated { .. }
        | Event::Superseded { .. }
        | Event::Challenged { .. }
        | Event::Verified { .. } => Kind::Leases,
        Event::Evaluated { .. } | Event::ExtraEvaluated { .. } => Kind::Evaluations,
        Event::Rejected { .. }
        | Event::UnitFailed { .. }
        | Event::Unverified { .. }
        | Event::BlobLost { .. }
        | Event::TrialRolledBack { .. }
        | Event::RollbackAsked { .. }
        | Event::TrialFailed { .. }
        | Event::ExtraFailed { .. } => Kind::Trouble,
        Event::JobSubmitted { .. }
        | Event::JobCancelled { .. }
        | Event::JobPaused { .. }
        | Event::JobResumed { .. }
        | Event::JobPlaced { .. }
        | Event::JobNoted { .. }
        | Event::ExtraAsked { .. } => Kind::People,
        _ if fields.get("by").is_some_and(|by| !by.is_null()) => Kind::People,
        _ => Kind::Search,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sojourn_core::JournalPosition;
    use sojourn_protocol::time::UnixMillis;

    #[test]
    fn an_event_of_a_lease_is_of_the_leases_trial_and_host() {
        let unit = json!({ "train": { "job": 1, "trial": 4, "epoch": 1, "shard": 2, "from": 0 } });
        let events = [
            json!({ "lease-ended": { "lease": 7, "end": "silent" } }),
            json!({ "lease-granted": { "lease": 8, "host": 3, "unit": unit, "then": [], "base": 0, "why": "a test" } }),
            json!({ "lease-ended": { "lease": 8, "end": "silent" } }),
            json!({ "job-paused": { "job": 1 } }),
        ];
        let mut last = LastEvents::default();
        last.records = (1u64..)
            .zip(events)
            .map(|(at, event)| {
                let event = serde_json::from_value(event).unwrap();
                Arc::new(Record { position: JournalPosition(at), at: UnixMillis(at), event })
            })
            .collect();
        let entries = entries(&last, CpuSharePolicy::Equal).unwrap();
        let about: Vec<_> = entries.iter().map(|of| (of.kind, of.trial, of.host)).collect();
        let of_lease = (Kind::Leases, Some(TrialId(4)), Some(HostId(3)));
        let before = (Kind::Leases, None, None);
        assert_eq!(about, [before, of_lease, of_lease, (Kind::People, None, None)]);
    }
}
