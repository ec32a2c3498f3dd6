//! One measurement improves the estimates of other devices and other workloads.

use super::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard},
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
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        scaling: Scaling::None,
        train: vec![shard],
        valid: vec![shard],
        test: Vec::new(),
    };
    let spec = jobfile::parse(text).unwrap();
    Job::new(JOB, spec, data, Digest::of(b"k"), crate::AtEnd::Nothing, UnixMillis(0)).unwrap()
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
