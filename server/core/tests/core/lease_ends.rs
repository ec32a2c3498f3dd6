//! Every lease ends, whatever its host reports of it; and of other hosts' leases nothing is believed.

use crate::support::{Bench, HOST, OTHER, data, request, trained_after};
use sojourn_core::{Answer, Command, Core, Event, LeaseEnd, Query, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState},
    ids::{HostId, LeaseId},
    manifest::DataManifest,
    report::{Outcome, Report},
    unit::Lease,
};

/// Shards of 8,000 rows: a thousand batches each.
fn large() -> DataManifest {
    let mut data = data();
    data.train.iter_mut().for_each(|shard| shard.rows = 8_000);
    data
}

/// A heartbeat after some seconds: what it makes, and the leases that are to end early.
fn beat(
    bench: &mut Bench,
    seconds: u64,
    host: HostId,
    held: &[(LeaseId, HeldState)],
) -> Vec<Event> {
    bench.now += seconds * 1_000;
    let holding = held.iter().map(|(lease, state)| Held::new(*lease, *state)).collect();
    bench.events(Command::Heartbeat {
        to: ReplyTo(1),
        host,
        request: HeartbeatRequest::new(holding, Vec::new()),
    })
}

/// Seconds until a lease ends, where its host reports more of it every four seconds.
fn lasts(bench: &mut Bench, lease: &Lease, state: impl Fn(u32) -> HeldState) -> Option<u64> {
    let begun = bench.now;
    for n in 1..20_000 {
        let ended = beat(bench, 4, HOST, &[(lease.id, state(n))]);
        if ended.contains(&Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Overdue }) {
            return Some((bench.now - begun) / 1_000);
        }
    }
    None
}

/// Another host trains a hop of the same workload in 100 s.
fn other_trains(bench: &mut Bench) {
    let lease = bench.lease(OTHER);
    for n in 1..=12 {
        beat(bench, 9, OTHER, &[(lease.id, HeldState::Running { done: 80 * n, of: 1_000 })]);
        beat(bench, 0, HOST, &[]);
    }
    let mut trained = trained_after(&lease, 1_000);
    trained.train_micros = 100_000_000;
    bench.report(OTHER, Report { lease: lease.id, outcome: Outcome::Trained(trained) }).unwrap();
}

#[test]
fn a_host_that_fetches_a_byte_at_a_time_loses_the_lease() {
    let mut data = data();
    data.train.iter_mut().for_each(|shard| shard.blob.bytes = 1 << 30);
    let mut bench = Bench::with_job_on(data, 1, 1, "");
    let lease = bench.lease(HOST);
    // 1 GiB at 10 kB/s, and grace.
    let lasts = lasts(&mut bench, &lease, |n| HeldState::Fetching { fetched: n.into() });
    assert_eq!(lasts, None, "it is on its way, if slowly");

    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let lasts = self::lasts(&mut bench, &lease, |n| HeldState::Fetching { fetched: n.into() });
    assert!(lasts.is_some_and(|lasts| lasts < 400), "{lasts:?}");
}

#[test]
fn a_host_that_trains_a_batch_at_a_time_loses_the_lease() {
    let mut bench = Bench::with_job_on(large(), 2, 1, "");
    other_trains(&mut bench);
    let lease = bench.lease(HOST);
    // 32 times 100 s, and time for the transfers.
    let done = |n: u32| HeldState::Running { done: n / 10, of: 1_000 };
    let lasts = lasts(&mut bench, &lease, done);
    assert!(lasts.is_some_and(|lasts| (3_200..3_600).contains(&lasts)), "{lasts:?}");
    // It gets nothing for as long as it held the lease.
    for seconds in [0, 3_000] {
        bench.now += seconds * 1_000;
        assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases, [], "it cools down");
    }
    bench.now += 600_000;
    bench.lease(HOST);
}

#[test]
fn a_slow_host_is_asked_for_what_it_has_before_it_loses_the_lease() {
    let mut bench = Bench::with_job_on(large(), 2, 1, "");
    other_trains(&mut bench);
    let lease = bench.lease(HOST);
    let mut done = 0;
    loop {
        done += 1;
        let held = vec![(lease.id, HeldState::Running { done, of: 1_000 })];
        bench.now += 8_000;
        if bench.ask(HOST, request(0, held)).stop == [lease.id] {
            break;
        }
        assert!(done < 1_000, "it is never asked");
    }
    // After half of what it may take, which is 16 times as long as the other host took.
    assert!((195..215).contains(&done), "{done}");
    let part = Report { lease: lease.id, outcome: Outcome::Trained(trained_after(&lease, done)) };
    bench.report(HOST, part).unwrap();
    (0..2).for_each(|_| drop(bench.assimilate()));
    assert_eq!(bench.job().leases_expired, 0);
    let versions: Vec<u32> = bench.trials().iter().map(|trial| trial.version.0).collect();
    assert_eq!(versions, [1, 1], "the part is used, too");
}

/// A part of a unit can't be compared with the result that is verified.
#[test]
fn a_host_that_reproduces_a_result_is_not_asked_for_a_part() {
    let verify = "[placement]\norder = \"hop\"\nreproducible = true\n\
                  verify = { quorum = 2, rate = 1.0 }";
    let mut bench = Bench::with_job_on(large(), 1, 1, verify);
    other_trains(&mut bench);
    let lease = bench.lease(HOST);
    for n in 0.. {
        let held = vec![(lease.id, HeldState::Running { done: n / 2, of: 1_000 })];
        bench.now += 8_000;
        let answer = bench.ask(HOST, request(0, held));
        assert_eq!(answer.stop, [], "after {} s", n * 8);
        if !bench.core.state().leases.contains_key(&lease.id) {
            break;
        }
        assert!(n < 1_000, "it never ends");
    }
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases, [], "it cools down");
}

