//! Fleets: makespans that are known by hand, bounds, and the same bytes for the same seed.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a test ends at what it did not expect")]

use sojourn_core::Record;
use sojourn_sim::fleet::{self, Ask, Policy, RunResult, Scenario, ScenarioError, Watch};

const EPSILON: f64 = 1e-5;

fn scenario(text: &str) -> Scenario {
    let study = fleet::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    study.rows.into_iter().next().unwrap().scenario
}

/// Runs a scenario's first seed under its first policy; all invariants are checked on the way.
fn run(text: &str) -> RunResult {
    run_with(text, Ask::Check(50), &mut ())
}

fn run_with(text: &str, ask: Ask<'_>, watch: &mut dyn Watch) -> RunResult {
    let scenario = scenario(text);
    let mut files = |name: &str| Err(format!("no file {name}"));
    let policy = scenario.server.policy.0[0];
    fleet::run(&scenario, policy, scenario.seed, ask, &mut files, watch)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < EPSILON * b.abs().max(1.0)
}

/// 1000 rows a shard at 1000 or 3000 MFLOPs, at 1 TFLOP/s: hops of 1 s and of 3 s.
const SMALL: &str = "estimates = \"known\"\n[[hosts]]\ncount = 2\ntflops = 1\n\
    [job]\ncosts = [1000, 3000]\npick = \"cycle\"\nrows = 2000\nshards = 2\nepochs = 2\n";

#[test]
fn a_makespan_is_known_by_hand() {
    let run = run(SMALL);
    // The dear trial's four hops follow each other: 12 s; the cheap one's fit beside.
    assert!(close(run.makespan, 12.0) && close(run.bound, 12.0), "{run:?}");
    assert_eq!(run.bound_by.name(), "longest trial");
    assert!(close(run.busy, 16.0 / 24.0), "{run:?}");
    assert_eq!((run.hops, run.evaluated, run.lost), (8, 4, 0));
    assert!(close(run.lost_ratio, 0.0) && run.departures == 0, "{run:?}");
}

#[test]
fn an_epoch_ends_with_the_last_result_of_it() {
    let run = run(SMALL);
    // The dear trial ends its epochs after 6 s and 12 s, the cheap one before.
    assert_eq!(run.jobs[0].epochs, [6.0, 12.0]);
}

/// The fast host vanishes while it evaluates the only checkpoint. The other one fetches that for 80 s, and is left alone with it.
#[test]
fn an_evaluation_is_left_to_no_host_that_is_gone() {
    let run =
        run("[[hosts]]\ntflops = 10\ndownload = 1000\nupload = 1000\ntrace = [[0, 0, 2.5]]\n\
         [[hosts]]\ntflops = 10\ndownload = 1\nupload = 1\n\
         [job]\nequal = 1000\ntrials = 1\nrows = 10_000\nshards = 1\nvalid_rows = 100_000\n\
         checkpoint_bytes = \"10MB\"\n");
    assert_eq!((run.evaluated, run.lost), (1, 1), "{run:?}");
    // A minute until the lease is given up, and the fetch.
    assert!(run.makespan < 300.0, "{run:?}");
}

/// Every shard is kept by a fast and by a slow host. The only trial would take the slow one twenty times as long.
#[test]
fn a_slow_keeper_of_a_shard_leaves_the_longest_trial_to_a_fast_one() {
    let run = run(
        "estimates = \"known\"\n[[hosts]]\ncount = 2\ntflops = 20\n[[hosts]]\ncount = 2\ntflops = 1\n\
         [job]\ncosts = [20_000, 1000]\npick = \"cycle\"\nrows = 4000\nshards = 4\nepochs = 2\nplacement = \"pinned\"\nreplicas = 2\n",
    );
    // Eight hops of one second.
    assert!(run.makespan < 9.0, "{run:?}");
}

#[test]
fn slots_that_share_cores_are_slower() {
    // One trial for each slot, of 10 s on a core of its own.
    let run = |slots: u32, more: &str| {
        run(&format!(
            "estimates = \"known\"\n[[hosts]]\ntflops = 1\nslots = {slots}\n{more}\n\
             [job]\nequal = 1000\ntrials = {slots}\nrows = 10_000\nshards = 1\n",
        ))
        .makespan
    };
    assert!(close(run(8, ""), 10.0) && close(run(4, "cores = 4"), 10.0));
    assert!(close(run(8, "cores = 4"), 20.0), "no throughput is lost by sharing alone");
    assert!(close(run(8, "cores = 4\ncontention = 0.5"), 30.0));
    assert!(close(run(2, "cores = 4\ncontention = 0.5"), 10.0));
}

