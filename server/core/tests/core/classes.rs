//! Devices that offer several numeric classes: in which class a trial is trained, and that it stays there.

use crate::support::{Bench, HOST, JOB, OTHER, data, evaluation, hop, request};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    digest::Digest,
    ids::{HostId, TrialId},
    inventory::{CPU, Device, Inventory, Links, OfferedClass},
    unit::{Lease, Unit},
};

const REPRODUCIBLE: &str = "[placement]\nreproducible = true\n";
const FREE: &str = "[placement]\nreproducible = false\n";

fn class(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

/// A processor with these classes, the common one last: names and speeds.
fn offering(classes: &[(&str, f64)]) -> Device {
    let (common, flops) = *classes.last().unwrap();
    let offered = classes.iter().map(|(name, flops)| OfferedClass {
        instructions: (*name).to_owned(),
        numeric_class: class(name),
        flops: *flops,
    });
    Device { classes: offered.collect(), ..Device::new(CPU, class(common), flops) }
}

/// One that has AVX-512, which makes it 1.3 times as fast.
fn fast() -> Device {
    offering(&[("avx512", 1.3e9), ("avx2", 1e9)])
}

/// One that hasn't, and names its class.
fn slow() -> Device {
    offering(&[("avx2", 1e9)])
}

/// One whose client knows of one class for each device.
fn old() -> Device {
    Device::new(CPU, class("avx2"), 1e9)
}

fn asks(device: Device) -> WorkRequest {
    let inventory = Inventory {
        cached: Vec::new(),
        devices: vec![device],
        client: "test".into(),
        links: Links::default(),
        cache: None,
        disk_is_low: false,
    };
    WorkRequest { inventory: Some(inventory), ..request(1, Vec::new()) }
}

fn ask(bench: &mut Bench, host: HostId, device: Device) -> Option<Lease> {
    bench.ask(host, asks(device)).leases.pop()
}

/// The host is known, and wants nothing yet.
fn show(bench: &mut Bench, host: HostId, device: Device) {
    let idle = WorkRequest { demand: vec![crate::support::demand(1, 0, 0)], ..asks(device) };
    assert_eq!(bench.ask(host, idle).leases, []);
}

fn class_of(bench: &Bench, trial: u32) -> Option<Digest> {
    bench.core.state().trial(JOB, TrialId(trial)).unwrap().class
}

fn give_back(bench: &mut Bench, host: HostId, lease: &Lease) {
    let leases = vec![lease.id];
    bench.apply(Command::Release { to: ReplyTo(1), host, leases, reason: "bench".into() });
}

#[test]
fn a_fleet_of_one_kind_trains_in_its_fastest_class() {
    let mut bench = Bench::with_job_on(data(), 1, 1, REPRODUCIBLE);
    show(&mut bench, OTHER, fast());
    let lease = ask(&mut bench, HOST, fast()).unwrap();
    assert_eq!(lease.instructions.as_deref(), Some("avx512"));
    bench.finish(HOST, &lease);
    assert_eq!(class_of(&bench, 0), Some(class("avx512")), "it is journalled");
    // Its next hop, and its evaluation, are computed in the same class by any host that has it.
    let next = ask(&mut bench, OTHER, fast()).unwrap();
    assert_eq!((hop(&next).trial, next.instructions.as_deref()), (TrialId(0), Some("avx512")));
    bench.finish(OTHER, &next);
    let evaluated = ask(&mut bench, HOST, fast()).unwrap();
    assert_eq!(evaluation(&evaluated).trial, TrialId(0));
    assert_eq!(evaluated.instructions.as_deref(), Some("avx512"));
}

#[test]
fn a_host_without_the_class_of_a_trial_is_not_given_its_hops() {
    let mut bench = Bench::with_job_on(data(), 1, 1, REPRODUCIBLE);
    let lease = ask(&mut bench, HOST, fast()).unwrap();
    bench.finish(HOST, &lease);
    for device in [slow(), old()] {
        assert_eq!(ask(&mut bench, OTHER, device), None);
    }
    assert!(ask(&mut bench, OTHER, fast()).is_some());
}

#[test]
fn a_trial_of_the_common_class_stays_there_whoever_trains_it() {
    let mut bench = Bench::with_job_on(data(), 1, 1, REPRODUCIBLE);
    // As all trials of a server that knows of one class for each device.
    let lease = ask(&mut bench, OTHER, old()).unwrap();
    assert_eq!(lease.instructions, None, "its client refuses what it doesn't know");
    bench.finish(OTHER, &lease);
    let next = ask(&mut bench, HOST, fast()).unwrap();
    assert_eq!((hop(&next).trial, next.instructions.as_deref()), (TrialId(0), Some("avx2")));
    bench.finish(HOST, &next);
    assert_eq!(class_of(&bench, 0), Some(class("avx2")));
}

#[test]
fn trials_of_a_mixed_fleet_are_shared_out_where_that_ends_sooner() {
    // As many trials as slots: each host trains in its own fastest class.
    let mut bench = Bench::with_job_on(data(), 4, 1, REPRODUCIBLE);
    show(&mut bench, OTHER, slow());
    let on_fast = ask(&mut bench, HOST, fast()).unwrap();
    let on_slow = ask(&mut bench, OTHER, slow()).unwrap();
    let sets = [&on_fast, &on_slow].map(|lease| lease.instructions.clone().unwrap());
    assert_eq!(sets, ["avx512", "avx2"]);
    assert_ne!(hop(&on_fast).trial, hop(&on_slow).trial);
}

#[test]
fn one_trial_whose_results_are_merged_is_trained_in_the_class_of_all_hosts() {
    let merging = "[placement]\norder = \"merge\"\nreproducible = true\n";
    let mut bench = Bench::with_job_on(data(), 1, 1, merging);
    show(&mut bench, OTHER, slow());
    let first = ask(&mut bench, HOST, fast()).unwrap();
    let second = ask(&mut bench, OTHER, slow()).expect("it takes part");
    let sets = [&first, &second].map(|lease| lease.instructions.clone().unwrap());
    assert_eq!(sets, ["avx2", "avx2"]);
    // On hosts that both have it, it is trained in the fast one.
    let mut bench = Bench::with_job_on(data(), 1, 1, merging);
    show(&mut bench, OTHER, fast());
    let first = ask(&mut bench, HOST, fast()).unwrap();
    assert_eq!(first.instructions.as_deref(), Some("avx512"));
}

#[test]
fn units_that_pin_nothing_are_leased_as_before() {
    let mut bench = Bench::with_job_on(data(), 1, 1, FREE);
    let lease = ask(&mut bench, HOST, fast()).unwrap();
    assert_eq!(lease.instructions, None);
    let events = bench.finish(HOST, &lease);
    assert!(!events.is_empty());
    assert_eq!(class_of(&bench, 0), Some(class("avx2")));
    assert!(ask(&mut bench, OTHER, old()).is_some(), "any host goes on with it");
}

#[test]
fn a_lease_is_sent_again_in_its_class_and_taken_back_where_that_is_gone() {
    let mut bench = Bench::with_job_on(data(), 1, 1, REPRODUCIBLE);
    let lease = ask(&mut bench, HOST, fast()).unwrap();
    // The answer was lost.
    let again = ask(&mut bench, HOST, fast()).unwrap();
    assert_eq!((again.id, again.instructions.as_deref()), (lease.id, Some("avx512")));
    // It was moved to a machine without AVX-512.
    let instead = ask(&mut bench, HOST, slow()).unwrap();
    assert_ne!(instead.id, lease.id);
    assert_eq!(instead.instructions.as_deref(), Some("avx2"));
}

#[test]
fn a_retry_of_a_first_hop_may_be_of_another_class() {
    let mut bench = Bench::with_job_on(data(), 1, 1, REPRODUCIBLE);
    let lease = ask(&mut bench, HOST, fast()).unwrap();
    give_back(&mut bench, HOST, &lease);
    let retry = ask(&mut bench, OTHER, slow()).expect("nothing was trained yet");
    let Unit::Train(_) = retry.unit else { panic!("{retry:?}") };
    let events = bench.finish(OTHER, &retry);
    assert!(events.iter().any(|event| matches!(event, Event::Assimilated { .. })), "{events:?}");
    assert_eq!(class_of(&bench, 0), Some(class("avx2")));
}
