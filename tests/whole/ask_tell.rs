//! Searches that a program drives: the examples in `examples/search/`, with a server and a client that are killed in the middle.

use crate::site::{Process, Site, program, spawn};
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// `scripts/setup-tests` makes it, with optuna.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/search");

/// Puts the job file of an example into the site, with so many epochs.
fn put(site: &Site, file: &str, epochs: u32) {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let text = fs::read_to_string(Path::new(EXAMPLES).join(file)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (key, line) in
        [("train", "train = \"digits.csv\"".to_owned()), ("epochs", format!("epochs = {epochs}"))]
    {
        let found: Vec<&mut String> =
            lines.iter_mut().filter(|line| line.starts_with(&format!("{key} = "))).collect();
        assert_eq!(found.len(), 1, "{file} has one `{key}`");
        for known in found {
            known.clone_from(&line);
        }
    }
    fs::write(site.path().join(file), lines.join("\n")).unwrap();
}

/// Starts an example (again).
fn start(site: &Site, script: &str, arguments: &[&str]) -> Process {
    assert!(Path::new(PYTHON).is_file(), "`make test` makes the Python environment");
    let mut command = Command::new(PYTHON);
    command
        .arg("-B")
        .arg(Path::new(EXAMPLES).join(script))
        .args(arguments)
        .env("SOJOURN", program())
        .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/python"))
        .env("SOJOURN_SERVER", &site.url)
        .env("SOJOURN_TOKEN_FILE", site.data().join("admin-token"))
        .env("XDG_CACHE_HOME", site.path().join("cache"))
        .current_dir(site.path());
    spawn(command, &site.path().join("program.log"))
}

/// The number of the only job, once it is there.
fn job(site: &Site, driver: &mut Process) -> String {
    let jobs = crate::http::poll(|| {
        assert!(driver.is_running(), "{}", site.log("program"));
        let jobs = site.get("jobs");
        (jobs.as_array()?.len() == 1).then_some(jobs)
    });
    jobs.unwrap_or_else(|| panic!("nothing was submitted:\n{}", site.log("program")))[0]["job"]
        .to_string()
}

/// Runs an example to its end. With faults: a client and the server are killed after so many hops, and then the program.
fn searched(script: &str, arguments: &[&str], epochs: u32, kills: &[u64]) -> (Site, String, Value) {
    let mut site = Site::start_with_hops(2);
    let mut clients: Vec<Process> = ["a", "b"].map(|name| site.client(name)).into();
    put(&site, arguments[0], epochs);
    let mut driver = start(&site, script, arguments);
    let job = job(&site, &mut driver);
    for hops in kills {
        let enough = |view: &Value| view["hops"].as_u64().unwrap() >= *hops;
        let view = site.wait(&job, |view| enough(view) || view["state"] != "running");
        assert_eq!(view["state"], "running", "{view}\n{}", site.log("program"));
        clients[0].kill();
        site.restart();
        clients[0] = site.client("a");
        // The program has lived through that, and is then killed as well.
        site.wait(&job, |view| view["hops"].as_u64().unwrap() > *hops);
        assert!(driver.is_running(), "{}", site.log("program"));
        driver.kill();
        driver = start(&site, script, arguments);
    }
    assert_eq!(driver.wait(), Some(0), "{}\n{}", site.log("program"), site.log("server"));
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["trials_failed"]), (&"finished".into(), &0.into()), "{view}");
    drop(clients);
    let trials = site.json(&["trials", &job]);
    (site, job, trials)
}

/// All that a journal says of added trials: one for each trial that there is.
fn added(site: &Site, job: &str) -> u64 {
    let events = String::from_utf8(site.run(&["events", job, "--json"]).stdout).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let added = events.filter(|event| event["kind"] == "trials-added");
    added
        .map(|event| u64::try_from(event["event"]["trials"].as_array().unwrap().len()).unwrap())
        .sum()
}

fn is_its_replay(site: &Site, job: &str, trial: &Value) {
    let replay = site.json(&["replay", job, "--trial", &trial["trial"].to_string()]);
    assert_eq!(replay["verdict"], "identical", "{replay}");
    assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
}

