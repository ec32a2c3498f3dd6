//! Hosts with several devices, and what fits on them.

use crate::support::{Bench, HOST, JOB, OTHER, data, demand, fail, hop, request};
use sojourn_core::{Answer, Command, ReplyTo};
use sojourn_model::{Place, Work, least_memory};
use sojourn_protocol::{
    api::{HeldState, WorkRequest},
    digest::Digest,
    error::ErrorKind,
    ids::HostId,
    inventory::{CPU, Demand, Device, Inventory, Links, Measured, Workload},
    jobfile,
    report::FailureKind,
    time::Millis,
    unit::Lease,
};

const GPU: &str = "NVIDIA Test";
const REPRODUCIBLE: &str = "[placement]\nreproducible = true\n";

fn inventory(devices: Vec<Device>) -> Inventory {
    Inventory {
        cached: Vec::new(),
        devices,
        client: "test".into(),
        links: Links::default(),
        cache: None,
        disk_is_low: false,
    }
}

fn gpu(class: &str) -> Device {
    Device::new(GPU, Digest::of(class.as_bytes()), 1e12)
}

fn cpu() -> Device {
    Device::new(CPU, Digest::of(b"class"), 1e9)
}

/// An ask of one slot on each device, those on GPUs first.
fn both(gpu: Device, cpu: Device) -> WorkRequest {
    let on_gpu = Demand { device: GPU.into(), ..demand(1, 1, 1) };
    WorkRequest {
        demand: vec![on_gpu, demand(1, 1, 1)],
        inventory: Some(inventory(vec![gpu, cpu])),
        ..request(0, Vec::new())
    }
}

/// An ask of one slot on a processor of which this is known.
fn one(cpu: Device) -> WorkRequest {
    WorkRequest { inventory: Some(inventory(vec![cpu])), ..request(1, Vec::new()) }
}

fn devices(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.device.as_str()).collect()
}

#[test]
fn each_device_is_given_units_of_its_own_class() {
    let mut bench = Bench::with_job_on(data(), 2, 1, REPRODUCIBLE);
    let leases = bench.ask(HOST, both(gpu("fast"), cpu())).leases;
    assert_eq!(devices(&leases), [GPU, CPU]);
    for lease in &leases {
        bench.finish(HOST, lease);
    }
    // Each trial stays where it began, though the other device asks first.
    let more = bench.ask(HOST, both(gpu("fast"), cpu())).leases;
    let trial_on = |leases: &[Lease], device: &str| {
        leases.iter().find(|lease| lease.device == device).map(|lease| hop(lease).trial)
    };
    for device in [GPU, CPU] {
        assert_eq!(trial_on(&more, device), trial_on(&leases, device), "{device}");
    }
}

#[test]
fn a_lease_is_taken_back_whose_device_is_gone_or_another() {
    for gpu_now in [Some(gpu("another")), None] {
        let mut bench = Bench::with_job(2, 1);
        let leases = bench.ask(HOST, both(gpu("fast"), cpu())).leases;
        let of_gpu = leases.iter().find(|lease| lease.device == GPU).unwrap().id;
        // It has begun anew, and holds nothing.
        let again = match gpu_now {
            Some(gpu) => both(gpu, cpu()),
            None => one(cpu()),
        };
        let again = bench.ask(HOST, again).leases;
        assert!(again.iter().all(|lease| lease.id != of_gpu), "{again:?}");
        let of_cpu = leases.iter().find(|lease| lease.device == CPU).unwrap().id;
        assert!(again.iter().any(|lease| lease.id == of_cpu), "given again: {again:?}");
        assert_eq!(bench.job().leases_returned, 1);
    }
}

