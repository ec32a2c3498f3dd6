//! `sojourn simulate`, whole process: the table, the files, and what wrong scenarios are told.

use crate::support::{Folder, sojourn};
use std::{fs, path::PathBuf};

const SCENARIO: &str = "seeds = 2\n[server]\npolicy = [\"ltrp\", \"randomized\"]\n\
    [[hosts]]\ncount = 2\ntflops = 1\n\
    [job]\ncosts = \"costs.csv\"\npick = \"cycle\"\nrows = 2000\nshards = 2\nepochs = 2\n";

fn folder(scenario: &str) -> Folder {
    Folder::with(&[("s.toml", scenario), ("costs.csv", "model,mflops\na,1000\nb,3000\n")])
}

fn example(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "examples", name].iter().collect()
}

/// The exit code, stdout and stderr of a simulation.
fn simulate(folder: &Folder, args: &[&str]) -> (String, String, Option<i32>) {
    let args = [&["simulate", "s.toml"], args].concat();
    let output = sojourn(&args).current_dir(folder.path()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn a_scenario_gives_a_table_and_the_same_files_each_time() {
    let folder = folder(SCENARIO);
    let (table, error, code) = simulate(&folder, &["--out", "out"]);
    assert_eq!((error.as_str(), code), ("", Some(0)));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].contains("lower bound"), "{table}");
    assert!(lines[1].contains("ltrp") && lines[1].contains("longest trial"), "{table}");
    assert!(lines[1].contains("12.00 s"), "{table}");

    let (json, _, code) = simulate(&folder, &["--out", "again", "--json"]);
    assert_eq!(code, Some(0));
    for file in ["result.json", "ltrp/gantt.svg", "ltrp/gantt.html", "randomized/events.jsonl"] {
        let read = |out: &str| fs::read(folder.path().join(out).join(file)).unwrap();
        assert_eq!(read("out"), read("again"), "{file}");
    }
    let result = fs::read_to_string(folder.path().join("out/result.json")).unwrap();
    assert_eq!(json, result, "what is printed as JSON is what is written");
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["cells"][0]["runs"].as_array().unwrap().len(), 2);
    assert_eq!(result["cells"][0]["makespan"]["min"], 12.0);
}

#[test]
fn flags_override_the_file() {
    let folder = folder(SCENARIO);
    let (json, _, code) =
        simulate(&folder, &["--policy", "ltrp", "--seed", "7", "--seeds", "1", "--json"]);
    assert_eq!(code, Some(0));
    let result: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(result["cells"].as_array().unwrap().len(), 1);
    assert_eq!(result["cells"][0]["runs"][0]["seed"], 7);
}

