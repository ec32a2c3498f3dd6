//! Fleets: makespans that are known by hand, bounds, and the same bytes for the same seed.

use sojourn_sim::fleet::{self, Ask, RunResult, Study};

const EPSILON: f64 = 1e-5;

fn study(text: &str) -> Study {
    fleet::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn runs(text: &str) -> Vec<RunResult> {
    let study = study(text);
    let row = &study.rows[0].scenario;
    let policy = row.server.policy.0[0];
    let mut files = |name: &str| Err(format!("no file {name}"));
    (0..u64::from(row.seeds))
        .map(|at| {
            fleet::run(row, policy, row.seed + at, Ask::Result, &mut files, &mut ())
                .unwrap_or_else(|error| panic!("{error}\n{text}"))
        })
        .collect()
}

fn only(text: &str) -> RunResult {
    runs(text).remove(0)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < EPSILON * b.abs().max(1.0)
}

/// Two trials, two shards, two hosts: the cheap trial takes 1 s a shard on the first host, the dear one 3 s.
#[test]
fn a_makespan_is_known_by_hand() {
    // 1000 rows a shard at 1000 or 3000 MFLOPs, at 1 TFLOP/s.
    let text = "[[hosts]]\ncount = 2\ntflops = 1\n\
                [job]\ncosts = [1000, 3000]\npick = \"cycle\"\nrows = 2000\nshards = 2\nepochs = 2\n";
    let run = only(text);
    // The dear trial's four hops follow each other: 12 s; the cheap one's fit beside.
    assert!(close(run.makespan, 12.0) && close(run.bound, 12.0), "{run:?}");
    assert_eq!(run.bound_by.name(), "longest trial");
    assert!(close(run.busy, 16.0 / 24.0), "{run:?}");
    assert_eq!((run.hops, run.assimilated, run.evaluated, run.lost), (8, 8, 4, 0));
    // Every host has had every shard once (and the validation shard of those that evaluated).
    assert!((4..=6).contains(&run.shards), "{run:?}");
}

/// One trial over four shards on one host: checkpoints of 100 MB take 8 s each way, a hop 1 s.
#[test]
fn hops_under_one_lease_move_one_checkpoint() {
    let run = |most_hops: u32| {
        only(&format!(
            "[server]\nmost_hops = {most_hops}\n\
             [[hosts]]\ncount = 1\ntflops = 1\ndownload = 100\nupload = 100\n\
             [job]\ntrials = 1\ncosts = [1000]\nrows = 4000\nshards = 4\nepochs = 3\n\
             checkpoint_bytes = \"100MB\"\n"
        ))
    };
    let (one, two, four) = (run(1), run(2), run(4));
    assert_eq!(
        [&one, &two, &four].map(|run| (run.hops, run.assimilated)),
        [(12, 12), (12, 6), (12, 3)]
    );
    let up = [&one, &two, &four].map(|run| run.checkpoints_up);
    assert_eq!(up, [12, 6, 3].map(|hops| hops * 100_000_000));
    assert!(four.makespan < two.makespan && two.makespan < one.makespan, "{one:?}\n{four:?}");
}
