//! How fast fleets are simulated: 1,000 hosts x 256 trials x 64 shards x 10 epochs, 163,840 hops.
//!
//! Prints one JSON line. The anchor is encoding one record of a small event for each command, measured in
//! the same run.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use sojourn_sim::fleet::{self, Ask, RunResult, Watch};
use std::time::Instant;

const SCENARIO: &str = "[[hosts]]\ncount = 1000\ntflops = [12.1, 5.6, 11.3, 18.7]\n\
                        [job]\ntrials = 256\nshards = 64\nepochs = 10\n";

struct Clock(Instant);

impl Watch for Clock {
    fn clock(&mut self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }
}

fn main() {
    // Another scenario by hand: SOJOURN_SIM_SCENARIO=file cargo bench -p sojourn-sim --bench fleet
    let given = std::env::var("SOJOURN_SIM_SCENARIO").ok();
    let text = given.as_ref().map(|path| std::fs::read_to_string(path).unwrap());
    let study = fleet::read(text.as_deref().unwrap_or(SCENARIO)).unwrap();
    for row in &study.rows {
        for policy in &row.scenario.server.policy.0 {
            for seed in 0..u64::from(row.scenario.seeds) {
                let begun = Instant::now();
                let seed = row.scenario.seed + seed;
                let mut files =
                    |name: &str| std::fs::read_to_string(name).map_err(|error| error.to_string());
                let mut clock = Clock(begun);
                let run =
                    fleet::run(&row.scenario, *policy, seed, Ask::Result, &mut files, &mut clock);
                let run = run.unwrap();
                let took = begun.elapsed().as_secs_f64();
                if given.is_some() {
                    eprintln!("{} {policy:?} {seed}: {took:.2} s, {run:?}", row.label);
                    continue;
                }
                line(&run, took);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn line(run: &RunResult, took: f64) {
    let (value, anchor) = (run.hops as f64 / took, anchor());
    println!(
        "{{\"name\":\"simulated hops, 1000 hosts\",\"value\":{value:.0},\"unit\":\"1/s\",\
         \"anchor\":{anchor:.0},\"ratio\":{:.4}}}",
        value / anchor
    );
}

/// Encodings of a small record per second.
fn anchor() -> f64 {
    let record = serde_json::json!({"position": 1, "at": 1, "event": {"lease-ended": {"lease": 1, "end": "silent"}}});
    let begun = Instant::now();
    let mut bytes = 0;
    for _ in 0..1_000_000 {
        bytes += serde_json::to_vec(std::hint::black_box(&record)).unwrap().len();
    }
    std::hint::black_box(bytes);
    1e6 / begun.elapsed().as_secs_f64()
}
