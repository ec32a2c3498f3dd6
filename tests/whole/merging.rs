//! A trial whose results are merged, on machines that are killed: what came of it is what its replay makes, and what
//! the journal says of it.

use crate::site::{Process, Site};

const PLACEMENT: &str = r#"
order = "merge"
merge = { rule = "delayed-nesterov", momentum = 0.5, canary = 10.0 }
"#;

#[test]
fn merged_trials_replay_through_kills() {
    let mut site = Site::start();
    let name = |n: usize| format!("client-{n}");
    let mut clients: Vec<Process> = (0..3).map(|n| site.client(&name(n))).collect();
    let job = site.submit_with(5, 8, "[1e-2]", PLACEMENT);
    for (after, victim) in [(4, 0), (9, 1), (15, 2)] {
        site.wait(&job, |view| view["hops"].as_u64().unwrap() >= after);
        clients[victim].kill();
        clients[victim] = site.client(&name(victim));
        if after == 9 {
            site.restart();
        }
    }
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    for trial in site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let said = site.run(&["replay", &job, "--trial", &number, "--json"]);
        let replay: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
    let events = site.run(&["events", &job, "--json"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    let merged = events.lines().filter(|line| line.contains("\"staleness\"")).count();
    assert!(merged >= 24, "{merged} results were merged:\n{events}");
}
