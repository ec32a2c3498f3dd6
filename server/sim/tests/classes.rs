//! Fleets whose hosts offer several numeric classes.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{self, Ask, RunResult};

const EPSILON: f64 = 1e-5;

/// Runs a scenario's first seed; all invariants are checked on the way.
fn run(text: &str) -> RunResult {
    let study = fleet::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let scenario = study.rows.into_iter().next().unwrap().scenario;
    let mut files = |name: &str| Err(format!("no file {name}"));
    let policy = scenario.server.policy.0[0];
    fleet::run(&scenario, policy, scenario.seed, Ask::Check(50), &mut files, &mut ())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < EPSILON * b.abs().max(1.0)
}

/// Two kinds of hosts of equal speed in the class that all have; one kind has a class that is 1.3 times as fast.
fn of_two_kinds(fast: u32, slow: u32, classes: &str, job: &str) -> RunResult {
    let group = |count: u32, classes: &str| match count {
        0 => String::new(),
        _ => format!("[[hosts]]\ncount = {count}\ntflops = 1\nclass = \"common\"\n{classes}"),
    };
    run(&format!(
        "estimates = \"known\"\n{}{}[job]\nreproducible = true\n{job}",
        group(fast, classes),
        group(slow, "")
    ))
}

const FAST: &str = "classes = { avx512 = 1.3 }\n";

#[test]
fn a_fleet_of_one_kind_trains_at_the_speed_of_its_fastest_class() {
    // 1000 rows a shard at 1000 MFLOPs: a hop of 1 s in the common class.
    for job in [
        "equal = 1000\ntrials = 8\nrows = 4000\nshards = 4\nepochs = 2\n",
        "equal = 1000\ntrials = 2\nrows = 4000\nshards = 4\nepochs = 2\n",
        "equal = 1000\ntrials = 8\nrows = 4000\nshards = 4\nepochs = 2\nplacement = \"pinned\"\n",
    ] {
        let (common, fast) = (of_two_kinds(4, 0, "", job), of_two_kinds(4, 0, FAST, job));
        assert!(close(fast.makespan, common.makespan / 1.3), "{job}{fast:?}\n{common:?}");
        assert_eq!(fast.hops, common.hops, "{job}");
    }
}

#[test]
fn a_mixed_fleet_is_never_slower_than_with_the_class_that_all_have() {
    for (fast, slow) in [(4, 4), (2, 6), (7, 1)] {
        for trials in [1, 3, 8, 12, 20] {
            let job = format!(
                "costs = [700, 1000, 1900]\npick = \"cycle\"\ntrials = {trials}\n\
                 rows = 8000\nshards = 8\nepochs = 2\n"
            );
            let common = of_two_kinds(fast, slow, "", &job);
            let mixed = of_two_kinds(fast, slow, FAST, &job);
            let which = format!("{fast} and {slow} hosts, {trials} trials");
            assert!(mixed.makespan <= common.makespan + EPSILON, "{which}: {mixed:?}\n{common:?}");
        }
    }
}
