//! Hosts that work at a search whose losses a test says.

use crate::support::{Bench, HOST, JOB, OTHER, evaluated, evaluation, request};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    ids::HostId,
    report::{Outcome, Report},
    unit::{Lease, Unit},
};

/// A host asks once, and does what it gets; evaluations see the loss that `loss` says.
pub(crate) fn work(bench: &mut Bench, host: HostId, loss: &dyn Fn(u32, u32) -> f64) -> Vec<Event> {
    let mut events = Vec::new();
    bench.now += 100;
    for lease in bench.ask(host, request(1, Vec::new())).leases {
        match &lease.unit {
            Unit::Train(_) => events.extend(bench.finish(host, &lease)),
            Unit::Evaluate(_) => events.extend(evaluate(bench, host, &lease, loss)),
        }
    }
    events
}

pub(crate) fn evaluate(
    bench: &mut Bench,
    host: HostId,
    lease: &Lease,
    loss: &dyn Fn(u32, u32) -> f64,
) -> Vec<Event> {
    let unit = evaluation(lease);
    let mut sums = evaluated(unit, 0);
    for shard in &mut sums.shards {
        shard.loss = loss(unit.trial.0, unit.epoch.0 + 1) * shard.rows as f64;
    }
    let report = Report { lease: lease.id, outcome: Outcome::Evaluated(sums) };
    bench.events(Command::Report { to: ReplyTo(1), host, report, uploaded: None })
}

/// Works until the job has ended; says all events.
pub(crate) fn to_the_end(bench: &mut Bench, loss: &dyn Fn(u32, u32) -> f64) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..2_000 {
        if bench.core.state().jobs[&JOB].end.is_some() {
            return events;
        }
        for host in [HOST, OTHER] {
            events.extend(work(bench, host, loss));
        }
    }
    panic!("the job doesn't end: {:?}", bench.core.state().jobs[&JOB]);
}

/// Epochs that each trial has trained.
pub(crate) fn trained(bench: &Bench) -> Vec<u32> {
    let trials = &bench.core.state().jobs[&JOB].trials;
    trials.iter().map(|trial| trial.chain.epoch().0).collect()
}

/// Later trials are worse.
pub(crate) fn by_trial(trial: u32, _: u32) -> f64 {
    f64::from(trial)
}
