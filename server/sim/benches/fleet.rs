//! How fast fleets are simulated, how fast the core decides, and how near to their bound schedules end.
//!
//! - 1,000 hosts x 256 trials x 64 shards x 10 epochs, 163,840 hops: simulated hops a second under the default
//!   policy, and leases granted in each second of the core under each. The anchor is encoding one record of a
//!   small event for each, measured in the same run.
//! - `examples/scheduling/2-order.toml`: makespan over the lower bound under each policy, with fewer seeds. The
//!   anchor is that of `randomized`. Real time has no part in these.
//! - `examples/scheduling/10-visits.toml`: makespan with fixed visits, with fewer seeds. The anchor is that with free ones.
//!
//! Prints JSON lines.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_sim::fleet::{self, Ask, Policy, Row, RunResult, Spread, Watch};
use std::{path::Path, time::Instant};

const SCENARIO: &str = "[server]\npolicy = [\"randomized\", \"ltrp\", \"rollout\"]\n\
                        [[hosts]]\ncount = 1000\ntflops = [12.1, 5.6, 11.3, 18.7]\n\
                        [job]\ntrials = 256\nshards = 64\nepochs = 10\n";
const SMALLEST: &str = "[server]\npolicy = [\"ltrp\", \"rollout\"]\n\
                        [[hosts]]\ncount = 4\ntflops = [12.1, 5.6]\n\
                        [job]\ntrials = 4\nshards = 4\nepochs = 1\n";
const VISITS: &str = "../../examples/scheduling/10-visits.toml";
const ORDER: &str = "../../examples/scheduling/2-order.toml";

struct Clock(Instant);

impl Watch for Clock {
    fn clock(&mut self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }
}

fn main() {
    // Another scenario by hand: SOJOURN_SIM_SCENARIO=file cargo bench -p sojourn-sim --bench fleet
    if let Ok(path) = std::env::var("SOJOURN_SIM_SCENARIO") {
        by_hand(Path::new(&path));
        return;
    }
    let study = fleet::read(size::of(SCENARIO, SMALLEST)).unwrap();
    let row = study.rows.first().unwrap();
    for policy in &row.scenario.server.policy.0 {
        let (run, took) = run(row, *policy, 0, Path::new("."));
        let anchor = anchor();
        if *policy == Policy::default() {
            line("simulated hops, 1000 hosts", float(run.hops) / took, "1/s", anchor);
        }
        let decided = float(run.granted) / (float(run.in_core) / 1e9);
        line(&format!("decisions, 1000 hosts, {policy}"), decided, "1/s", anchor);
    }
    makespans();
    visits();
}

/// A run of one seed, and the seconds that it took.
fn run(row: &Row, policy: Policy, seed: u64, folder: &Path) -> (RunResult, f64) {
    let mut files =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let begun = Instant::now();
    let ask = Ask::Result;
    let run = fleet::run(&row.scenario, policy, seed, ask, &mut files, &mut Clock(begun)).unwrap();
    (run, begun.elapsed().as_secs_f64())
}

fn makespans() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(ORDER);
    let study = fleet::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for row in study.rows.iter().take(size::of(usize::MAX, 1)) {
        let ratio = |policy: Policy| {
            // Of the twenty of the example, for a bench that ends soon.
            let ratios = (0..size::of(3, 1))
                .map(|seed| run(row, policy, seed, path.parent().unwrap()).0.ratio);
            Spread::of(ratios).mean
        };
        let anchor = ratio(Policy::Randomized);
        for policy in &row.scenario.server.policy.0 {
            let value = if *policy == Policy::Randomized { anchor } else { ratio(*policy) };
            let name = format!("makespan over bound, {}, {policy}", row.label);
            println!(
                "{}",
                serde_json::json!({
                    "name": name, "value": digits(value), "unit": "bounds", "anchor": digits(anchor),
                    "ratio": digits(value / anchor),
                })
            );
        }
    }
}

/// Rows come in pairs: with free visits, and with fixed ones.
fn visits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(VISITS);
    let study = fleet::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for pair in study.rows.chunks(2).take(size::of(usize::MAX, 1)) {
        let [free, fixed] = pair else { panic!("an odd row: {pair:?}") };
        let seeds = u64::from(free.scenario.seeds).min(size::of(3, 1));
        let makespan = |row: &Row| {
            let run = |seed| run(row, Policy::default(), seed, path.parent().unwrap()).0;
            Spread::of((0..seeds).map(run).map(|run| run.makespan)).mean
        };
        let (free_takes, takes) = (makespan(free), makespan(fixed));
        let label = fixed.label.trim_end_matches(", visits fixed");
        println!(
            "{}",
            serde_json::json!({
                "name": format!("makespan with fixed visits, {label}"), "value": digits(takes), "unit": "s",
                "anchor": digits(free_takes), "ratio": digits(takes / free_takes),
            })
        );
    }
}

fn by_hand(path: &Path) {
    let study = fleet::read(&std::fs::read_to_string(path).unwrap()).unwrap();
    for row in &study.rows {
        for policy in &row.scenario.server.policy.0 {
            for seed in 0..u64::from(row.scenario.seeds) {
                let seed = row.scenario.seed + seed;
                let (run, took) = run(row, *policy, seed, Path::new("."));
                eprintln!("{} {policy} {seed}: {took:.2} s, {run:?}", row.label);
            }
        }
    }
}

fn line(name: &str, value: f64, unit: &str, anchor: f64) {
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.0},\"unit\":\"{unit}\",\"anchor\":{anchor:.0},\
         \"ratio\":{:.4}}}",
        value / anchor
    );
}

fn digits(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Encodings of a small record per second.
fn anchor() -> f64 {
    let record = serde_json::json!({"position": 1, "at": 1, "event": {"lease-ended": {"lease": 1, "end": "silent"}}});
    let begun = Instant::now();
    let mut bytes = 0;
    let count: u64 = size::of(1_000_000, 100);
    for _ in 0..count {
        bytes += serde_json::to_vec(std::hint::black_box(&record)).unwrap().len();
    }
    std::hint::black_box(bytes);
    float(count) / begun.elapsed().as_secs_f64()
}
