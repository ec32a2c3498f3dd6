//! Searches by recorded curves: rules decide by them, and hops are no slower than one trial per slot.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{
    self, Ask, Policy, Row, RunResult, Surrogate,
    search::{SearchRun, hopping, one_per_slot, target},
};
use std::{fs, path::Path};

fn read(name: &str) -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/search/study");
    fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"))
}

/// The study's rows with 8 hosts.
fn rows(settings: &[&str]) -> Vec<Row> {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let study = fleet::read_with(&read("study.toml").unwrap(), &settings).unwrap();
    study.rows.into_iter().filter(|row| row.scenario.host_count() == 8).collect()
}

fn run(rows: &[Row], case: &str, seed: u64) -> RunResult {
    let row = rows.iter().find(|row| row.label.starts_with(&format!("{case}, count"))).unwrap();
    let (policy, ask) = (Policy::default(), Ask::Check(10_000));
    fleet::run(&row.scenario, policy, seed, ask, &mut read, &mut ()).unwrap()
}

#[test]
fn recorded_curves_are_met_by_others_of_their_space() {
    for (space, curves) in [("digits", 240), ("mnist", 160)] {
        let name = format!("{space}.csv");
        let surrogate = Surrogate::read(&name, &read(&name).unwrap()).unwrap();
        assert_eq!((surrogate.len(), surrogate.epochs()), (curves, 27));
        let of = surrogate.quality();
        assert!(of.rank_first > 0.94 && of.rank_last > 0.94 && of.error < 0.3, "{of:?}");
        assert!(of.noise < of.offset && of.offset < of.error, "{of:?}");
    }
}

#[test]
fn rules_decide_by_recorded_curves() {
    let rows = rows(&["job.epochs=9", "job.shards=1"]);
    let all = run(&rows, "random", 1);
    assert_eq!(all.scores.len(), 128 * 9);
    let asha = run(&rows, "random, asha", 1);
    assert!(asha.scores.len() < all.scores.len() / 3, "{}", asha.scores.len());
    // The rule keeps what is good: the best of all is hardly better.
    assert!(asha.best.unwrap() < 1.2 * all.best.unwrap(), "{:?} {:?}", asha.best, all.best);
    assert_eq!(run(&rows, "random, asha", 1).scores, asha.scores);
    assert_ne!(run(&rows, "random, asha", 2).best, asha.best);
}

#[test]
fn a_search_is_no_slower_than_one_trial_per_slot_and_leaves_no_slot_idle() {
    const SEEDS: std::ops::Range<u64> = 1..4;
    let rows = rows(&["job.epochs=9"]);
    let rules = ["asha", "sha", "hyperband", "median"].map(|rule| format!("random, {rule}, count"));
    let of_rules = rows.iter().filter(|row| rules.iter().any(|rule| row.label.starts_with(rule)));
    assert_eq!(of_rules.clone().count(), rules.len());
    for row in of_rules {
        let scenario = &row.scenario;
        let target = target(scenario, &mut read).unwrap();
        let runs = SEEDS.map(|seed| {
            let hopping = hopping(scenario, Policy::default(), seed, target, &mut read).unwrap();
            (hopping, one_per_slot(scenario, seed, target, &mut read).unwrap())
        });
        let (hopping, alone): (Vec<SearchRun>, Vec<SearchRun>) = runs.unzip();
        let sum = |runs: &[SearchRun], of: fn(&SearchRun) -> f64| runs.iter().map(of).sum::<f64>();
        let (took, took_alone) =
            (sum(&hopping, |run| run.makespan), sum(&alone, |run| run.makespan));
        assert!(took < took_alone, "{}: {took} s, one trial per slot {took_alone} s", row.label);
        let idle = sum(&hopping, |run| run.avoidable_idle) / 3.0;
        assert!(idle < 0.05, "{}: {idle}", row.label);
        assert!(hopping.iter().any(|run| run.reached.is_some()), "{}: {hopping:?}", row.label);
    }
}

/// 90 rows to train on and 30 to evaluate make 100 of work; a row takes 3 x 2 x (64 x 16 + 16 x 10) operations, so an epoch takes
/// 71.04 s at 10 kFLOP/s.
const BY_HAND: &str = "[job]\nfile = \"digits.toml\"\nsurrogate = \"digits.csv\"\nrows = 90\nvalid_rows = 30\nepochs = 2\n\
    set.model = [{ arch = \"mlp\", hidden = [16] }]\nset.search = { method = \"random\", trials = 3 }\n";

#[test]
fn one_trial_per_slot_is_known_by_hand() {
    let alone = |hosts: &str| {
        let study = fleet::read(&format!("{hosts}{BY_HAND}")).unwrap();
        let run = one_per_slot(&study.rows[0].scenario, 0, 0.0, &mut read).unwrap();
        assert_eq!((run.reached, run.epochs), (None, 6));
        run
    };
    let near = |value: f64, wanted: f64| (value - wanted).abs() < 1e-3;
    // Three trials of two epochs on one slot, and on two: there the third waits for a slot.
    let one = alone("[[hosts]]\ntflops = 1e-8\n");
    assert!(near(one.makespan, 6.0 * 71.04) && near(one.idle, 0.0), "{one:?}");
    let two = alone("[[hosts]]\ncount = 2\ntflops = 1e-8\n");
    assert!(near(two.makespan, 4.0 * 71.04) && near(two.idle, 0.25), "{two:?}");
    assert!(near(two.avoidable_idle, 0.0), "{two:?}");
    // The host goes in the third epoch: it is lost, and trained again 29 s later.
    let lost = alone("[[hosts]]\ntflops = 1e-8\ntrace = [[0, 0, 171], [0, 200, inf]]\n");
    assert!(near(lost.makespan, 200.0 + 4.0 * 71.04), "{lost:?}");
    // The slow host's trial isn't taken by the fast one, which has nothing left to do.
    let mixed = alone("[[hosts]]\ncount = 2\ntflops = [1e-8, 4e-8]\npick = \"cycle\"\n");
    assert!(near(mixed.makespan, 2.0 * 71.04), "{mixed:?}");
}
