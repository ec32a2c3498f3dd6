//! Results that were granted before their trial was extended: others would train another length now.

use crate::support::{Bench, HOST, JOB, OTHER, done, hop, request};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, TrialId},
    report::Outcome,
    spec::{OrderChoice, PlacementSpec, Verify},
    unit::Lease,
};

const TO: ReplyTo = ReplyTo(1);

/// Every result is verified by two.
fn bench() -> Bench {
    let verify = Some(Verify { quorum: 2, rate: 1000 }.into());
    let placement = PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) };
    Bench::with_order(&placement, 1, 1)
}

fn extend(bench: &mut Bench) {
    bench.events(Command::Extend { to: TO, job: JOB, epochs: 2, trial: None, reopen: false });
}

/// A host reports what follows from its unit and from the length that it was trained for.
fn trained(bench: &mut Bench, host: HostId, lease: &Lease) -> Vec<Event> {
    let mut report = done(lease);
    let Outcome::Trained(trained) = &mut report.outcome else { panic!("{report:?}") };
    let steps = hop(lease).context.total_steps;
    let bytes = format!("{steps} {:?} {}", hop(lease).base, trained.end);
    trained.checkpoint.sha256 = Digest::of(bytes.as_bytes());
    let uploaded = Some(trained.checkpoint);
    bench.events(Command::Report { to: TO, host, report, uploaded })
}

#[test]
fn a_result_of_the_former_length_that_would_be_verified_is_made_anew() {
    let mut bench = bench();
    let first = bench.lease(HOST);
    extend(&mut bench);
    let events = trained(&mut bench, HOST, &first);
    assert!(events.contains(&Event::Superseded { lease: first.id }), "{events:?}");
    assert_eq!(bench.assimilate(), []);
    assert!(bench.core.state().trial(JOB, TrialId(0)).unwrap().history.is_empty());
    // What is granted now is verified as ever.
    let second = bench.lease(HOST);
    let events = trained(&mut bench, HOST, &second);
    assert!(events.contains(&Event::Challenged { lease: second.id }), "{events:?}");
}

#[test]
fn a_late_result_of_the_former_length_refutes_nothing() {
    let mut bench = bench();
    let late = bench.lease(HOST);
    bench.now += 60_000;
    bench.ask(HOST, request(0, Vec::new()));
    extend(&mut bench);
    let first = bench.lease(OTHER);
    assert!(!bench.core.state().leases.contains_key(&late.id), "it has run out");
    bench.ask(HOST, request(0, Vec::new()));
    let events = trained(&mut bench, OTHER, &first);
    assert!(events.contains(&Event::Challenged { lease: first.id }), "{events:?}");
    let events = trained(&mut bench, HOST, &late);
    assert!(events.contains(&Event::Superseded { lease: late.id }), "{events:?}");
    // The same host can confirm it: what it said of another length doesn't count.
    let second = bench.lease(HOST);
    let events = trained(&mut bench, HOST, &second);
    let confirmed = vec![first.id, second.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");
}
