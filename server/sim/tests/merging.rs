//! Fleets that merge: several shards of one trial at once, results that come late, hosts that are taken away, rounds.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{self, Ask, RunResult};

const JOB: &str = "name = \"one\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [64]\n\
    [[model]]\narch = \"mlp\"\nhidden = [64]\n\
    [training]\nepochs = 1\nbatch_size = 10\noptimizer = \"adam\"\n[placement]\norder = \"hop\"\nreproducible = false\n";

/// Runs a scenario's first seed, its job from [`JOB`]; all invariants are checked on the way.
fn run(text: &str) -> RunResult {
    let study = fleet::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let scenario = study.rows.into_iter().next().unwrap().scenario;
    let policy = *scenario.server.policy.0.first().unwrap();
    let mut files = |_: &str| Ok(JOB.to_owned());
    fleet::run(&scenario, policy, scenario.seed, Ask::Check(20), &mut files, &mut ())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3 * b.abs()
}

/// `hosts` of one speed or two, and a job of one trial whose 8 shards of 1000 rows take 100 s each at a speed of 1.
fn fleet(server: &str, hosts: &str, job: &str) -> String {
    // Passes x (64 x 64 + 64 x 10 weights) x 2 x rows, in 100 s.
    let speed = 3.0 * 2.0 * (64.0 * 64.0 + 64.0 * 10.0) * 1000.0 / 100.0 / 1e12;
    format!(
        "[server]\npolicy = \"ltrp\"\nmost_hops = 1\nmost_copied = 0\nlease_term = 30\n{server}\
         [[hosts]]\ntflops = {speed}\n{hosts}\
         [job]\nfile = \"one.toml\"\nrows = 8000\nshards = 8\n{job}"
    )
}

const MERGE: &str = "set.placement.order = \"merge\"\n";

#[test]
fn several_hosts_train_one_trial_at_once() {
    let hop = run(&fleet("", "count = 4\n", "epochs = 2\n"));
    assert!(close(hop.makespan, 1600.0) && hop.merged == 0, "{hop:?}");
    let merged = run(&fleet("", "count = 4\n", &format!("epochs = 2\n{MERGE}")));
    assert!(close(merged.makespan, 400.0), "{merged:?}");
    assert_eq!((merged.merged, merged.assimilated, merged.lost), (16, 16, 0), "{merged:?}");
    // Of four that end together, each is one version older than the one before.
    assert!(close(merged.staleness, 1.5), "{merged:?}");
    assert_eq!(merged.order_switches, 0, "it is so from the beginning: {merged:?}");
    let auto = run(&fleet("", "count = 4\n", "epochs = 2\nset.placement.order = \"auto\"\n"));
    assert_eq!((auto.merged, auto.order_switches), (16, 1), "{auto:?}");
}

#[test]
fn rounds_end_with_their_slowest() {
    let hosts = "count = 2\nspeed_by_model = { \"mlp 1\" = 1 }\n[[hosts]]\ncount = 2\n\
                 tflops = 1e-6\nspeed_by_model = { \"mlp 1\" = 1 }\n";
    let job = format!("epochs = 1\n{MERGE}");
    let free = run(&fleet("", hosts, &job));
    let rounds = run(&fleet("rounds = true\n", hosts, &job));
    // Two rounds of four; without, the fast ones do all but two.
    assert!(close(rounds.makespan, 200.0) && free.makespan < 101.0, "{free:?} {rounds:?}");
    assert!(close(rounds.staleness, 1.5), "{rounds:?}");
}

#[test]
fn a_late_result_is_used_if_it_is_the_first() {
    // One host alone: each of its reports comes when the lease has run out, and nobody else has done the unit.
    let alone = run(&fleet("", "late = 1\n", MERGE));
    assert_eq!((alone.merged, alone.late, alone.late_used, alone.lost), (8, 9, 9, 0), "{alone:?}");
    // A unit of 1 s waits until its lease has run out.
    let quick = run(&fleet("", "late = 1\nefficiency = 100\n", MERGE));
    assert!((8.0 * 30.0..9.0 * 33.0).contains(&quick.makespan), "{quick:?}");
    assert_eq!(quick.late, quick.late_used, "{quick:?}");
}

#[test]
fn a_late_result_of_a_shard_that_is_settled_is_superseded() {
    // Another host ten times as fast is given the late one's units, and is done with all before the first late report.
    let text = fleet("", "late = 1\n[[hosts]]\ntflops = 2.8416e-6\n", MERGE);
    let run = run(&text);
    assert_eq!((run.merged, run.late, run.late_used), (8, 0, 0), "{run:?}");
    let two = self::run(&text.replace("shards = 8", "shards = 8\nepochs = 3"));
    assert!(two.late > 0 && two.late_used == 0 && two.superseded == two.late, "{two:?}");
}