#[test]
fn mistakes_are_shown_with_their_line() {
    for (scenario, args, wanted) in [
        (
            "[[hosts]]\ncont = 2\n",
            &[][..],
            "s.toml: line 2: `cont` is no known key; did you mean `count`?",
        ),
        (
            SCENARIO,
            &["--policy", "lptr"],
            "--policy: `lptr` is no known value; did you mean `ltrp`?",
        ),
        (SCENARIO, &["--policy", "ltrp,ltrp"], "--policy: `ltrp` is named twice"),
        (
            SCENARIO,
            &["--budget", "1s"],
            "--budget: a scenario's plans have the server's own number",
        ),
        (SCENARIO, &["--seed", "-1"], "'-1' for '--seed <N>': a whole number from 0"),
        (SCENARIO, &["--seeds", "-1"], "'-1' for '--seeds <N>': -1 is not in 1..=4294967295"),
        (
            "[[hosts]]\ntrace = \"none.csv\"\n[job]\n",
            &[],
            "can't read `none.csv`: No such file or directory",
        ),
        (
            "[[hosts]]\n[job]\ncosts = \"none.csv\"\n",
            &[],
            "can't read `none.csv`: No such file or directory",
        ),
    ] {
        let (table, error, code) = simulate(&folder(scenario), args);
        assert!(error.contains(wanted), "{error}");
        assert_eq!((table.as_str(), code), ("", Some(2)));
    }
    let output = sojourn(&["simulate"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("or an open shop by `--open-shop FILE`"), "{error}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_run_that_does_not_end_is_a_failure_and_no_wrong_call() {
    let endless =
        "horizon = 10\n[[hosts]]\ntflops = 1\n[job]\nequal = 1000\ntrials = 1\nrows = 100_000\n";
    let (table, error, code) = simulate(&folder(endless), &[]);
    assert_eq!((table.as_str(), code), ("", Some(1)));
    assert!(error.contains("or a later `horizon`"), "{error}");
}

#[test]
fn references_are_compared_like_policies() {
    let scenario = SCENARIO.replace("\"ltrp\"", "\"vector-rearrangement\", \"milp\"");
    let (table, error, code) = simulate(&folder(&scenario), &["--seeds", "1"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(table.contains("vector-rearrangement") && table.contains("plans"), "{table}");
    // A policy that was left out is named, with the reason.
    assert_eq!(table.contains("milp"), !error.contains("--features milp"), "{table}{error}");
    if !table.contains("milp") {
        let (table, error, code) = simulate(&folder(SCENARIO), &["--policy", "milp"]);
        assert_eq!((table.as_str(), code), ("", Some(2)));
        assert!(error.contains("--policy: `milp` is not in this program"), "{error}");
    }
}

/// Two trials of digits on hosts of which some are taken away: what they learn is real, and the same each time.
#[test]
fn hops_train_where_a_job_asks_for_real_training() {
    let folder = Folder::with(&[(
        "s.toml",
        "[server]\npolicy = \"ltrp\"\n[[hosts]]\ncount = 3\ntflops = [0.001, 0.002]\n\
         exponential = { up = \"30s\", down = \"10s\" }\nnotice = \"5s\"\nefficiency = 0.001\n\
         [job]\nfile = \"job/digits.toml\"\ntrain = true\n",
    )]);
    let job = fs::read_to_string(example("digits/job.toml")).unwrap();
    let job = job.replace("choice = [[64], [128, 64]]", "choice = [[32]]");
    let job = job.replace("{ log_uniform = [1e-3, 1e-2], points = 3 }", "0.003");
    let job = job.replace("channels = { choice = [[16], [16, 32]] }", "channels = [4]");
    // The best one is tested in the end, and then the job ends.
    let job = job.replace("valid = 0.2\n", "valid = 0.2\ntest = 0.1\n");
    fs::create_dir(folder.path().join("job")).unwrap();
    fs::write(folder.path().join("job/digits.toml"), job).unwrap();
    fs::copy(example("digits/digits.csv"), folder.path().join("job/digits.csv")).unwrap();
    let (json, error, code) = simulate(&folder, &["--json"]);
    assert_eq!(code, Some(0), "{error}");
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let run = &report["cells"][0]["runs"][0];
    let scores = run["scores"].as_array().unwrap();
    assert_eq!(scores.len(), 6, "two trials, three epochs: {run}");
    assert!(run["departures"].as_u64() > Some(0), "{run}");
    // A tenth is what guessing gives.
    assert!(run["best"].as_f64() > Some(0.8), "{run}");
    let curve: Vec<f64> = scores
        .iter()
        .filter(|score| score["trial"] == 0)
        .map(|score| score["value"].as_f64().unwrap())
        .collect();
    assert!(curve.len() == 3 && curve[0] < curve[2], "{curve:?}");
    let (again, ..) = simulate(&folder, &["--json"]);
    assert_eq!(again, json, "the same bytes again");
    let (table, ..) = simulate(&folder, &[]);
    assert!(table.lines().next().unwrap().contains("best"), "{table}");
}

/// One trial on shards of few labels each, several at once: its results are really merged, the same each time.
#[test]
fn results_are_merged_where_a_job_asks_for_real_training() {
    let folder = Folder::with(&[(
        "s.toml",
        "[server]\npolicy = \"ltrp\"\nlease_term = 30\n\
         [[hosts]]\ncount = 4\ntflops = [1e-6, 2e-6]\npick = \"cycle\"\nlate = 0.2\n\
         preempted = { share = 0.2, back = \"5s\" }\n\
         [job]\nfile = \"job/digits.toml\"\ntrain = true\nskew = 0.3\nshards = 12\nepochs = 3\ncurve = 12\n\
         set.placement = { order = \"merge\", merge = \"delta\", reproducible = false }\n",
    )]);
    let job = "name = \"digits\"\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nscale = \"standard\"\ntest = 0.2\n\
               [[model]]\narch = \"mlp\"\nhidden = [32]\n\
               [training]\nepochs = 1\nbatch_size = 16\noptimizer = \"adam\"\n";
    fs::create_dir(folder.path().join("job")).unwrap();
    fs::write(folder.path().join("job/digits.toml"), job).unwrap();
    fs::copy(example("digits/digits.csv"), folder.path().join("job/digits.csv")).unwrap();
    let (json, error, code) = simulate(&folder, &["--json"]);
    assert_eq!(code, Some(0), "{error}");
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let run = &report["cells"][0]["runs"][0];
    assert!(run["merged"].as_u64() >= Some(36) && run["staleness"].as_f64() > Some(0.5), "{run}");
    let curve = run["curve"].as_array().unwrap();
    let value = |point: &serde_json::Value| point["value"].as_f64().unwrap();
    // A tenth is what guessing gives.
    assert!(value(&curve[2]) > 0.4 && value(&curve[2]) > value(&curve[0]), "{run}");
    let test = |point: &serde_json::Value| point["test"].as_f64().unwrap();
    assert!((test(&curve[2]) - value(&curve[2])).abs() < 0.2, "other rows, the same labels: {run}");
    assert!(curve.iter().any(|point| test(point) != value(point)), "{run}");
    let (again, ..) = simulate(&folder, &["--json"]);
    assert_eq!(again, json, "the same bytes again");
}

/// Where neither the scenario nor the job file says how many shards, they follow from the hosts.
#[test]
fn real_data_is_sharded_for_the_simulated_hosts() {
    let folder = Folder::with(&[(
        "s.toml",
        "[[hosts]]\ncount = 3\ntflops = 0.0000001\n\
         [job]\nfile = \"job/digits.toml\"\ntrain = true\nepochs = 1\n",
    )]);
    let job = "name = \"digits\"\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nscale = \"standard\"\n\
               [[model]]\narch = \"mlp\"\nhidden = { choice = [[4], [5], [6], [7]] }\n\
               [training]\nepochs = 3\nbatch_size = 32\n";
    fs::create_dir(folder.path().join("job")).unwrap();
    fs::write(folder.path().join("job/digits.toml"), job).unwrap();
    fs::copy(example("digits/digits.csv"), folder.path().join("job/digits.csv")).unwrap();
    let (json, error, code) = simulate(&folder, &["--json"]);
    assert_eq!(code, Some(0), "{error}");
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    // Two shards for each of three slots, four trials.
    assert_eq!(report["cells"][0]["runs"][0]["hops"], 6 * 4, "{report}");
}
