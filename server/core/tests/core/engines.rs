//! Which devices have an engine for a unit, and what becomes of units that an engine refuses.

use crate::support::{
    Bench, HOST, JOB, OTHER, data, data_with_test, demand, done, fail, hop, inventory, request,
};
use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    digest::Digest,
    engine::Engine,
    ids::{HostId, LeaseId},
    inventory::{CPU, Demand, Device, Workload},
    report::FailureKind::{Trainer, Unsupported},
    time::Millis,
    unit::Lease,
    view::{HostState, HostView},
};

const GPU: &str = "NVIDIA Test";

fn engine(models: &[&str]) -> Engine {
    let models = models.iter().map(|model| (*model).to_owned()).collect();
    Engine { name: "numpy".into(), framework: "numpy 2.3.1".into(), models }
}

/// A processor with an engine for these models.
fn cpu(models: &[&str]) -> Device {
    Device { engines: vec![engine(models)], ..Device::new(CPU, Digest::of(b"class"), 1e9) }
}

/// An ask of one slot on each of these devices.
fn asking(devices: Vec<Device>) -> WorkRequest {
    let wants = |device: &Device| Demand { device: device.name.clone(), ..demand(1, 1, 1) };
    let mut known = inventory("class");
    let demand = devices.iter().map(wants).collect();
    known.devices = devices;
    WorkRequest { demand, inventory: Some(known), ..request(0, Vec::new()) }
}

/// An ask that says nothing new of the machine.
fn silent() -> WorkRequest {
    WorkRequest { inventory: None, ..request(1, Vec::new()) }
}

/// One more host.
fn enrol(bench: &mut Bench) -> HostId {
    bench.now += 1;
    let token_sha256 = Digest::of(&bench.now.to_le_bytes());
    let enrol = Command::Enrol { to: ReplyTo(1), name: "more".into(), token_sha256 };
    match bench.answer(enrol) {
        Ok(Answer::Enrolled(host)) => host,
        other => panic!("{other:?}"),
    }
}

fn refuse(bench: &mut Bench, host: HostId, lease: LeaseId) {
    fail(bench, host, lease, Unsupported, "no `mlp` here");
}

