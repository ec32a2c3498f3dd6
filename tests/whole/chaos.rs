//! `kill -9` of clients, trainers and the server at random instants, and clients that are told to go: every trial's final checkpoint
//! must be its replay's.

use crate::site::{Process, Site};
use serde_json::Value;
use sojourn_protocol::seeds;

const CLIENTS: u32 = 3;
const EPOCHS: u32 = 12;
const KILLS: u32 = 10;

/// Seeds of the test runs; a failure names its own. Each has leases of one more hop than the one before.
#[test]
fn processes_killed_at_random_train_what_one_machine_trains() {
    for (seed, most_hops) in [(1, 1), (2, 2), (3, 3)] {
        println!("chaos with seed {seed}");
        chaos(seed, most_hops);
    }
}

fn chaos(seed: u64, most_hops: u32) {
    let mut site = Site::start_with_hops(most_hops);
    let mut clients: Vec<Process> = (0..CLIENTS).map(|n| site.client(&name(n))).collect();
    let job = site.submit(seed, EPOCHS);
    kill_at_random(&mut site, &mut clients, &job, seed, EPOCHS);
    for trial in site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "seed {seed}, trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"], "seed {seed}");
    }
    for client in &mut clients {
        assert_eq!(client.end(), Some(0), "a client ends well when it is told to");
    }
    assert_eq!(site.server.end(), Some(0), "and so does the server");
}

fn name(n: u32) -> String {
    format!("client-{n}")
}

/// Kills the server, clients and trainers, and tells clients to go, until a job has finished.
fn kill_at_random(site: &mut Site, clients: &mut [Process], job: &str, seed: u64, epochs: u32) {
    let mut chance = seeds::stream("chaos", &[seed]);
    let hops = u64::from(4 * epochs * 3);
    let mut trainers_killed = 0;
    for kill in 1..=KILLS {
        // The instants are random in the job's own time: after so many hops.
        let after = hops * u64::from(kill) / u64::from(KILLS + 2);
        let after = after + u64::from(seeds::below(&mut chance, 4));
        let view = site.wait(job, |view| view["hops"].as_u64().unwrap() >= after);
        assert_eq!(view["trials_failed"], 0, "seed {seed}: {}", site.json(&["trials", job]));
        let victim = seeds::below(&mut chance, CLIENTS);
        let client = &mut clients[usize::try_from(victim).unwrap()];
        match seeds::below(&mut chance, 4) {
            0 => site.restart(),
            1 => {
                client.kill();
                *client = site.client(&name(victim));
            }
            2 => {
                assert_eq!(client.end(), Some(0), "seed {seed}");
                *client = site.client(&name(victim));
            }
            _ => trainers_killed += client.kill_children(),
        }
    }
    println!("seed {seed}: {trainers_killed} trainers among the killed");
    let view = site.wait(job, |view| view["state"] != "running");
    let server = site.log("server");
    assert_eq!(view["state"], "finished", "seed {seed}: {view}\n{server}");
    assert_eq!(view["hops"].as_u64(), Some(hops), "seed {seed}: {view}");
    assert_eq!(view["hops_expected"].as_u64(), Some(hops));
    assert_eq!(view["evaluations"].as_u64(), Some(u64::from(4 * epochs)));
}

/// The outcome of a trial.
#[derive(Debug, PartialEq)]
struct Model {
    /// The numeric class that it was trained in: the speeds of the machines decide which.
    class: Value,
    /// The digest of its last checkpoint.
    sha256: String,
    /// The board: each epoch's metrics.
    metrics: String,
}

fn models(site: &Site, job: &str) -> Vec<Model> {
    let trials = site.json(&["trials", job]);
    let model = |trial: &Value| {
        let points = trial["curve"].as_array().unwrap().iter();
        let metrics = points
            .map(|point| format!("{} {} {}\n", point["epoch"], point["train"], point["valid"]));
        Model {
            class: trial["numeric_class"].clone(),
            sha256: trial["checkpoint"]["sha256"].as_str().unwrap().to_owned(),
            metrics: metrics.collect(),
        }
    };
    trials.as_array().unwrap().iter().map(model).collect()
}

/// The job file, the data and the seed decide the models: on three machines of which processes are killed at random, on one
/// that trains up to three hops at a time, and without a server.
#[test]
fn fixed_visits_give_the_same_models_on_any_machines() {
    const FIXED: &str = "visits = \"fixed\"";
    let (seed, epochs) = (4, 6);
    let submit = |site: &Site| site.submit_with(seed, epochs, "[1e-3, 3e-3]", FIXED);
    let mut killed = Site::start_with_hops(2);
    let mut clients: Vec<Process> = (0..CLIENTS).map(|n| killed.client(&name(n))).collect();
    let job = submit(&killed);
    kill_at_random(&mut killed, &mut clients, &job, seed, epochs);
    let expected = models(&killed, &job);
    assert_eq!(expected.len(), 4);

    let quiet = Site::start_with_hops(3);
    let _client = quiet.client("alone");
    let job = submit(&quiet);
    quiet.wait(&job, |view| view["state"] != "running");
    let found = models(&quiet, &job);
    assert_eq!(found.len(), 4);
    for (trial, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if found.class == expected.class {
            assert_eq!(found, expected, "one machine, no kills");
        } else {
            let trained = quiet.train_alone(trial, &found.class);
            assert_eq!(trained["sha256"].as_str(), Some(found.sha256.as_str()), "trial {trial}");
        }
        let trained = quiet.train_alone(trial, &expected.class);
        assert_eq!(trained["sha256"].as_str(), Some(expected.sha256.as_str()), "trial {trial}");
        assert_eq!(trained["epochs"].as_array().unwrap().len(), 6);
    }
}
