//! A running job is placed otherwise: its priority, its slot share, its number of hosts.

use crate::support::{Bench, HOST, JOB, OTHER, data_of_four, done, request};
use sojourn_core::{Command, Core, Event, ReplyTo};
use sojourn_protocol::{
    api::PlacementRequest,
    error::ErrorKind,
    ids::{HostId, JobId},
    report::Outcome,
    unit::Lease,
};

const TO: ReplyTo = ReplyTo(1);
const SECOND: JobId = JobId(2);

fn place(job: JobId, placement: PlacementRequest) -> Command {
    Command::Place { to: TO, job, placement }
}

fn two_jobs() -> Bench {
    let mut bench = Bench::with_job(4, 3);
    bench.submit(4, 4, true).unwrap();
    bench
}

fn takes(bench: &mut Bench, host: HostId) -> Lease {
    let lease = bench.lease(host);
    bench.finish(host, &lease);
    lease
}

#[test]
fn a_job_that_gets_a_higher_priority_is_served_first_from_then_on() {
    let mut bench = two_jobs();
    let held = bench.lease(HOST);
    assert_eq!(held.unit.job(), JOB);
    let higher = PlacementRequest { priority: Some(5), ..PlacementRequest::default() };
    let placed = Event::JobPlaced {
        job: SECOND,
        priority: 5,
        slot_share: 1,
        max_hosts: None,
        budget: None,
        deadline: None,
    };
    assert_eq!(bench.events(place(SECOND, higher)), [placed]);
    assert!(bench.events(place(SECOND, higher)).is_empty(), "said twice, done once");
    let next: Vec<JobId> = (0..5).map(|_| takes(&mut bench, OTHER).unit.job()).collect();
    assert_eq!(next, [SECOND; 5]);
    bench.finish(HOST, &held);
    let lower = PlacementRequest { priority: Some(-5), ..PlacementRequest::default() };
    bench.apply(place(SECOND, lower));
    let next: Vec<JobId> = (0..5).map(|_| takes(&mut bench, OTHER).unit.job()).collect();
    assert_eq!(next, [JOB; 5]);
}

#[test]
fn a_larger_slot_share_counts_from_then_on() {
    let mut bench = two_jobs();
    let slot_share = PlacementRequest { slot_share: Some(3), ..PlacementRequest::default() };
    bench.apply(place(SECOND, slot_share));
    let mut jobs = Vec::new();
    for _ in 0..16 {
        let lease = bench.lease(HOST);
        bench.now += 3_000;
        let mut report = done(&lease);
        if let Outcome::Trained(trained) = &mut report.outcome {
            trained.train_micros = 3_000_000;
        }
        bench.report(HOST, report).unwrap();
        bench.assimilate();
        jobs.push(lease.unit.job());
    }
    let of_second = jobs.iter().filter(|job| **job == SECOND).count();
    assert!((11..=13).contains(&of_second), "{jobs:?}");
}

#[test]
fn fewer_hosts_keep_what_they_have_and_others_get_nothing() {
    let mut bench = Bench::with_job(4, 3);
    let [first, second] = [HOST, OTHER].map(|host| bench.lease(host));
    let one = PlacementRequest { max_hosts: Some(1), ..PlacementRequest::default() };
    bench.apply(place(JOB, one));
    bench.finish(OTHER, &second);
    assert_eq!(bench.ask(OTHER, request(1, Vec::new())).leases, []);
    bench.finish(HOST, &first);
    takes(&mut bench, HOST);
    let all = PlacementRequest { max_hosts: Some(0), ..PlacementRequest::default() };
    bench.apply(place(JOB, all));
    let held = bench.lease(HOST);
    takes(&mut bench, OTHER);
    bench.finish(HOST, &held);
}

#[test]
fn replicas_are_assigned_to_the_hosts_that_remain() {
    let mut bench = Bench::with_job_on(data_of_four(), 2, 2, "[placement]\nreplicas = 1\n");
    takes(&mut bench, HOST);
    let one = PlacementRequest { max_hosts: Some(1), ..PlacementRequest::default() };
    bench.apply(place(JOB, one));
    for _ in 0..1_000 {
        for host in [HOST, OTHER] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                bench.report(host, done(&lease)).unwrap();
                bench.assimilate();
            }
        }
    }
    assert!(bench.core.state().jobs[&JOB].end.is_some(), "one host alone does it all");
}

#[test]
fn it_is_kept_over_a_restart() {
    let mut bench = Bench::with_job(1, 1);
    let (priority, slot_share, max_hosts) = (Some(7), Some(2), Some(3));
    let request =
        PlacementRequest { priority, slot_share, max_hosts, ..PlacementRequest::default() };
    bench.apply(place(JOB, request));
    let again = Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap();
    let placement = &again.state().jobs[&JOB].spec.placement;
    assert_eq!((placement.priority, placement.slot_share, placement.max_hosts), (7, 2, Some(3)));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut bench = Bench::with_job(1, 1);
    let none = PlacementRequest::default();
    for (request, kind) in [
        (PlacementRequest { priority: Some(101), ..none }, ErrorKind::Invalid),
        (PlacementRequest { priority: Some(i32::MIN), ..none }, ErrorKind::Invalid),
        (PlacementRequest { slot_share: Some(0), ..none }, ErrorKind::Invalid),
        (PlacementRequest { slot_share: Some(1001), ..none }, ErrorKind::Invalid),
    ] {
        assert_eq!(bench.answer(place(JOB, request)).unwrap_err().kind, kind, "{request:?}");
    }
    assert_eq!(bench.answer(place(JobId(9), none)).unwrap_err().kind, ErrorKind::NotFound);
    bench.apply(Command::Cancel { to: TO, job: JOB });
    assert_eq!(bench.answer(place(JOB, none)).unwrap_err().kind, ErrorKind::Conflict);
}
