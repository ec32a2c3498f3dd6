//! `kill -9` of clients, trainers and the server at random instants, and clients that are told to go: every trial's final checkpoint
//! must be its replay's.

use crate::site::{Process, Site};
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
    let mut chance = seeds::stream("chaos", &[seed]);
    let mut site = Site::start_with_hops(most_hops);
    let name = |n: u32| format!("client-{n}");
    let mut clients: Vec<Process> = (0..CLIENTS).map(|n| site.client(&name(n))).collect();
    let job = site.submit(seed, EPOCHS);
    let hops = u64::from(4 * EPOCHS * 3);
    let mut trainers_killed = 0;
    for kill in 1..=KILLS {
        // The instants are random in the job's own time: after so many hops.
        let after = hops * u64::from(kill) / u64::from(KILLS + 2);
        let after = after + u64::from(seeds::below(&mut chance, 4));
        let view = site.wait(&job, |view| view["hops"].as_u64().unwrap() >= after);
        assert_eq!(view["trials_failed"], 0, "seed {seed}: {}", site.json(&["trials", &job]));
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
    let view = site.wait(&job, |view| view["state"] != "running");
    let server = site.log("server");
    assert_eq!(view["state"], "finished", "seed {seed}: {view}\n{server}");
    assert_eq!(view["hops"].as_u64(), Some(hops), "seed {seed}: {view}");
    assert_eq!(view["hops_expected"].as_u64(), Some(hops));
    assert_eq!(view["evaluations"].as_u64(), Some(u64::from(4 * EPOCHS)));
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
