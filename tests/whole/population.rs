//! Population-based training in whole processes: with servers and clients that are killed, and replayed trial by trial.

use crate::site::{Process, Site};
use serde_json::{Value, json};
use std::fs;

const TRIALS: usize = 6;
const EPOCHS: usize = 4;

fn submit(site: &Site, search: &str) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    fs::copy(csv, site.path().join("digits.csv")).unwrap();
    let job = format!(
        "name = \"population\"\nseed = 5\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nshape = [1, 8, 8]\n\
         scale = \"standard\"\nvalid = 0.2\nshards = 2\n[[model]]\narch = \"mlp\"\nhidden = [16]\n\
         dropout = {{ uniform = [0.0, 0.5] }}\n[training]\nepochs = {EPOCHS}\nbatch_size = {{ choice = [32, 64] }}\n\
         optimizer = {{ name = \"adam\", lr = {{ log_uniform = [1e-5, 1e-1] }} }}\n\
         [search]\n{search}\nmetric = \"valid/loss\"\n\
         [placement]\nvisits = \"fixed\"\n"
    );
    fs::write(site.path().join("population.toml"), job).unwrap();
    site.json(&["submit", "population.toml", "--again"])["job"].to_string()
}

/// Trains the population to its end. With faults: a client and the server are killed after so many hops.
fn trained(kills: &[u64]) -> (Site, String, Value) {
    let mut site = Site::start_with_hops(2);
    let mut clients: Vec<Process> = ["a", "b"].map(|name| site.client(name)).into();
    let search = format!("method = {{ name = \"pbt\", quantile = 0.34 }}\ntrials = {TRIALS}");
    let job = submit(&site, &search);
    for hops in kills {
        site.wait(&job, |view| view["hops"].as_u64().unwrap() >= *hops);
        clients[0].kill();
        site.restart();
        clients[0] = site.client("a");
    }
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    // Whoever was replaced has trained the epochs that its clone didn't.
    let hops = TRIALS * EPOCHS * 2;
    assert_eq!((&view["hops"], &view["hops_expected"]), (&hops.into(), &hops.into()), "{view}");
    let trials = site.json(&["trials", &job]);
    drop(clients);
    (site, job, trials)
}

fn of_each<'a>(trials: &'a Value, of: impl Fn(&'a Value) -> String) -> Vec<String> {
    trials.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn a_population_is_the_same_whatever_is_killed_and_every_trial_is_its_replay() {
    let (_site, _, calm) = trained(&[]);
    let (site, job, faulty) = trained(&[7, 20, 33]);
    let class = |trials: &Value| of_each(trials, |trial| trial["numeric_class"].to_string());
    if class(&calm) == class(&faulty) {
        let whole = |trials: &Value| -> Vec<String> {
            of_each(trials, |trial| {
                let (name, best) = (&trial["name"], &trial["best"]);
                // All of the curve but when its values became known.
                let mut curve = trial["curve"].clone();
                for point in curve.as_array_mut().unwrap() {
                    point.as_object_mut().unwrap().remove("at");
                }
                let (checkpoint, stopped) = (&trial["checkpoint"], &trial["stopped"]);
                format!("{name} {curve} {best} {checkpoint} {stopped}")
            })
        };
        assert_eq!(whole(&calm), whole(&faulty));
    }
    // After each of three generations two are replaced.
    assert_eq!(faulty.as_array().unwrap().len(), TRIALS + 3 * 2);
    let mut versions = Vec::new();
    for trial in faulty.as_array().unwrap() {
        let replay = site.json(&["replay", &job, "--trial", &trial["trial"].to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
        versions.push((replay["versions"].as_u64().unwrap(), trial["version"].as_u64().unwrap()));
    }
    let (first, clones) = versions.split_at(TRIALS);
    assert!(first.iter().all(|(replayed, own)| replayed == own), "{versions:?}");
    assert!(clones.iter().all(|(replayed, own)| replayed > own), "the others' too: {versions:?}");
    let table = String::from_utf8(site.run(&["trials", &job]).stdout).unwrap();
    assert!(table.contains("place 6 of 6 after 1 epoch: trial 7 goes on from trial"), "{table}");
}

#[test]
fn a_clone_by_hand_is_replayed_from_the_trial_that_it_goes_on_from() {
    let site = Site::start();
    let mut client = site.client("a");
    let job = submit(&site, "method = \"random\"\ntrials = 1");
    site.wait(&job, |view| view["state"] == "finished");
    client.kill();
    let longer = (EPOCHS + 1).to_string();
    assert!(site.run(&["extend", &job, "--epochs", &longer]).status.success());
    let clone = json!({ "add": [{ "values": { "dropout": 0.25, "lr": 0.001 }, "from": 0 }] });
    assert_eq!(site.post(&format!("jobs/{job}/search"), &clone)["added"], json!([1]));
    let _client = site.client("b");
    site.wait(&job, |view| view["state"] == "finished");
    for (trial, versions) in site.trials(&job).as_array().unwrap().iter().zip([10, 8 + 2]) {
        let replay = site.json(&["replay", &job, "--trial", &trial["trial"].to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
        assert_eq!(replay["versions"], versions, "{replay}");
    }
}