#[test]
fn bytes_take_their_time_on_the_line() {
    // One host, one trial, two shards of 1 MB at a byte a microsecond; a checkpoint of 4 MB.
    let run = |policy: &str| {
        run(&format!(
            "[server]\npolicy = \"{policy}\"\nmost_hops = 1\n\
             [[hosts]]\ntflops = 1\ndownload = 8\nupload = 8\nahead = 0\n\
             [job]\nequal = 1000\ntrials = 1\nrows = 2000\nshards = 2\n\
             data_bytes = \"2MB\"\ncheckpoint_bytes = \"4MB\"\n",
        ))
    };
    // One hop a lease: shard 1 s, train 1 s, upload 4 s, and that again: the checkpoint is in the host's own cache.
    // By a plan, the second hop begins while the first checkpoint is on its way.
    for (policy, makespan) in [("ltrp", 12.0), ("rollout", 10.0)] {
        let run = run(policy);
        assert!(close(run.makespan, makespan), "{run:?}");
        assert_eq!(
            (run.shard_bytes, run.checkpoints_down, run.checkpoints_up),
            (2_000_000, 0, 8_000_000)
        );
        let ratio = 2.0 / makespan;
        assert!(close(run.busy, ratio) && close(run.waiting, ratio), "{run:?}");
    }
}

#[test]
fn a_provisional_result_is_sent_once() {
    // A shard takes 1 s, a hop 1 s, an upload 4 s, and the server six more to take it in.
    let run = run("[server]\nmost_hops = 1\nassimilation = \"6s\"\n\
         [[hosts]]\ntflops = 1\ndownload = 8\nupload = 8\n\
         [job]\nequal = 1000\ntrials = 1\nrows = 3000\nshards = 3\n\
         data_bytes = \"3MB\"\ncheckpoint_bytes = \"4MB\"\n");
    assert_eq!((run.hops, run.checkpoints_up), (3, 12_000_000), "{run:?}");
    // Each result waits for the one before it, and about a second until the server is asked again.
    let least = 2.0 + 3.0 * (4.0 + 6.0);
    assert!((least..least + 3.0).contains(&run.makespan), "{run:?}");
}

#[test]
fn a_fleet_of_several_numeric_classes_is_planned_for() {
    // Four kinds of GPUs, each a class of its own, in which a trial then stays.
    let run = |policy: &str| {
        run(&format!(
            "estimates = \"known\"\n[server]\npolicy = \"{policy}\"\n\
             [[hosts]]\ncount = 16\ntflops = [12.1, 5.6, 11.3, 18.7]\npick = \"cycle\"\n\
             [job]\ncosts = [900, 1700, 2600, 4100]\npick = \"cycle\"\ntrials = 32\n\
             rows = 40_000\nshards = 8\nepochs = 3\nreproducible = true\n",
        ))
    };
    let (ltrp, rollout) = (run("ltrp"), run("rollout"));
    assert!(rollout.plans > 0 && ltrp.plans == 0, "{rollout:?}");
    assert!(rollout.ratio < 1.1 && rollout.makespan < ltrp.makespan, "{rollout:?}\n{ltrp:?}");
}

#[test]
fn the_fastest_hosts_are_planned_for_a_job_that_limits_them() {
    let run = run("estimates = \"known\"\n\
         [[hosts]]\ncount = 4\ntflops = 1\n[[hosts]]\ncount = 2\ntflops = 4\n\
         [job]\nequal = 1000\ntrials = 6\nrows = 8000\nshards = 2\nepochs = 2\nmax_hosts = 2\n");
    // Six trials of 16 s at 1 TFLOP/s, on the two of four.
    assert!(run.plans > 0 && close(run.makespan, 12.0), "{run:?}");
}

