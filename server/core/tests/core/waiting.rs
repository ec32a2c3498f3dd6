//! Hosts whose asks are held open: who of them chooses first when there is something.

use crate::support::{Bench, HOST, OTHER, data, data_of_four, done, inventory, request};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    digest::Digest,
    ids::HostId,
    inventory::{Device, Inventory},
    jobfile,
    report::Outcome,
    time::Millis,
};

/// An ask that waits, of a host that does so many operations a second.
fn waits(flops: f64) -> WorkRequest {
    let known = inventory("class");
    let devices = known.devices.iter().map(|device| Device { flops, ..device.clone() }).collect();
    WorkRequest {
        wait: Millis(5_000),
        inventory: Some(Inventory { devices, ..known }),
        ..request(1, Vec::new())
    }
}

fn park(bench: &mut Bench, host: HostId, flops: f64) {
    bench.events(Command::Ask { to: ReplyTo(host.0 + 10), host, request: waits(flops) });
}

/// Hosts that got something, in order.
fn given(events: &[Event]) -> Vec<HostId> {
    let hosts = events.iter().filter_map(|event| match event {
        Event::LeaseGranted { host, .. } => Some(*host),
        _ => None,
    });
    hosts.collect()
}

/// Submits a job of so many trials.
fn submit(bench: &mut Bench, trials: u32) -> Vec<Event> {
    for blob in data().blobs() {
        bench.events(Command::Published { to: ReplyTo(1), blob });
    }
    let hidden: Vec<String> = (4..4 + trials).map(|units| format!("[{units}]")).collect();
    let hidden = hidden.join(", ");
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
         hidden = {{ choice = [{hidden}] }}\n[training]\nepochs = 1\nbatch_size = 8\n"
    );
    let spec = Box::new(jobfile::parse(&text).unwrap());
    let (to, data) = (ReplyTo(1), Box::new(data()));
    bench.events(Command::Submit { to, spec, data, again: false, nonce: None })
}

#[test]
fn of_a_new_job_the_fastest_that_waits_chooses_first() {
    let mut bench = Bench::new();
    park(&mut bench, HOST, 1e9);
    park(&mut bench, OTHER, 2e9);
    let all = submit(&mut bench, 3);
    assert_eq!(given(&all), [OTHER, HOST], "not in the order in which they came");
}

#[test]
fn where_many_wait_they_are_offered_work_in_pieces_between_which_others_are_heard() {
    const HOSTS: u32 = 600;
    const PIECE: usize = 256;
    let mut bench = Bench::new();
    for host in 3..=HOSTS {
        let token_sha256 = Digest::of(&host.to_le_bytes());
        bench.events(Command::Enrol { to: ReplyTo(1), name: format!("h{host}"), token_sha256 });
    }
    for host in 1..=HOSTS {
        park(&mut bench, HostId(host.into()), 1e9 + 1e7 * f64::from(host));
    }
    let mut steps = vec![given(&submit(&mut bench, HOSTS + 1))];
    while steps.last().is_some_and(|step| !step.is_empty()) {
        let due = bench.core.next_deadline().unwrap();
        let goes_on = due.0 <= bench.now;
        steps.push(given(&bench.events(Command::Tick)));
        assert!(goes_on || steps.last().is_some_and(Vec::is_empty), "nobody waits for a pause");
    }
    let sizes: Vec<usize> = steps.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|size| *size <= PIECE), "{sizes:?}");
    let all: Vec<HostId> = steps.into_iter().flatten().collect();
    let by_speed: Vec<HostId> = (1..=HOSTS).rev().map(|host| HostId(host.into())).collect();
    assert_eq!(all, by_speed, "all have work, the fastest first");
}

#[test]
fn where_many_wait_one_that_left_a_trial_to_a_faster_host_takes_it_when_its_patience_is_over() {
    let mut bench = Bench::new();
    for host in 3..=400u32 {
        let token_sha256 = Digest::of(&host.to_le_bytes());
        bench.events(Command::Enrol { to: ReplyTo(1), name: format!("h{host}"), token_sha256 });
        // They have no slots, and wait for whatever there is to hear.
        let request = WorkRequest { demand: Vec::new(), ..waits(1e9) };
        let host = HostId(host.into());
        bench.events(Command::Ask { to: ReplyTo(host.0 + 10), host, request });
    }
    // The faster one has slots, and nothing that it waits for.
    bench.ask(OTHER, WorkRequest { wait: Millis(0), ..waits(4e6) });
    park(&mut bench, HOST, 1e6);
    assert_eq!(given(&submit(&mut bench, 1)), [], "it is left to the faster one");
    let due = bench.core.next_deadline().unwrap();
    assert!(due.0 > bench.now, "it isn't looked at all the time");
    let mut taken = Vec::new();
    while taken.is_empty() {
        let due = bench.core.next_deadline().unwrap();
        bench.now = bench.now.max(due.0);
        taken = given(&bench.events(Command::Tick));
        assert!(bench.now < 6_000, "its ask would have ended by itself");
    }
    assert_eq!(taken, [HOST]);
}

#[test]
fn of_the_waiting_hosts_with_a_replica_the_fastest_is_offered_work_first() {
    let mut bench =
        Bench::with_job_on(data_of_four(), 1, 1, "[placement]\norder = \"hop\"\nreplicas = 3\n");
    let token_sha256 = Digest::of(b"c");
    bench.events(Command::Enrol { to: ReplyTo(1), name: "c".into(), token_sha256 });
    let third = HostId(3);
    bench.ask(third, WorkRequest { wait: Millis(0), demand: Vec::new(), ..waits(1e9) });
    let lease = bench.lease(third);
    park(&mut bench, HOST, 1e9);
    park(&mut bench, OTHER, 4e9);
    let report = done(&lease);
    let Outcome::Trained(trained) = &report.outcome else { panic!("{report:?}") };
    let uploaded = Some(trained.checkpoint);
    bench.apply(Command::Report { to: ReplyTo(1), host: third, report, uploaded });
    assert_eq!(given(&bench.assimilate()), [OTHER]);
}
