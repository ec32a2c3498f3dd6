//! Searches that stop trials early, in whole processes: with servers and clients that are killed, and replayed.

use crate::site::{Process, Site};
use serde_json::Value;
use std::fs;

/// A search whose learning rates differ so much that some trials hardly learn.
fn submit(site: &Site, stopping: &str) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = format!(
        "name = \"early\"\nseed = 5\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
         scale = \"standard\"\nvalid = 0.2\nshards = 2\n[[model]]\narch = \"mlp\"\nhidden = [32]\n\
         [training]\nepochs = 9\nbatch_size = 32\n\
         optimizer = {{ name = \"adam\", lr = {{ log_uniform = [1e-5, 1e-1] }} }}\n\
         [search]\nmethod = \"random\"\ntrials = 9\nmetric = \"valid/loss\"\nstopping = {stopping}\n\
         [placement]\nvisits = \"fixed\"\n"
    );
    fs::write(site.path().join("early.toml"), job).unwrap();
    site.json(&["submit", "early.toml", "--again"])["job"].to_string()
}

/// Runs the search to its end. With faults: a client and the server are killed after so many hops.
fn searched(stopping: &str, kills: &[u64]) -> (Site, String, Value) {
    let mut site = Site::start_with_hops(2);
    let mut clients: Vec<Process> = ["a", "b"].map(|name| site.client(name)).into();
    let job = submit(&site, stopping);
    for hops in kills {
        site.wait(&job, |view| view["hops"].as_u64().unwrap() >= *hops);
        clients[0].kill();
        site.restart();
        clients[0] = site.client("a");
    }
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    assert_eq!((&view["trials_finished"], &view["trials_failed"]), (&9.into(), &0.into()));
    assert_eq!(view["hops"], view["hops_expected"], "{view}");
    let trials = site.json(&["trials", &job]);
    drop(clients);
    (site, job, trials)
}

/// Epochs that each trial was evaluated after.
fn lengths(trials: &Value) -> Vec<usize> {
    let curve = |trial: &Value| trial["curve"].as_array().unwrap().len();
    trials.as_array().unwrap().iter().map(curve).collect()
}

fn replays(site: &Site, job: &str, trials: &Value) {
    for trial in trials.as_array().unwrap() {
        let replay = site.json(&["replay", job, "--trial", &trial["trial"].to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
}

#[test]
fn whole_rungs_stop_the_same_trials_whatever_is_killed() {
    let (_site, _, calm) = searched("\"sha\"", &[]);
    let (site, job, faulty) = searched("\"sha\"", &[5, 14, 25]);
    let mut sorted = lengths(&calm);
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 1, 1, 1, 1, 1, 3, 3, 9]);
    assert_eq!(lengths(&faulty), lengths(&calm));
    // A trial may be in another numeric class than before: how fast a machine finds each of its own decides.
    for (one, other) in calm.as_array().unwrap().iter().zip(faulty.as_array().unwrap()) {
        if one["numeric_class"] == other["numeric_class"] {
            assert_eq!(one["checkpoint"]["sha256"], other["checkpoint"]["sha256"], "{one} {other}");
        }
    }
    replays(&site, &job, &faulty);
    let table = String::from_utf8(site.run(&["trials", &job]).stdout).unwrap();
    assert!(table.contains("after 1 epoch: the best 3 go on"), "{table}");
    let events = String::from_utf8(site.run(&["events", &job, "--why"]).stdout).unwrap();
    assert!(events.contains("goes on up to 3 epochs: place 1 of 9 after 1 epoch"), "{events}");
    assert!(events.contains("was stopped by the search: place 9 of 9"), "{events}");
}

#[test]
fn asha_ends_with_kills_and_every_trial_is_its_replay() {
    let (site, job, trials) = searched("{ rule = \"asha\", min_epochs = 1 }", &[4, 12]);
    let lengths = lengths(&trials);
    assert!(lengths.iter().all(|length| [1, 3, 9].contains(length)), "{lengths:?}");
    assert!(lengths.contains(&9) && lengths.contains(&1), "{lengths:?}");
    replays(&site, &job, &trials);
}
