//! One measurement improves the estimates of other devices and other workloads.

use super::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    inventory::{Device, Measured},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    names::OwnerName,
    time::UnixMillis,
};

const JOB: JobId = JobId(1);
const SMALL: TrialId = TrialId(0);
const LARGE: TrialId = TrialId(1);

fn job() -> Job {
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
                hidden = { choice = [[10], [1000]] }\n[training]\nepochs = 1\noptimizer = \"sgd\"\n";
    let shard = Shard { blob: BlobRef { sha256: Digest::of(b"s"), bytes: 1 }, rows: 64 };
    let data = DataManifest {
        columns: Vec::new(),
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: vec![shard],
        valid: vec![shard],
        test: Vec::new(),
    };
    let spec = jobfile::parse(text).unwrap();
    Job::new(JOB, spec, data, Digest::of(b"k"), sojourn_state::AtEnd::Nothing, UnixMillis(0))
        .unwrap()
}

fn place(host: u64, flops: f64) -> DeviceKey<'static> {
    DeviceKey { host: HostId(host), device: CPU, flops, speed: COMMON_SPEED }
}

fn estimates() -> Estimates {
    let mut estimates = Estimates::default();
    estimates.register(&job());
    estimates
}

/// Microseconds of a million rows.
fn micros(estimates: &Estimates, at: DeviceKey<'_>, trial: TrialId) -> u64 {
    estimates.micros(at, JOB, trial, 1_000_000)
}

#[test]
fn before_anything_is_measured_flops_say_how_long_it_takes() {
    let estimates = estimates();
    let slow = micros(&estimates, place(1, 1e9), LARGE);
    assert!(slow.abs_diff(4 * micros(&estimates, place(2, 4e9), LARGE)) < 8_000);
    assert!(slow > 50 * micros(&estimates, place(1, 1e9), SMALL));
}

#[test]
fn trials_that_a_search_adds_later_are_estimated_too() {
    let (mut first, all) = (job(), job());
    first.trials.truncate(1);
    let mut added = Estimates::default();
    added.register(&first);
    assert_eq!(micros(&added, place(1, 1e9), LARGE), 0, "it isn't there yet");
    added.register(&all);
    for trial in [SMALL, LARGE] {
        let at = place(1, 1e9);
        assert_eq!(micros(&added, at, trial), micros(&estimates(), at, trial));
        assert!(added.work_left(JOB, all.trial(trial).unwrap()) > 0);
    }
}

#[test]
fn one_measurement_makes_the_guesses_for_other_places_and_workloads_better() {
    let mut estimates = estimates();
    let (one, other) = (place(1, 1e9), place(2, 2e9));
    let guessed = micros(&estimates, one, LARGE);
    // Three times slower than FLOPs say, and so it will be elsewhere.
    estimates.measured(one, (JOB, LARGE), 1_000_000, 3 * guessed);
    assert_eq!(micros(&estimates, one, LARGE), 3 * guessed);
    assert!(micros(&estimates, other, LARGE).abs_diff(3 * guessed / 2) < guessed / 100);
    // The other place turns out to be half as fast as it says: so it is with what it hasn't trained yet.
    let small = micros(&estimates, other, SMALL);
    estimates.measured(other, (JOB, LARGE), 1_000_000, 3 * guessed);
    assert!(micros(&estimates, other, SMALL) > small * 5 / 4);
    assert_eq!(estimates.error_of(HostId(2), CPU).thousandths(), Some(500));
}

#[test]
fn a_place_that_was_not_measured_seems_no_faster_than_one_that_was() {
    let mut estimates = estimates();
    let guessed = micros(&estimates, place(1, 1e9), LARGE);
    estimates.measured(place(1, 1e9), (JOB, LARGE), 1_000_000, 50 * guessed);
    assert_eq!(estimates.pace(place(1, 1e9)), estimates.pace(place(2, 1e9)));
}

#[test]
fn a_workload_that_was_not_measured_seems_no_shorter_than_one_that_was() {
    let mut estimates = estimates();
    let at = place(1, 1e9);
    let (small, large) = (micros(&estimates, at, SMALL), micros(&estimates, at, LARGE));
    assert!(!estimates.have_changed());
    // All take three times as long as FLOPs say, and the small one says so first.
    estimates.measured(at, (JOB, SMALL), 1_000_000, 3 * small);
    assert!(micros(&estimates, at, LARGE).abs_diff(3 * large) < large / 100);
    assert!(estimates.have_changed() && !estimates.have_changed());
    estimates.measured(at, (JOB, LARGE), 1_000_000, 3 * large);
    assert!(!estimates.have_changed());
}