/// How far estimates for a host were off; `None` where it wasn't measured.
fn measured(bench: &mut Bench, host: HostId) -> Option<u64> {
    let hosts = match bench.answer(Command::Query { to: ReplyTo(1), query: Query::Hosts }) {
        Ok(Answer::Hosts(hosts)) => hosts,
        other => panic!("{other:?}"),
    };
    let of = hosts.into_iter().find(|of| of.host == host).unwrap();
    of.devices.iter().find_map(|device| device.estimate_error)
}

#[test]
fn a_few_batches_say_nothing_of_the_speed_of_a_host() {
    for (batches, is_measured) in [(1, false), (7, false), (8, true), (1_000, true)] {
        let mut bench = Bench::with_job_on(large(), 1, 1, "");
        let lease = bench.lease(HOST);
        let trained = trained_after(&lease, batches);
        bench.report(HOST, Report { lease: lease.id, outcome: Outcome::Trained(trained) }).unwrap();
        assert_eq!(measured(&mut bench, HOST).is_some(), is_measured, "{batches}");
    }
}

/// The server doesn't know for how long hosts have had what was granted before it started.
#[test]
fn what_was_granted_before_a_start_is_not_measured() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.now += 5_000;
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    bench.events(Command::Started);
    bench.ask(HOST, request(0, vec![(lease.id, HeldState::Finished)]));
    bench.finish(HOST, &lease);
    assert_eq!(measured(&mut bench, HOST), None);
    let next = bench.lease(HOST);
    bench.finish(HOST, &next);
    assert!(measured(&mut bench, HOST).is_some());
}

#[test]
fn no_more_batches_are_believed_than_a_unit_has() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let running = |done| HeldState::Running { done, of: u32::MAX };
    let lasts = lasts(&mut bench, &lease, running);
    assert!(lasts.is_some_and(|lasts| lasts < 100), "three batches: {lasts:?}");
}

#[test]
fn no_more_bytes_are_believed_than_a_result_has() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    beat(&mut bench, 1, HOST, &[(lease.id, HeldState::Running { done: 0, of: 3 })]);
    let sending = |n: u32| HeldState::Sending { sent: u64::from(n) << 40 };
    let lasts = lasts(&mut bench, &lease, sending);
    assert!(lasts.is_some_and(|lasts| lasts < 250), "{lasts:?}");
}

#[test]
fn a_host_that_says_it_has_lost_the_lease_gets_no_more_time() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let begun = bench.now;
    while bench.job().leases_expired == 0 {
        assert!(bench.now < begun + 400_000, "it is held for ever");
        bench.ask(HOST, request(0, Vec::new()));
        bench.now += 5_000;
        bench.ask(HOST, request(0, vec![(lease.id, HeldState::Waiting)]));
        bench.now += 4_000;
    }
}

#[test]
fn a_lease_does_not_wait_for_units_that_are_not_the_hosts() {
    let mut bench = Bench::with_job(2, 1);
    let lease = bench.lease(HOST);
    let others = bench.lease(OTHER);
    let running = HeldState::Running { done: 1, of: 3 };
    for of in [others.id, LeaseId(77)] {
        let begun = bench.now;
        let mut lost = false;
        while !lost {
            assert!(bench.now < begun + 200_000, "it is kept by lease {of}");
            let held = [(lease.id, HeldState::Waiting), (of, running)];
            let ended = beat(&mut bench, 5, HOST, &held);
            lost = ended.contains(&Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Overdue });
            lost |= !bench.core.state().leases.contains_key(&lease.id);
        }
    }
}

#[test]
fn a_host_neither_ends_nor_keeps_the_record_of_another_hosts_lease() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    beat(&mut bench, 1, HOST, &[(lease.id, HeldState::Running { done: 1, of: 3 })]);
    // Its host falls silent, and comes back with a unit that hangs.
    beat(&mut bench, 15, OTHER, &[]);
    assert_eq!(bench.job().leases_expired, 1);
    let hangs = (lease.id, HeldState::Running { done: 1, of: 3 });
    let mut dropped = false;
    for n in 0..60 {
        bench.now += 5_000;
        dropped |= bench.ask(HOST, request(0, vec![hangs])).drop == [lease.id];
        let foreign = match n % 2 {
            0 => HeldState::Waiting,
            _ => HeldState::Running { done: n, of: 1_000 },
        };
        assert_eq!(bench.ask(OTHER, request(0, vec![(lease.id, foreign)])).drop, [lease.id]);
    }
    assert!(dropped, "after ten times the least time without progress");
}

#[test]
fn ids_that_hosts_name_do_not_grow_without_a_bound() {
    let mut bench = Bench::with_job(2, 1);
    for n in 1..100 {
        beat(&mut bench, 1, OTHER, &[(LeaseId(n * 60_000), HeldState::Waiting)]);
    }
    let lease = bench.lease(HOST);
    assert!(lease.id.0 <= 1 + (1 << 16), "{}", lease.id);
}