#[test]
fn a_unit_that_waits_for_a_shard_on_a_slow_line_is_not_overdue() {
    // A shard takes 200 s, training on it 1 s; without a sign of life a unit is given up after two terms.
    let run = run("[server]\nlease_term = \"60s\"\nmost_hops = 3\n\
         [[hosts]]\ntflops = 1\ndownload = 1\n\
         [job]\nequal = 1000\ntrials = 1\nrows = 3000\nshards = 3\ndata_bytes = \"75MB\"\n");
    assert_eq!((run.lost, run.assimilated, run.hops), (0, 1, 3), "in one lease: {run:?}");
    assert!(close(run.makespan, 601.0), "{run:?}");
}

#[test]
fn a_host_that_comes_back_sends_what_it_had_trained() {
    // A second of training; 4 MB at a byte a microsecond, of which three are sent when the power is cut.
    let run = run("[server]\nlease_term = \"60s\"\n\
         [[hosts]]\ntflops = 1\nupload = 8\ntrace = [[0, 0.0, 4.0], [0, 10.0, 1000.0]]\n\
         [job]\nequal = 1000\ntrials = 1\nrows = 1000\nshards = 1\ncheckpoint_bytes = \"4MB\"\n");
    assert!(close(run.makespan, 11.0), "the last megabyte follows: {run:?}");
    assert_eq!((run.assimilated, run.lost, run.departures), (1, 0, 1));
    assert_eq!(run.checkpoints_up, 4_000_000);
}

#[test]
fn the_bound_of_pinned_shards_is_the_largest_load() {
    // Without running: two hosts, the slow one with half of all rows.
    let pinned = "[[hosts]]\ncount = 2\ntflops = [1, 4]\npick = \"cycle\"\n\
        [job]\nequal = 1000\ntrials = 8\nrows = 2000\nshards = 2\nplacement = \"pinned\"\n";
    let bound =
        |text: &str| fleet::lower_bound(&scenario(text), 0, &mut |_| Err("no".into())).unwrap();
    let (seconds, by) = bound(pinned);
    assert!(close(seconds, 8.0), "{seconds}");
    assert_eq!(by.name(), "largest load");
    // Anywhere: 16 s of work at the first's speed, on five times its capacity.
    let (seconds, by) = bound(&pinned.replace("placement = \"pinned\"\n", ""));
    assert!(close(seconds, 3.2), "{seconds}");
    assert_eq!(by.name(), "capacity");
    // In proportion to speed, both have as much to do.
    let (seconds, _) = bound(&format!("{pinned}shard_sizes = \"speed\"\n"));
    assert!((3.19..3.22).contains(&seconds), "{seconds}");
    // One trial: its hops follow each other.
    let (seconds, by) = bound(&pinned.replace("trials = 8", "trials = 1"));
    assert!(close(seconds, 1.25), "{seconds}");
    assert_eq!(by.name(), "longest trial");
}

/// A fleet that differs, comes and goes, on lines that are slow, with caches that are small.
const HARD: &str = "seed = 3\n[server]\nlease_term = 20\nmost_hops = 3\n\
    [[hosts]]\ncount = 6\ntflops = [1, 2, 5]\nspread = 0.3\nnoise = 0.2\nslots = 2\n\
    download = 50\nupload = 20\nlatency = \"20ms\"\ncache = \"3MB\"\nfailures = 0.02\nlies = 0.02\n\
    exponential = { up = 120, down = 60 }\nnotice = 10\n\
    [[hosts]]\ncount = 4\ngpus = 2\ntflops = { a = 3, b = 6 }\nspot = { losses_per_hour = 0.9, back = 60 }\n\
    [[hosts]]\nname = \"nights\"\ncount = 1\ntflops = 2\nhours = \"00:00-23:59\"\n\
    [job]\ntrials = 12\ncosts = [500, 2000, 9000]\nrows = 40_000\nshards = 8\nepochs = 3\n\
    valid_rows = 500\ndata_bytes = \"8MB\"\ncheckpoint_bytes = \"500kB\"\n\
    [[jobs]]\nname = \"second\"\ntrials = 4\nequal = 3000\nrows = 4000\nshards = 3\nsubmitted = 60\n";

/// Everything that the core decided, as it would be written.
#[derive(Default)]
struct Journal(String);