#[test]
fn a_slow_device_without_a_benchmark_makes_no_new_workload_seem_long() {
    let mut estimates = estimates();
    let (fast, slow) = (place(1, 0.0), place(2, 0.0));
    let small = micros(&estimates, fast, SMALL);
    estimates.measured(fast, (JOB, SMALL), 1_000_000, small / 100);
    let large = micros(&estimates, fast, LARGE);
    estimates.measured(slow, (JOB, LARGE), 1_000_000, 100 * large);
    assert!(micros(&estimates, fast, LARGE) < 2 * large, "it is the slow device that is slow");
    assert!(micros(&estimates, slow, SMALL) > 90 * micros(&estimates, fast, SMALL));
}

#[test]
fn the_spread_narrows_with_what_was_measured() {
    let (mut estimates, at) = (estimates(), place(1, 1e9));
    assert_eq!(estimates.spread(at, JOB, LARGE), 9_000);
    for _ in 0..20 {
        estimates.measured(at, (JOB, LARGE), 1_000, 50_000);
    }
    assert_eq!(estimates.spread(at, JOB, LARGE), 1_000, "never less than as long again");
    for n in 0..20 {
        estimates.measured(at, (JOB, LARGE), 1_000, if n % 2 == 0 { 20_000 } else { 80_000 });
    }
    assert!(estimates.spread(at, JOB, LARGE) > 1_500);
}

/// A host says how fast it is, and what it has measured of a workload earlier.
fn says(estimates: &mut Estimates, host: u64, flops: f64, nanos: Option<u64>) {
    let trial = job().trials.into_iter().last().unwrap();
    let measured = Measured {
        workload: Workload::of(&trial.context),
        nanos_per_row: nanos,
        peak_memory: None,
        out_of_memory: false,
    };
    let class = Digest::of(b"class");
    let device = Device { measured: vec![measured], ..Device::new(CPU, class, flops) };
    estimates.claimed((HostId(host), &OwnerName::default()), std::iter::once(&device));
}

#[test]
fn times_that_cannot_be_change_nothing_for_others() {
    for claim in [0, u64::MAX] {
        let mut estimates = estimates();
        let before = [SMALL, LARGE].map(|trial| micros(&estimates, place(2, 1e9), trial));
        says(&mut estimates, 1, 1e9, Some(claim));
        let after = [SMALL, LARGE].map(|trial| micros(&estimates, place(2, 1e9), trial));
        assert_eq!(after, before, "{claim}");
        assert!(!estimates.have_changed());
    }
}

#[test]
fn one_host_of_many_does_not_say_alone_how_long_a_workload_takes() {
    let mut estimates = estimates();
    (1..=4).for_each(|host| says(&mut estimates, host, 1e9, None));
    let before = micros(&estimates, place(2, 1e9), LARGE);
    says(&mut estimates, 1, 1e9, Some(before / 1000 * 5_000));
    assert_eq!(micros(&estimates, place(2, 1e9), LARGE), before, "one host's word");
    // Two more say that it takes twice as long as guessed.
    says(&mut estimates, 2, 1e9, Some(before / 1000 * 2));
    says(&mut estimates, 3, 1e9, Some(before / 1000 * 2));
    let after = micros(&estimates, place(4, 1e9), LARGE);
    assert!((before..=70 * before).contains(&after), "{before} {after}");
}

#[test]
fn measured_times_of_one_host_move_a_workload_no_farther_than_a_bound() {
    let mut estimates = estimates();
    let guessed = micros(&estimates, place(1, 1e9), LARGE);
    for host in 1..=3 {
        estimates.measured(place(host, 1e9), (JOB, LARGE), 1_000_000, guessed);
    }
    for lie in [0, u64::MAX / 1_000] {
        let mut estimates = estimates.clone();
        for _ in 0..100 {
            estimates.measured(place(4, 1e9), (JOB, LARGE), 1_000_000, lie);
        }
        let other = micros(&estimates, place(5, 1e9), LARGE);
        assert!((guessed / 33..=33 * guessed).contains(&other), "{guessed} {other}");
        assert_eq!(micros(&estimates, place(1, 1e9), LARGE), guessed, "what was measured there");
    }
}