#[test]
fn a_unit_is_given_only_where_there_is_memory_for_it() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let workload = Workload::of(lease.unit.context());
    // Of a model of a few numbers, the checkpoint's header is more than the trainer holds of it.
    let least = least_memory(lease.unit.context(), Work::Training, Place::Machine).unwrap();
    let bytes = lease.upload_bytes.max(least);
    bench.apply(Command::Release {
        to: ReplyTo(1),
        host: HOST,
        leases: vec![lease.id],
        reason: "bench".into(),
    });
    let with = |memory| Device { memory, ..cpu() };
    let took = |peak_memory| {
        let workload = workload.clone();
        vec![Measured { workload, nanos_per_row: None, peak_memory, out_of_memory: false }]
    };
    let given = |bench: &mut Bench, device: Device| {
        let leases = bench.ask(OTHER, one(device)).leases;
        for lease in &leases {
            let leases = vec![lease.id];
            let reason = "bench".into();
            bench.apply(Command::Release { to: ReplyTo(1), host: OTHER, leases, reason });
        }
        !leases.is_empty()
    };
    assert!(!given(&mut bench, with(Some(bytes - 1))), "less than its model");
    assert!(given(&mut bench, with(Some(bytes))));
    // The memory that was measured on this device counts; where none was, that of other devices.
    bench.ask(
        HOST,
        WorkRequest {
            inventory: Some(inventory(vec![Device {
                measured: took(Some(1000 * bytes)),
                ..cpu()
            }])),
            ..request(0, Vec::new())
        },
    );
    assert!(!given(&mut bench, with(Some(999 * bytes))));
    assert!(given(
        &mut bench,
        Device { measured: took(Some(999 * bytes)), ..with(Some(999 * bytes)) }
    ));
    assert!(given(&mut bench, with(Some(1000 * bytes))), "the least that anybody says");
}

#[test]
fn what_a_revoked_host_has_reported_of_memory_counts_no_more() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let workload = Workload::of(lease.unit.context());
    let peak_memory = Some(1 << 29);
    let took = Measured { workload, nanos_per_row: None, peak_memory, out_of_memory: false };
    let claims = inventory(vec![Device { measured: vec![took], ..cpu() }]);
    bench.ask(HOST, WorkRequest { inventory: Some(claims), ..request(0, Vec::new()) });
    let (host, leases, reason) = (HOST, vec![lease.id], "bench".into());
    bench.apply(Command::Release { to: ReplyTo(1), host, leases, reason });
    let small = || one(Device { memory: Some(1 << 20), ..cpu() });
    assert_eq!(bench.ask(OTHER, small()).leases, [], "less than the other host has reported");
    bench.apply(Command::RevokeHost { to: ReplyTo(1), host: HOST });
    assert_eq!(bench.ask(OTHER, small()).leases.len(), 1);
}

/// A client gives a unit back that its model alone doesn't leave the memory for: gradients are no part of a checkpoint.
#[test]
fn a_unit_is_given_only_where_a_client_would_not_give_it_back() {
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
                hidden = [1000]\n[training]\nepochs = 1\noptimizer = \"sgd\"\n";
    let mut bench = Bench::new();
    bench.begin_with(data(), jobfile::parse(text).unwrap());
    let lease = bench.lease(HOST);
    let least = least_memory(lease.unit.context(), Work::Training, Place::Machine).unwrap();
    assert!(least > lease.upload_bytes, "{least}");
    let (host, leases, reason) = (HOST, vec![lease.id], "bench".into());
    bench.apply(Command::Release { to: ReplyTo(1), host, leases, reason });
    let with = |memory| one(Device { memory: Some(memory), ..cpu() });
    assert_eq!(bench.ask(OTHER, with(least - 1)).leases, []);
    assert_eq!(bench.ask(OTHER, with(least)).leases.len(), 1);
}

#[test]
fn a_unit_that_ran_out_of_memory_waits_for_another_device() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    fail(&mut bench, HOST, lease.id, FailureKind::OutOfMemory, "out of memory");
    let silent = WorkRequest { inventory: None, ..request(1, Vec::new()) };
    assert!(bench.ask(HOST, silent.clone()).leases.is_empty());
    assert_eq!(bench.job().waiting, None, "the other host may have the memory");
    let lease = bench.lease(OTHER);
    fail(&mut bench, OTHER, lease.id, FailureKind::OutOfMemory, "out of memory");
    for host in [HOST, OTHER] {
        assert!(bench.ask(host, silent.clone()).leases.is_empty());
    }
    assert_eq!(bench.job().waiting.as_deref(), Some("no host in contact has the memory for it"));
    // A third that has it goes on; a third that hasn't either ends the trial.
    let third = enrol(&mut bench);
    let lease = bench.lease(third);
    fail(&mut bench, third, lease.id, FailureKind::OutOfMemory, "still out of memory");
    assert_eq!(bench.job().trials_failed, 1);
}