impl Watch for Journal {
    fn record(&mut self, record: &Record) {
        self.0 += &serde_json::to_string(record).unwrap();
        self.0 += "\n";
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes = |text: &str| {
        let (mut journal, mut chart) = (Journal::default(), None);
        let run = run_with(text, Ask::Chart(&mut chart), &mut journal);
        let chart = chart.unwrap();
        (serde_json::to_string(&run).unwrap(), journal.0, chart.svg(), chart.html())
    };
    let first = bytes(HARD);
    assert_eq!(bytes(HARD), first);
    assert_ne!(bytes(&HARD.replace("seed = 3", "seed = 4")).0, first.0);
    assert!(first.2.contains("host 10, nights</text>"), "{}", first.2);
    assert!(first.2.starts_with("<svg") && first.2.contains("trial 0, epoch 0, shard"), "a chart");
}

#[test]
fn a_hard_fleet_trains_everything_and_breaks_nothing() {
    let (mut departures, mut lost) = (0, 0);
    for seed in 0..8 {
        let run = run(&HARD.replace("seed = 3", &format!("seed = {seed}")));
        assert!(run.ratio >= 1.0 && run.assimilated > 0, "{run:?}");
        assert_eq!(run.lost > 0, run.lost_ratio > 0.0, "{run:?}");
        assert_eq!(run.granted, run.assimilated + run.evaluated + run.lost, "{run:?}");
        assert_eq!(run.evaluated, 12 * 3 + 4, "{run:?}");
        departures += run.departures;
        lost += run.lost;
    }
    assert!(departures > 20 && lost > 20, "as hard as it is meant to be: {departures}, {lost}");
}

#[test]
fn no_schedule_is_shorter_than_the_bound() {
    for seed in 0..40_u32 {
        let (hosts, shards) = (2 + seed % 5, 2 + seed * 7 % 11);
        let sizes = if seed % 2 == 0 { "equal" } else { "speed" };
        let latency = f64::from(seed % 3) / 10.0;
        let text = format!(
            "seed = {seed}\n[server]\npolicy = [\"rollout\", \"ltrp\"]\n\
             [[hosts]]\ncount = {hosts}\ntflops = [1, 2, 5]\nlatency = {latency}\nslots = {}\n\
             [job]\ncosts = [1000, 9000]\ntrials = {}\nrows = 5000\nshards = {shards}\n\
             placement = \"pinned\"\nreplicas = {}\nshard_sizes = \"{sizes}\"\n",
            1 + seed % 2,
            1 + seed % 9,
            (1 + seed / 2 % 3).min(hosts),
        );
        let run = run(&text);
        assert!(run.ratio >= 1.0 - EPSILON, "{text}{run:?}");
    }
}

#[test]
fn the_largest_of_pinned_shards_are_taken_to_be_on_the_fastest_hosts() {
    let bound =
        |text: &str| fleet::lower_bound(&scenario(text), 0, &mut |_| Err("no".into())).unwrap();
    // Sizes 1, 4 and 1 for hosts of 1 and 4: the fast one keeps two.
    let text = "[[hosts]]\ncount = 2\ntflops = [1, 4]\npick = \"cycle\"\n\
        [job]\nequal = 1000\ntrials = 1\nrows = 6000\nshards = 3\nplacement = \"pinned\"\nshard_sizes = \"speed\"\n";
    let (seconds, by) = bound(text);
    assert_eq!(by.name(), "longest trial");
    assert!((seconds - (1.25 + 1.0)).abs() < 0.01, "{seconds}");
    let (seconds, by) = bound(&text.replace("trials = 1", "trials = 9"));
    assert!(by.name() == "capacity" && (seconds - 9.0 * 1.2).abs() < 0.01, "{seconds}");
    // Where hosts leave, their shards go to others.
    let leaving = text.replace("pick", "hours = \"00:00-23:00\"\npick");
    let (seconds, _) = bound(&leaving);
    assert!((seconds - 6.0 / 4.0).abs() < 0.01, "{seconds}");
}

#[test]
fn references_plan_where_rollout_would() {
    let pinned = "seed = 5\nestimates = \"known\"\n[server]\npolicy = \"POLICY\"\n\
        [[hosts]]\ncount = 3\ntflops = [1, 2, 4]\npick = \"cycle\"\n\
        [job]\ncosts = [1000, 2000, 3000, 5000]\ntrials = 6\nrows = 3000\nshards = 3\nepochs = 2\n\
        placement = \"pinned\"\n";
    for policy in Policy::ALL {
        let text = pinned.replace("POLICY", policy.name());
        if !policy.is_built() {
            let mut files = |_: &str| Err("no files".into());
            let run = fleet::run(&scenario(&text), policy, 5, Ask::Result, &mut files, &mut ())
                .map(|_| ());
            assert_eq!(run.unwrap_err().to_string(), Policy::MISSING);
            continue;
        }
        let run = run(&text);
        assert_eq!((run.assimilated, run.lost), (36, 0), "{policy}: {run:?}");
        assert!(run.ratio >= 1.0 - EPSILON, "{policy}: {run:?}");
        let plans = !matches!(policy, Policy::Randomized | Policy::Ltrp);
        assert_eq!(run.plans > 0, plans, "{policy}: {run:?}");
    }
}

/// Two hosts; one goes away in the middle of the first hop of 100 s.
fn leaving(notice: &str) -> RunResult {
    run(&format!(
        "[server]\nlease_term = 10\n[[hosts]]\ncount = 2\ntflops = 1\n\
         trace = [[0, 0, 50]]\nnotice = {notice}\n\
         [job]\nequal = 1000\ntrials = 2\nrows = 100_000\nbatch_size = 1000\nshards = 1\n"
    ))
}

#[test]
fn notice_saves_what_was_trained() {
    let vanished = leaving("\"none\"");
    // 50 s are lost; who has ended its own does all of the other one.
    assert!(close(vanished.makespan, 200.0), "{vanished:?}");
    assert!(close(vanished.lost_ratio, 50.0 / 250.0), "{vanished:?}");
    assert_eq!((vanished.lost, vanished.departures), (1, 1));
    let warned = leaving("20");
    // It hears of it after 30 s, and ten before it goes it ends with its 41st batch.
    assert!(close(warned.makespan, 100.0 + 59.0) && close(warned.lost_ratio, 0.0), "{warned:?}");
    assert_eq!(warned.lost, 0);
}

#[test]
fn the_loser_of_two_copies_is_lost_once_with_all_its_work() {
    // The first host says that it is four times as fast as the second, and is less than half as fast.
    let run = run("[server]\npolicy = \"ltrp\"\nmost_copied = 100\n\
         [[hosts]]\ntflops = 4\nspeed_by_model = { \"1000 MFLOPs\" = 0.1 }\n[[hosts]]\ntflops = 1\n\
         [job]\nequal = 1000\ntrials = 2\nrows = 1_000_000\nshards = 1\n");
    assert!(run.copies > 0 && run.lost == run.copies, "{run:?}");
    // The second host brings both trials; whatever else slots did to the end comes to nothing.
    let worked = run.busy * 2.0 * run.makespan;
    assert!(close(run.lost_ratio, 1.0 - 2000.0 / worked), "{run:?}");
}

#[test]
fn small_caches_fetch_again() {
    let with = |cache: &str| {
        run(&format!(
            "[[hosts]]\ntflops = 1\ndownload = 800\n{cache}\
             [job]\nequal = 1000\ntrials = 4\nrows = 8000\nshards = 8\nepochs = 4\ndata_bytes = \"8MB\"\n"
        ))
    };
    let (all, few) = (with(""), with("cache = \"2MB\"\n"));
    assert_eq!(all.shards, 9, "eight shards and the validation shard, once each");
    assert!(few.shards > 20, "{few:?}");
    assert!(few.makespan >= all.makespan, "{few:?}");
}

#[test]
fn a_fleet_that_is_gone_for_good_is_an_error() {
    let scenario = scenario(
        "[[hosts]]\ntflops = 1\ntrace = [[0, 0, 5]]\n[job]\nequal = 1000\ntrials = 1\nrows = 100_000\n",
    );
    let policy = scenario.server.policy.0[0];
    let mut files = |_: &str| Err(String::new());
    let error = fleet::run(&scenario, policy, 0, Ask::Result, &mut files, &mut ()).unwrap_err();
    assert!(error.to_string().contains("no host is left"), "{error}");
}

/// Why a scenario can't be run.
fn refused(text: &str) -> String {
    let mut files = |name: &str| Err(format!("no file {name}"));
    let error = fleet::run(&scenario(text), Policy::Rollout, 0, Ask::Result, &mut files, &mut ());
    match error {
        Err(ScenarioError::Wrong(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Remarks(Vec<String>);

impl Watch for Remarks {
    fn remark(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

#[test]
fn shards_that_no_cache_holds_are_refused() {
    let job = "[job]\ntrials = 2\nshards = 2\ndata_bytes = \"2MB\"\n";
    let pinned = format!("{job}placement = \"pinned\"\n");
    let error = refused(&format!("[[hosts]]\ncount = 3\ncache = \"900kB\"\n{pinned}"));
    assert_eq!(
        error,
        "a shard of `job 1` has 1000000 bytes, and the `cache` of hosts of group 1 holds 900000: nobody can keep \
         it; say more `cache`, or more `shards`"
    );
    let error = refused(&format!("[[hosts]]\ncount = 3\ncache = \"900kB\"\n{job}"));
    assert!(
        error.ends_with("nobody can train on it; say more `cache`, or more `shards`"),
        "{error}"
    );
    let error = refused(&format!("[[hosts]]\ncache = \"1MB\"\n{pinned}"));
    assert!(error.starts_with("the `cache` of all hosts together holds 1000000 bytes"), "{error}");
    let remarked = |text: &str, ends: &str| {
        let mut remarks = Remarks::default();
        run_with(text, Ask::Check(50), &mut remarks);
        assert!(remarks.0.len() == 1 && remarks.0[0].ends_with(ends), "{:?}", remarks.0);
    };
    let hosts = "[[hosts]]\n[[hosts]]\nname = \"small\"\ncache = 5\n";
    let ends = "group 2 (`small`) holds 5: they get none of its units";
    remarked(&format!("{hosts}{pinned}"), ends);
    remarked(&format!("{hosts}{job}"), ends);
    remarked(
        &format!("[[hosts]]\ncount = 3\ncache = \"1300kB\"\n{pinned}replicas = 2\n"),
        "on all their `replicas`: while all run, some lie on fewer hosts, or on none",
    );
    let job = pinned.replace("[job]", "[[jobs]]");
    let later = format!("{job}submitted = \"1h\"\n");
    remarked(&format!("[[hosts]]\ncache = \"3MB\"\n{job}{later}"), "on fewer hosts, or on none");
}

#[test]
fn a_run_that_ends_nowhere_says_what_the_server_waits_for() {
    // Each cache has room for one shard and a half, which is one.
    let scenario = scenario(
        "horizon = \"1h\"\n[[hosts]]\ncount = 3\ncache = \"1500kB\"\n\
         [job]\ntrials = 2\nshards = 4\ndata_bytes = \"4MB\"\nplacement = \"pinned\"\n",
    );
    let mut files = |_: &str| Err(String::new());
    let error = fleet::run(&scenario, Policy::Rollout, 0, Ask::Result, &mut files, &mut ());
    let Err(ScenarioError::Endless(error)) = error else { panic!("{error:?}") };
    assert!(error.contains("`job 1` waits") && error.contains("say more `cache`"), "{error}");
}

#[test]
fn what_takes_longer_than_clocks_count_is_refused() {
    let error = refused(
        "[[hosts]]\ntflops = 1e-9\n[job]\nequal = 1e12\nrows = 1_000_000_000_000\nshards = 1000\n",
    );
    assert!(error.starts_with("no schedule of it is shorter than"), "{error}");
}

#[test]
fn jobs_may_be_listed_in_any_order() {
    // The second is there first: 3 s, and at 100 s the first: 1 s.
    let run = run("[[hosts]]\ntflops = 1\n\
         [[jobs]]\nname = \"late\"\nequal = 1000\ntrials = 1\nrows = 1000\nshards = 1\nsubmitted = 100\n\
         [[jobs]]\nname = \"early\"\nequal = 3000\ntrials = 1\nrows = 1000\nshards = 1\n");
    assert!(close(run.makespan, 101.0), "{run:?}");
}

#[test]
fn a_job_may_be_submitted_after_months() {
    let run = run("[[hosts]]\ntflops = 1\n\
         [job]\nequal = 1000\ntrials = 1\nrows = 1000\nshards = 1\nsubmitted = \"90d\"\n");
    assert!(close(run.makespan, 1.0), "{run:?}");
}

/// When each of two jobs ended: twelve hops of 1 s each, on one host.
fn two_jobs(first: &str, second: &str) -> (f64, f64) {
    let job = "equal = 1000\ntrials = 12\nrows = 1000\nshards = 1\n";
    let run = run(&format!(
        "[server]\npolicy = \"ltrp\"\n[[hosts]]\ntflops = 1\n[[jobs]]\n{job}{first}[[jobs]]\n{job}{second}"
    ));
    assert!(close(run.makespan, 24.0), "{run:?}");
    (run.jobs[0].ended, run.jobs[1].ended)
}

#[test]
fn a_job_of_higher_priority_is_served_first() {
    let (first, second) = two_jobs("", "priority = 1\n");
    assert!(first >= 23.5 && second <= 13.5, "{first}, {second}");
}

/// Seconds that a job of 8 trials takes from its submission, after 60 s, on hosts of `slots` slots that are busy with 24
/// trials of another job whose hops take `hop` seconds; or alone, where that is 0. Its own take 2 s.
fn urgent_job(hosts: u32, slots: u32, hop: u32, priority: i32) -> f64 {
    let job = "rows = 25_600\nshards = 16\ncheckpoint_bytes = \"200KB\"\ndata_bytes = \"16MB\"\n";
    let busy = if hop == 0 {
        String::new()
    } else {
        let mflops = hop * 625;
        format!("[[jobs]]\nequal = {mflops}\ntrials = 24\nepochs = 4\n{job}")
    };
    let run = run(&format!(
        "[server]\npolicy = \"rollout\"\n\
         [[hosts]]\ncount = {hosts}\nslots = {slots}\ntflops = 1\ndownload = 40\nupload = 16\n{busy}\
         [[jobs]]\nequal = 1250\ntrials = 8\nepochs = 2\nsubmitted = 60\npriority = {priority}\n{job}"
    ));
    let urgent = run.jobs.last().unwrap();
    urgent.ended - urgent.submitted
}

#[test]
fn a_priority_job_takes_little_longer_on_busy_hosts_than_alone() {
    for (hosts, slots) in [(12, 1), (4, 3)] {
        let alone = urgent_job(hosts, slots, 0, 0);
        let beside = urgent_job(hosts, slots, 2, 0);
        let first = urgent_job(hosts, slots, 2, 50);
        assert!(first <= alone * 1.15, "{first} s, alone {alone} s");
        assert!(beside > alone * 1.5, "{beside} s without priority, alone {alone} s");
        // What runs when it comes isn't interrupted. After that, a slot that its trials go on in is kept for them.
        let long_hops = urgent_job(hosts, slots, 20, 50);
        assert!(long_hops <= alone * 1.15 + 20.0, "{long_hops} s, alone {alone} s");
    }
}

/// The same on twelve hosts with slow lines, whose leases are of several hops as uploads take longer than these.
fn urgent_job_on_slow_lines(others: u32, priority: i32) -> f64 {
    let job = "equal = 1250\nrows = 25_600\nshards = 16\ncheckpoint_bytes = \"4MB\"\ndata_bytes = \"16MB\"\n";
    let busy = if others == 0 {
        String::new()
    } else {
        format!("[[jobs]]\ntrials = {others}\nepochs = 4\n{job}")
    };
    let run = run(&format!(
        "[server]\npolicy = \"rollout\"\n\
         [[hosts]]\ncount = 12\ntflops = 1\ndownload = 20\nupload = 4\n{busy}\
         [[jobs]]\ntrials = 8\nepochs = 2\nsubmitted = 60\npriority = {priority}\n{job}"
    ));
    let urgent = run.jobs.last().unwrap();
    urgent.ended - urgent.submitted
}

#[test]
fn leases_of_several_hops_end_early_for_a_job_of_higher_priority() {
    let alone = urgent_job_on_slow_lines(0, 0);
    let first = urgent_job_on_slow_lines(24, 50);
    assert!(first <= alone * 1.15, "{first} s, alone {alone} s");
}

#[test]
fn jobs_get_slot_time_by_their_slot_shares() {
    let (first, second) = two_jobs("", "");
    assert!(first >= 22.0 && second >= 22.0, "alike: {first}, {second}");
    let (first, second) = two_jobs("", "share = 3\n");
    // The second has three of four hops until it has all twelve.
    assert!(first >= 23.5 && (15.0..=17.5).contains(&second), "{first}, {second}");
}

#[test]
fn no_more_hosts_work_for_a_job_than_it_wants() {
    let four = |most: &str| {
        run(&format!(
            "[[hosts]]\ncount = 4\ntflops = 1\n\
             [job]\nequal = 1000\ntrials = 8\nrows = 1000\nshards = 1\n{most}"
        ))
        .makespan
    };
    assert!(close(four(""), 2.0) && close(four("max_hosts = 1\n"), 8.0));
}

/// A job whose data is eight times as large as hosts' caches, under a policy: seconds, and bytes moved.
fn with_small_caches(policy: &str, seed: u64, hosts: &str, mflops: &str) -> (f64, u64) {
    let run = run(&format!(
        "seed = {seed}\n[server]\npolicy = \"{policy}\"\n\
         [[hosts]]\n{hosts}slots = 0\ntflops = [1, 2]\ndownload = 400\nupload = 160\ncache = \"50MB\"\n\
         [job]\ncosts = {mflops}\ntrials = 12\nrows = 20_000\nshards = 16\nepochs = 3\n\
         data_bytes = \"400MB\"\ncheckpoint_bytes = \"10MB\"\n",
    ));
    (run.makespan, run.shard_bytes + run.checkpoints_down + run.checkpoints_up)
}

#[test]
fn slots_of_a_host_share_what_it_fetches_for_their_plan() {
    // Fetching a shard takes about as long as training on it, so a run depends on which slots happen to share it: by a
    // fifth from one seed to the next.
    let with = |policy| {
        let runs = (0..24)
            .map(|seed| with_small_caches(policy, seed, "count = 2\ngpus = 4\n", "[100, 400]"));
        runs.fold((0.0, 0), |all, run| (all.0 + run.0, all.1 + run.1))
    };
    let (ltrp, planned) = (with("ltrp"), with("rollout"));
    assert!(planned.0 <= ltrp.0 * 1.03, "{planned:?} {ltrp:?}");
    assert!(planned.1 <= ltrp.1 * 11 / 10, "{planned:?} {ltrp:?}");
}

#[test]
fn a_plan_that_would_have_hosts_wait_for_their_lines_is_not_made() {
    let with = |policy, mflops| with_small_caches(policy, 4, "count = 8\ngpus = 1\n", mflops);
    let (ltrp, planned) = (with("ltrp", "[100, 400]"), with("rollout", "[100, 400]"));
    assert!(planned.0 <= ltrp.0 * 1.03, "{planned:?} {ltrp:?}");
    let (ltrp, planned) = (with("ltrp", "[1000, 4000]"), with("rollout", "[1000, 4000]"));
    assert!(planned.0 < ltrp.0, "lines keep up: {planned:?} {ltrp:?}");
}

#[test]
fn a_trial_does_not_wait_for_a_host_that_still_fetches_shards() {
    // At the end a plan has a trial follow another one on a host. That one's hops take as long as their shards.
    let with = |policy| with_small_caches(policy, 9, "count = 8\ngpus = 1\n", "[100, 400]").0;
    let (ltrp, planned) = (with("ltrp"), with("rollout"));
    assert!(planned <= ltrp * 1.03, "{planned} {ltrp}");
}

/// Four machines of two speeds, whose lines take longer for a checkpoint than the fast ones for an epoch.
fn slow_lines(policy: &str, seed: u64) -> RunResult {
    run(&format!(
        "seed = {seed}\n[server]\npolicy = \"{policy}\"\n\
         [[hosts]]\ncount = 4\ntflops = [1, 3]\ndownload = 40\nupload = 16\n\
         [job]\nequal = 125\ntrials = 5\nepochs = 12\nrows = 25_600\nshards = 4\n\
         data_bytes = \"16MB\"\ncheckpoint_bytes = \"4MB\"\n"
    ))
}

#[test]
fn plans_are_no_longer_than_ltrp_where_lines_are_slower_than_devices() {
    for seed in 0..4 {
        let (planned, ltrp) = (slow_lines("rollout", seed), slow_lines("ltrp", seed));
        assert!(planned.plans > 0 && planned.makespan <= 1.03 * ltrp.makespan, "{planned:?}");
        // 60 checkpoints of epochs, and few more of epochs that a move cut in two.
        assert!(planned.checkpoints_up <= 66 * 4_000_000, "{planned:?}");
        assert!(planned.checkpoints_down < ltrp.checkpoints_down, "{planned:?}");
    }
}
