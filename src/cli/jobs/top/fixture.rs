//! A server with jobs and hosts, for tests of what is shown.

use super::view::{Detail, Leader, Scope, Snapshot, View};
use serde_json::{Value, json};
use sojourn_protocol::{
    ids::{JobId, TrialId},
    view::{EventView, HostView, JobView},
};

fn job(id: u64, fields: &Value) -> JobView {
    let mut view = json!({
        "job": id, "name": format!("job-{id}"), "state": "finished", "submitted_at": 0, "ended_at": 90_000,
        "metric": "valid/accuracy", "trials": 2, "trials_finished": 2, "trials_failed": 0, "hops": 12,
        "hops_expected": 12, "evaluations": 6, "evaluations_expected": 6, "leases_live": 0, "leases_expired": 0,
        "leases_returned": 0, "superseded": 0, "rejected": 0, "train_micros": 0, "best": null, "waiting": null
    });
    for (name, value) in fields.as_object().unwrap() {
        view[name] = value.clone();
    }
    serde_json::from_value(view).unwrap()
}

fn host(id: u64, fields: &Value) -> HostView {
    let mut view = json!({
        "host": id, "name": format!("host-{id}"), "state": "live", "seen_at": 0, "slots": 2, "devices": [], "cached": 0,
        "leases": [], "used": 0, "expired": 0, "failures": 0, "last_error": null, "train_micros": 0
    });
    for (name, value) in fields.as_object().unwrap() {
        view[name] = value.clone();
    }
    serde_json::from_value(view).unwrap()
}

fn snapshot(jobs: Vec<JobView>, hosts: Vec<HostView>) -> Snapshot {
    let health = json!({
        "status": "ready", "version": "0.1.0", "journal_position": 40,
        "storage": {"level": "enough", "free": 12_000_000_000_u64, "reserve": 1_000_000_000}
    });
    Snapshot::new(serde_json::from_value(health).unwrap(), jobs, hosts)
}

/// The details of a job: two trials and three events.
pub(super) fn detail(job: u64) -> Detail {
    let leader = |trial, name: &str, values: &[f64], state: &str| Leader {
        trial: TrialId(trial),
        name: name.to_owned(),
        epochs: format!("{}/6", values.len()),
        best: values.iter().copied().reduce(f64::max),
        values: values.iter().copied().map(Some).collect(),
        state: state.to_owned(),
    };
    let event = |position: u64, kind: &str, text: &str, event: Value| -> EventView {
        let at = 1_795_223_834_000_u64 + position * 1000;
        let event =
            json!({"position": position, "at": at, "kind": kind, "text": text, "event": event});
        serde_json::from_value(event).unwrap()
    };
    Detail {
        job: JobId(job),
        leaders: vec![
            leader(1, "mlp hidden=[64] lr=0.01", &[0.5, 0.7, 0.8, 0.85, 0.9], "running"),
            leader(0, "mlp hidden=[16] lr=0.001", &[0.6, 0.4], "finished: place 2 of 2"),
        ],
        events: vec![
            event(9, "of-an-older-server", "", json!({"job": job})),
            event(
                8,
                "trial-stopped",
                "trial 0 was stopped by the search: place 2 of 2",
                json!({"job": job, "trial": 0, "why": "place 2 of 2"}),
            ),
            event(
                2,
                "job-submitted",
                &format!("job {job} `digits` was submitted"),
                json!({"job": job, "spec": {"name": "digits"}}),
            ),
        ],
        problem: None,
    }
}

fn view_of(mut snapshot: Snapshot) -> View {
    let mut view = View::new("https://sojourn.example.org".to_owned(), Scope::Server);
    snapshot.detail = snapshot.jobs.first().map(|job| detail(job.job.0));
    view.take_snapshot(snapshot);
    view
}

/// A server that has just begun.
pub(super) fn empty() -> View {
    view_of(snapshot(Vec::new(), Vec::new()))
}

/// Three jobs and three hosts.
pub(super) fn view() -> View {
    let best = json!({
        "trial": 1, "epoch": 4, "value": 0.9, "checkpoint": {"sha256": "ab".repeat(32), "bytes": 10}
    });
    let jobs = vec![
        job(1, &json!({"name": "digits-first", "best": best})),
        job(
            2,
            &json!({"name": "images", "state": "paused", "hops": 1_000_000, "hops_expected": 3_000_000}),
        ),
        job(
            3,
            &json!({
                "name": "digits", "state": "running", "ended_at": null, "hops": 7, "leases_live": 1, "best": best,
                "waiting": "no host in contact has the memory for it"
            }),
        ),
    ];
    let lease = json!({
        "lease": 8, "job": 3, "trial": 1, "unit": "train epoch 2, shard 3", "running": true, "age": 1000,
        "usage": {"cores": 1.94, "memory": 312_000_000, "read_per_second": 0.0, "written_per_second": 0.0},
        "share": {"share": 0.25, "list": "completing"}
    });
    let hosts = vec![
        host(1, &json!({"name": "attic", "state": "away"})),
        host(2, &json!({"name": "lab", "leases": [lease]})),
        host(3, &json!({"name": "desk", "waiting": "it lends too little disk for any unit"})),
    ];
    view_of(snapshot(jobs, hosts))
}

/// The running one of these jobs, with the host that works for it.
pub(super) fn one_job() -> View {
    let Snapshot { health, mut jobs, mut hosts, detail, .. } = view().snapshot.unwrap();
    jobs.retain(|job| job.job == JobId(3));
    hosts.retain(|host| !host.leases.is_empty());
    let facts = ["submitted 3 min ago", "trials 0 of 2 finished", "evaluations 6 of 12"];
    let facts = facts.map(str::to_owned).into();
    let mut view = View::new("https://sojourn.example.org".to_owned(), Scope::Job(JobId(3)));
    view.take_snapshot(Snapshot { facts, detail, ..Snapshot::new(health, jobs, hosts) });
    view
}

/// A thousand jobs and as many hosts.
pub(super) fn crowd() -> View {
    let jobs = (1..=1000).map(|id| job(id, &json!({}))).collect();
    let hosts = (1..=1000).map(|id| host(id, &json!({}))).collect();
    view_of(snapshot(jobs, hosts))
}