#[test]
fn a_host_that_says_that_it_has_memory_again_is_given_the_unit_again() {
    let mut bench = Bench::with_job(1, 1);
    for host in [HOST, OTHER] {
        let lease = bench.lease(host);
        fail(&mut bench, host, lease.id, FailureKind::OutOfMemory, "out of memory");
    }
    let silent = WorkRequest { inventory: None, ..request(1, Vec::new()) };
    assert!(bench.ask(HOST, silent).leases.is_empty());
    assert!(bench.ask(HOST, one(cpu())).leases.is_empty(), "it says nothing new");
    let more = Device { memory: Some(1 << 40), ..cpu() };
    assert_eq!(bench.ask(HOST, one(more)).leases.len(), 1, "its own word counts");
}

#[test]
fn nobody_waits_for_a_host_that_has_said_that_it_ends() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    fail(&mut bench, HOST, lease.id, FailureKind::Trainer, "no luck");
    let asks = |bench: &mut Bench| bench.ask(HOST, request(1, Vec::new())).leases.len();
    assert_eq!(asks(&mut bench), 0, "the other host is to try it");
    let ends = WorkRequest { demand: Vec::new(), ..request(0, Vec::new()) };
    bench.ask(OTHER, ends);
    assert_eq!(asks(&mut bench), 1);
}

#[test]
fn a_host_that_waited_in_vain_fetches_shards_ahead_and_may_read_them() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let blobs: Vec<_> = data().train.iter().map(|shard| shard.blob).collect();
    let read = |bench: &mut Bench| {
        let blob = blobs[0].sha256;
        bench.answer(Command::AuthorizeRead { to: ReplyTo(1), host: OTHER, blob })
    };
    assert_eq!(read(&mut bench).unwrap_err().kind, ErrorKind::Forbidden);
    let waits = WorkRequest { wait: Millis(5_000), ..request(1, Vec::new()) };
    bench.apply(Command::Ask { to: ReplyTo(1), host: OTHER, request: waits.clone() });
    bench.now += 5_000;
    let Ok(Answer::Work(answer)) = bench.answer(Command::Tick) else { panic!("no answer") };
    assert_eq!(answer.fetch.len(), 2, "{answer:?}");
    assert!(blobs.iter().all(|blob| answer.fetch.contains(blob)));
    read(&mut bench).unwrap();
    // While they are on their way there are no others; once they are there, there is nothing left.
    for cached in [Vec::new(), blobs.iter().map(|blob| blob.sha256).collect()] {
        let known = Some(Inventory { cached, ..inventory(vec![cpu()]) });
        let waits = WorkRequest { inventory: known, ..waits.clone() };
        bench.ask(HOST, request(0, vec![(lease.id, HeldState::Running { done: 0, of: 9 })]));
        bench.apply(Command::Ask { to: ReplyTo(1), host: OTHER, request: waits });
        bench.now += 5_000;
        let Ok(Answer::Work(answer)) = bench.answer(Command::Tick) else { panic!("no answer") };
        assert_eq!(answer.fetch, []);
    }
}

#[test]
fn what_is_cached_of_jobs_that_ended_long_ago_is_dropped() {
    let mut bench = Bench::with_job(1, 1);
    let cached: Vec<Digest> = data().blobs().map(|blob| blob.sha256).collect();
    let full = || {
        let known = Inventory { cached: cached.clone(), ..inventory(vec![cpu()]) };
        WorkRequest { inventory: Some(known), ..request(0, Vec::new()) }
    };
    bench.ask(HOST, full());
    bench.apply(Command::Cancel { to: ReplyTo(1), job: JOB });
    let hours = |bench: &mut Bench, n: u64| {
        for _ in 0..n {
            bench.now += 3_600_000;
            bench.apply(Command::Tick);
            if !bench.ask(HOST, full()).evict.is_empty() {
                return true;
            }
        }
        false
    };
    assert!(!hours(&mut bench, 23), "it may be extended");
    assert!(hours(&mut bench, 3));
}

fn enrol(bench: &mut Bench) -> HostId {
    let (name, token_sha256) = ("c".to_owned(), Digest::of(b"c"));
    match bench.answer(Command::Enrol { to: ReplyTo(1), name, token_sha256 }) {
        Ok(Answer::Enrolled(host)) => host,
        other => panic!("{other:?}"),
    }
}