#[test]
fn units_end_with_their_hosts() {
    let never = run(&fleet("", "count = 4\npreempted = { share = 0, back = 10 }\n", MERGE));
    assert_eq!((never.departures, never.lost), (0, 0), "{never:?}");
    let text = fleet("", "count = 4\npreempted = { share = 0.3, back = 60 }\n", "epochs = 20\nSET");
    let run = run(&text.replace("SET", MERGE));
    assert_eq!(run.merged, 160, "{run:?}");
    let ratio = run.departures as f64 / run.granted as f64;
    // An evaluation takes no time here: its host goes when it has ended.
    assert!((0.2..0.4).contains(&ratio) && run.lost > 40, "{ratio} {run:?}");
    assert!((run.lost..=run.lost + run.evaluated).contains(&run.departures), "{run:?}");
    // With notice enough to end the batch, nothing is lost.
    let text = text.replace("back = 60 }", "back = 60 }\nnotice = 40").replace("SET", MERGE);
    let warned = self::run(&text);
    assert!(warned.departures > 20 && warned.lost_ratio < run.lost_ratio / 3.0, "{warned:?}");
}

#[test]
fn without_signs_of_life_another_machine_waits_until_a_lease_has_run_out() {
    // One shard an epoch: each unit needs the one before it. A lease runs out 300 s after it was granted.
    let hosts = "preempted = { share = 0.3, back = 0, another = true }\n";
    let job = format!("epochs = 40\n{MERGE}");
    let text =
        fleet("heartbeat = \"1d\"\n", hosts, &job).replace("lease_term = 30", "lease_term = 300");
    let text = text.replace("rows = 8000\nshards = 8", "rows = 1000\nshards = 1");
    let another = run(&text);
    assert!(another.lost > 5 && another.merged == 40, "{another:?}");
    assert!(close(another.makespan, 4000.0 + 300.0 * another.lost as f64), "{another:?}");
    // The same machine says who it is, and is given what it had at once.
    let same = run(&text.replace("another = true", "another = false"));
    assert!(same.departures > 5 && same.lost == 0 && same.merged == 40, "{same:?}");
    assert!(same.makespan < 4000.0 + 100.0 * same.departures as f64, "{same:?}");
}

#[test]
fn a_hard_fleet_merges_everything_and_gives_the_same_bytes_again() {
    for seed in 0..6 {
        let hosts = "count = 5\nnoise = 0.3\nslots = 2\ndownload = 1\nupload = 0.5\nlatency = \"20ms\"\n\
                     failures = 0.02\nlies = 0.02\nlate = 0.1\npreempted = { share = 0.1, back = 20 }\n";
        let job = format!("epochs = 4\nvalid_rows = 500\ndata_bytes = \"1MB\"\n{MERGE}");
        let text = format!("seed = {seed}\n{}", fleet("", hosts, &job));
        let first = run(&text);
        assert_eq!(first.evaluated, 4, "{first:?}");
        assert!(first.merged >= 32 && first.merged == first.assimilated, "{first:?}");
        assert!(first.departures > 0 && first.late > 0, "as hard as it is meant to be: {first:?}");
        assert_eq!(first.granted, first.assimilated + first.evaluated + first.lost, "{first:?}");
        let bytes = |run: &RunResult| serde_json::to_string(run).unwrap();
        assert_eq!(bytes(&run(&text)), bytes(&first));
    }
}

#[test]
fn what_is_set_in_a_job_file_is_checked_as_the_file_is() {
    let told = |set: &str| {
        let text = fleet("", "", set);
        let scenario = fleet::read(&text).unwrap().rows.remove(0).scenario;
        let mut files = |_: &str| Ok(JOB.to_owned());
        let error = fleet::lower_bound(&scenario, 0, &mut files).unwrap_err();
        error.to_string()
    };
    let error = told("set.placement.merge = { rule = \"delta\", gian = 0.3 }\n");
    assert!(
        error.starts_with("`one.toml` with what `job.set` says: `placement.merge.gian` "),
        "{error}"
    );
    assert!(error.contains("did you mean `gain`?"), "{error}");
    let error = told("set.training.optimizer = { name = \"sgd\", lr = \"a\\\"b\" }\n");
    assert!(error.contains("`training.optimizer.lr` is a string (`\"a\"b\"`)"), "{error}");
}

#[test]
fn an_assimilator_works_at_one_result_at_a_time_and_at_one_of_each_trial() {
    let makespan = |server: &str, job: &str| {
        let text = fleet(&format!("assimilation = 50\n{server}"), "count = 4\n", job);
        let run = run(&text);
        assert_eq!(run.merged, run.assimilated, "{run:?}");
        run.makespan
    };
    // Results come by fours, at 100 and 200 s; the first is merged at 150 s, and then one each 50 s.
    assert!(close(makespan("", MERGE), 500.0));
    assert!(close(makespan("assimilators = 4\n", MERGE), 500.0), "versions follow each other");
    // The second round of four begins when all of the first are merged.
    assert!(close(makespan("rounds = true\n", MERGE), 600.0));
    let rates = "set.training.optimizer = { name = \"adam\", lr = { choice = [1e-3, 1e-2] } }\n";
    let two = format!("{MERGE}{rates}");
    assert!(close(makespan("", &two), 900.0), "16 results, the first at 100 s");
    let both = makespan("assimilators = 2\n", &two);
    assert!(both < 600.0, "{both}");
    assert!(close(makespan("assimilators = 3\n", &two), both));
}

#[test]
fn who_assimilates_in_no_time_needs_no_other() {
    let text = fleet("", "count = 3\nnoise = 0.3\nlate = 0.1\n", &format!("epochs = 3\n{MERGE}"));
    let one = run(&text);
    let three = run(&text.replace("[server]\n", "[server]\nassimilators = 3\n"));
    assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&three).unwrap());
}
