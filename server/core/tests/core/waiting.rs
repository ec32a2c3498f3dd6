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

#[test]
fn of_a_new_job_the_fastest_that_waits_chooses_first() {
    let mut bench = Bench::new();
    for blob in data().blobs() {
        bench.events(Command::Published { to: ReplyTo(1), blob });
    }
    park(&mut bench, HOST, 1e9);
    park(&mut bench, OTHER, 2e9);
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[4], [5], [6]] }\n[training]\nepochs = 1\nbatch_size = 8\n";
    let spec = Box::new(jobfile::parse(text).unwrap());
    let (to, data) = (ReplyTo(1), Box::new(data()));
    let all = bench.events(Command::Submit { to, spec, data, again: false, nonce: None });
    assert_eq!(given(&all), [OTHER, HOST], "not in the order in which they came");
}

#[test]
fn of_the_homes_that_wait_the_fastest_is_asked_first() {
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