fn view(bench: &mut Bench, host: HostId) -> HostView {
    let query = Query::Hosts;
    match bench.answer(Command::Query { to: ReplyTo(1), query }) {
        Ok(Answer::Hosts(hosts)) => hosts.into_iter().find(|view| view.host == host).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn waiting(bench: &mut Bench) -> Option<String> {
    bench.job().waiting
}

#[test]
fn a_unit_is_given_only_to_a_device_with_an_engine_for_its_model() {
    let mut bench = Bench::with_job(1, 1);
    let answer = bench.ask(HOST, asking(vec![cpu(&["cnn", "resnet"])]));
    assert_eq!(answer.leases, []);
    assert_eq!(
        answer.waiting.as_deref(),
        Some("its trainer can't do any unit: those that wait train `mlp`")
    );
    assert_eq!(waiting(&mut bench), None, "the other host may train it");
    assert_eq!(bench.ask(OTHER, asking(vec![cpu(&["cnn"])])).leases, []);
    assert_eq!(waiting(&mut bench).as_deref(), Some("no host in contact trains `mlp` models"));
    let trial = bench.trials().remove(0);
    assert_eq!(trial.waiting.as_deref(), Some("no host in contact trains `mlp` models"));
    let lease = bench.ask(OTHER, asking(vec![cpu(&["cnn", "mlp"])])).leases.remove(0);
    assert_eq!(hop(&lease).shard.rows, 20);
    assert_eq!(waiting(&mut bench), None);
    assert_eq!(view(&mut bench, OTHER).devices[0].engines, [engine(&["cnn", "mlp"])]);
}

#[test]
fn of_a_hosts_devices_the_one_with_the_engine_is_given_the_unit() {
    let mut bench = Bench::with_job(1, 1);
    let gpu = Device {
        engines: vec![engine(&["cnn"]), engine(&[])],
        ..Device::new(GPU, Digest::of(b"fast"), 1e12)
    };
    let leases = bench.ask(HOST, asking(vec![gpu, cpu(&["mlp"])])).leases;
    assert_eq!(leases.iter().map(|lease| lease.device.as_str()).collect::<Vec<_>>(), [CPU]);
}

#[test]
fn a_unit_that_every_device_refuses_waits_and_no_host_cools_down() {
    let mut bench = Bench::with_job(1, 1);
    let mut hosts = vec![HOST, OTHER];
    hosts.extend((0..3).map(|_| enrol(&mut bench)));
    for host in &hosts {
        let lease = bench.lease(*host);
        refuse(&mut bench, *host, lease.id);
        assert_eq!(bench.ask(*host, silent()).leases, [], "it isn't asked again");
    }
    assert_eq!((bench.job().trials_failed, bench.job().trials), (0, 1));
    assert_eq!(
        waiting(&mut bench).as_deref(),
        Some("no host in contact supports its `mlp` model and settings (5 refused it)")
    );
    for host in &hosts {
        let view = view(&mut bench, *host);
        assert_eq!(view.state, HostState::Live);
        assert_eq!(view.last_error.as_deref(), Some("no `mlp` here"));
        assert_eq!(bench.core.state().hosts[host].failures_in_a_row, 0);
    }
    let new = enrol(&mut bench);
    let lease = bench.lease(new);
    bench.finish(new, &lease);
    assert_eq!(bench.job().hops, 1);
}

#[test]
fn refusals_dont_make_three_failures_of_two() {
    let mut bench = Bench::with_job(1, 1);
    let hosts: Vec<HostId> = (0..5).map(|_| enrol(&mut bench)).collect();
    for (host, kind) in hosts.iter().zip([Trainer, Unsupported, Unsupported, Trainer, Trainer]) {
        assert_eq!(bench.job().trials_failed, 0);
        let lease = bench.lease(*host);
        fail(&mut bench, *host, lease.id, kind, "no");
    }
    assert_eq!(bench.job().trials_failed, 1, "three hosts failed");
}

/// Three trainer errors made it cool down once. A refusal after that is none of them.
#[test]
fn a_refusal_after_three_failures_in_a_row_is_no_other_cooldown() {
    let mut bench = Bench::with_job(4, 1);
    // What another host can do counts against the one that can't.
    let lease = bench.lease(OTHER);
    bench.finish(OTHER, &lease);
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        fail(&mut bench, HOST, lease.id, Trainer, "no");
    }
    assert!(matches!(view(&mut bench, HOST).state, HostState::Resting { .. }));
    bench.now += Millis::from_secs(3600).0;
    let lease = bench.lease(HOST);
    refuse(&mut bench, HOST, lease.id);
    assert_eq!(bench.core.state().hosts[&HOST].failures_in_a_row, 3);
    assert_eq!(view(&mut bench, HOST).state, HostState::Live);
}

#[test]
fn a_device_that_refuses_one_workload_is_given_others() {
    let more = "[[model]]\narch = \"mlp\"\nhidden = [8]\n";
    let mut bench = Bench::with_job_on(data(), 1, 1, more);
    let first = bench.lease(HOST);
    refuse(&mut bench, HOST, first.id);
    let second = bench.ask(HOST, silent()).leases.remove(0);
    let workload = |lease: &Lease| Workload::of(lease.unit.context());
    assert_ne!(workload(&first), workload(&second));
    refuse(&mut bench, HOST, second.id);
    assert_eq!(bench.ask(HOST, silent()).leases, []);
}

/// As after a restart of the server, which hears of refusals with the inventory.
#[test]
fn refusals_that_an_inventory_names_are_heeded_until_it_names_them_no_more() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(OTHER);
    let unsupported = vec![Workload::of(lease.unit.context())];
    let reason = "bench".into();
    bench.apply(Command::Release { to: ReplyTo(1), host: OTHER, leases: vec![lease.id], reason });
    let refuses = Device { unsupported: unsupported.clone(), ..cpu(&["mlp"]) };
    assert_eq!(bench.ask(HOST, asking(vec![refuses])).leases, []);
    assert_eq!(view(&mut bench, HOST).devices[0].unsupported, unsupported);
    assert_eq!(bench.ask(HOST, asking(vec![cpu(&["mlp"])])).leases.len(), 1, "it was updated");
}

#[test]
fn an_evaluation_that_a_device_refuses_goes_to_another() {
    let mut bench = Bench::with_job_on(data_with_test(), 1, 1, "");
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let lease = bench.lease(HOST);
    refuse(&mut bench, HOST, lease.id);
    assert_eq!(bench.ask(HOST, silent()).leases, []);
    // The evaluation of the epoch, and then the test of the best trial.
    for _ in 0..2 {
        let lease = bench.lease(OTHER);
        bench.report(OTHER, done(&lease)).unwrap();
    }
    assert!(bench.core.state().jobs[&JOB].end.is_some());
}