#[test]
fn a_claim_without_a_bound_is_no_faster_than_a_bound_says() {
    let mut estimates = estimates();
    for (host, flops) in [(1, 1e9), (2, 2e9), (3, 1e9), (4, 1e18), (5, f64::INFINITY)] {
        says(&mut estimates, host, flops, Some(0).filter(|_| host == 4));
    }
    for flops in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let (odd, unknown) = (place(9, flops), place(9, 1e9));
        assert_eq!(estimates.pace(odd), estimates.pace(unknown), "{flops}");
    }
    assert_eq!(estimates.pace(place(4, 1e18)), estimates.pace(place(1, 1e9)), "an outlier");
    let guessed = micros(&estimates, place(1, 1e9), LARGE);
    assert!(micros(&estimates, place(4, 1e18), LARGE) >= guessed / 5_000, "nor by its own times");
    // After others were measured, nobody counts as more than so many times as fast as they.
    for host in 1..=3 {
        estimates.measured(place(host, 1e9), (JOB, LARGE), 1_000_000, guessed);
    }
    let proved = estimates.pace(place(1, 1e9));
    assert!(estimates.pace(place(6, 5e10)) >= proved / 17, "one that was not measured");
    for _ in 0..50 {
        estimates.measured(place(4, 1e18), (JOB, LARGE), 1_000_000, 0);
    }
    assert!(estimates.pace(place(4, 1e18)) >= proved / 65, "one whose reports say so");
    assert!(micros(&estimates, place(4, 1e18), LARGE) >= guessed / 65);
    assert!(estimates.pace(place(1, 1e9)).abs_diff(proved) <= proved / 100, "no matter to others");
}

#[test]
fn the_longest_time_that_is_plausible_comes_from_others() {
    let mut estimates = estimates();
    let longest = |estimates: &Estimates, host| {
        estimates.plausible_nanos(place(host, 1e9), (JOB, LARGE)).unwrap().0
    };
    let alone = longest(&estimates, 1);
    let guessed = micros(&estimates, place(1, 1e9), LARGE);
    assert!(alone >= 1_000 * (guessed / 1_000));
    for host in 2..=4 {
        estimates.measured(place(host, 1e9), (JOB, LARGE), 1_000_000, guessed);
    }
    let beside_others = longest(&estimates, 1);
    assert!(beside_others.abs_diff(32 * (guessed / 1000)) <= 32, "{beside_others} {guessed}");
    for _ in 0..20 {
        estimates.measured(place(1, 1e9), (JOB, LARGE), 1_000_000, 10_000 * guessed);
    }
    assert_eq!(longest(&estimates, 1), beside_others, "its own times do not count");
    // Of another workload, by how slow others were on this one.
    let small = estimates.plausible_nanos(place(1, 1e9), (JOB, SMALL)).unwrap().0;
    assert!(small < alone, "{small}");
}

#[test]
fn hosts_that_claim_to_take_no_time_leave_others_the_time_that_they_need() {
    let mut estimates = estimates();
    let guessed = micros(&estimates, place(1, 1e9), LARGE);
    let at_reference = guessed / 1_000;
    let longest = |estimates: &Estimates, host| {
        estimates.plausible_nanos(place(host, 1e9), (JOB, LARGE)).unwrap().0
    };
    // Ten hosts of one owner report that they take no time at all.
    let liars: OwnerName = "lab-3".parse().unwrap();
    for host in 10..20 {
        let device = Device::new(CPU, Digest::of(b"class"), 1e9);
        estimates.claimed((HostId(host), &liars), std::iter::once(&device));
        for _ in 0..20 {
            estimates.measured(place(host, 1e9), (JOB, LARGE), 1_000_000, 0);
        }
        assert!(micros(&estimates, place(host, 1e9), LARGE) > 0, "nothing takes no time");
    }
    assert!(longest(&estimates, 1) >= 4 * at_reference, "{}", longest(&estimates, 1));
    // A slow machine whose result was taken in keeps the time for another one.
    let slow = place(2, 1e9);
    estimates.measured(slow, (JOB, LARGE), 1_000_000, 50 * guessed);
    estimates.taken_in(slow, (JOB, LARGE), 1_000_000, 50 * guessed);
    assert!(longest(&estimates, 2) >= 200 * at_reference, "{}", longest(&estimates, 2));
    // That grows no further by its own results.
    estimates.taken_in(slow, (JOB, LARGE), 1_000_000, 500 * guessed);
    assert!(longest(&estimates, 2) <= 201 * (at_reference + 1), "{}", longest(&estimates, 2));
    // Beside two machines of the operator the liars are one voice.
    estimates.measured(place(3, 1e9), (JOB, LARGE), 1_000_000, guessed);
    assert!(longest(&estimates, 1) >= 32 * at_reference, "{}", longest(&estimates, 1));
}

#[test]
fn a_host_that_is_forgotten_has_no_say_in_how_long_others_may_take() {
    let mut estimates = estimates();
    let before = estimates.plausible_nanos(place(1, 1e9), (JOB, LARGE)).unwrap();
    estimates.measured(place(2, 1e9), (JOB, LARGE), 1_000_000, 0);
    assert_ne!(estimates.plausible_nanos(place(1, 1e9), (JOB, LARGE)).unwrap(), before);
    estimates.forget(&std::collections::BTreeSet::from([HostId(2)]));
    assert_eq!(estimates.plausible_nanos(place(1, 1e9), (JOB, LARGE)).unwrap(), before);
}