#[test]
fn optuna_drives_a_search_whatever_is_killed() {
    let arguments = ["ask_tell.toml", "--trials", "8"];
    let (site, job, trials) = searched("optuna_search.py", &arguments, 4, &[4, 16]);
    let trials = trials.as_array().unwrap();
    assert_eq!((trials.len(), added(&site, &job)), (8, 8), "no trial is added twice");
    let search = site.get(&format!("jobs/{job}/search"));
    assert_eq!((&search["suggested"], &search["open"]), (&8.into(), &false.into()), "{search}");
    let found = search["trials"].as_array().unwrap();
    let chosen: BTreeSet<String> = found.iter().map(|trial| trial["choices"].to_string()).collect();
    assert_eq!(chosen.len(), 8, "{search}");
    let best = site.job(&job)["best"].clone();
    let said = site.log("program");
    assert!(said.contains("\n8 trials, "), "{said}");
    assert!(said.contains(&format!("best: {:.4} with", best["value"].as_f64().unwrap())), "{said}");
    let trained = trials.iter().max_by_key(|trial| trial["curve"].as_array().unwrap().len());
    is_its_replay(&site, &job, trained.unwrap());
    let why = String::from_utf8(site.run(&["events", &job, "--why"]).stdout).unwrap();
    // One at a time, or as many at once as there is room for.
    let sentence = format!(" added to job {job} with the server's own token: suggested by Optuna");
    assert!(why.contains(&sentence), "{why}");
    let ended = format!("the search of job {job} was ended with the server's own token");
    assert!(why.contains(&ended), "{why}");
}

#[test]
fn optuna_drives_a_search_in_twenty_lines() {
    let (site, job, trials) = searched("optuna_short.py", &["ask_tell.toml", "6"], 2, &[]);
    assert_eq!((trials.as_array().unwrap().len(), added(&site, &job)), (6, 6));
    let best = site.job(&job)["best"]["value"].as_f64().unwrap();
    let said = site.log("program");
    assert!(said.contains(&format!("best: {best:.4} with {{'hidden': ")), "{said}");
}

#[test]
fn sets_of_each_epoch_are_the_same_whatever_is_killed() {
    let run = |kills: &[u64]| searched("epoch_sets.py", &["epochs.toml"], 3, kills);
    let (_site, _, calm) = run(&[]);
    let (site, job, faulty) = run(&[5, 16]);
    let (calm, faulty) = (calm.as_array().unwrap(), faulty.as_array().unwrap());
    // Eight begin; after each epoch but the last four go on, and four are clones.
    assert_eq!((faulty.len(), added(&site, &job)), (16, 16), "no trial is added twice");
    let lengths = |trials: &[Value]| -> Vec<usize> {
        trials.iter().map(|trial| trial["curve"].as_array().unwrap().len()).collect()
    };
    let mut sorted = lengths(faulty);
    sorted.sort_unstable();
    assert_eq!(sorted[sorted.len() - 8..], [3; 8], "the last set has trained all epochs");
    // A machine may offer several classes, and each trial is of the one that is faster when it begins.
    let classes = |trials: &[Value]| {
        trials.iter().map(|trial| trial["numeric_class"].clone()).collect::<Vec<_>>()
    };
    if classes(calm) == classes(faulty) {
        let checkpoints = |trials: &[Value]| -> Vec<Value> {
            trials.iter().map(|trial| trial["checkpoint"]["sha256"].clone()).collect()
        };
        assert_eq!(lengths(faulty), lengths(calm));
        assert_eq!(checkpoints(faulty), checkpoints(calm));
    }
    // The last is a clone: its replay begins with the trial that it goes on from.
    is_its_replay(&site, &job, &faulty[15]);
    let why = String::from_utf8(site.run(&["events", &job, "--why"]).stdout).unwrap();
    assert!(why.contains("goes on from trial"), "{why}");
    let said = site.log("program");
    assert!(said.contains("16 trials; best: "), "{said}");
}
