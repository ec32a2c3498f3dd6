//! Every scenario below `examples/` is run to its end, at a small size: all its rows, or a share of them where they are many.
//! Files are found by walking, so a new one is tried by itself.
//!
//! Nothing is really trained here: `tests/pages/examples.rs` has the programs do that.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "the examples are files")]

use sojourn_sim::fleet::{
    self, Ask, Policy, Row,
    scenario::{JobEntry, Skew},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The most hosts of a group, and trials of a job.
const MOST_HOSTS: u32 = 16;
const MOST_TRIALS: u32 = 4;
/// Epochs, where rules of early stopping have to have something to decide, and elsewhere.
const SEARCHED_EPOCHS: u32 = 9;
const EPOCHS: u32 = 1;
/// The most rows of a file: of more rows every second is run, or every third, and so on.
const MOST_ROWS: usize = 32;
/// The most combinations of a search by chance.
const MOST_COMBINATIONS: i64 = 18;

/// Files below a folder that end in `.toml`.
fn toml_files(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether a file is a scenario: it has hosts, and no market on which a fleet is bought.
fn is_scenario(text: &str) -> bool {
    let table: toml::Table = toml::from_str(text).unwrap();
    table.contains_key("hosts") && !table.contains_key("market")
}

/// Makes a row small: few hosts, few trials and few epochs, and nothing to train.
fn small(row: &mut Row) {
    let scenario = &mut row.scenario;
    scenario.load = false;
    for group in &mut scenario.hosts {
        group.count = group.count.min(MOST_HOSTS);
    }
    scenario.job.iter_mut().chain(&mut scenario.jobs).for_each(small_job);
}

fn small_job(job: &mut JobEntry) {
    let epochs = if job.surrogate.is_some() { SEARCHED_EPOCHS } else { EPOCHS };
    job.trials = job.trials.map(|trials| trials.min(MOST_TRIALS));
    job.epochs = Some(epochs);
    let search = job.set.get_mut("search").and_then(toml::Value::as_table_mut);
    if let Some(trials) = search.and_then(|search| search.get_mut("trials")) {
        *trials = trials.as_integer().unwrap().min(MOST_COMBINATIONS).into();
    }
    if job.train {
        (job.train, job.curve, job.skew) = (false, None, Skew::None);
        job.shape = job.shape.take().or(Some(vec![1, 8, 8]));
    }
}

#[test]
fn every_scenario_of_the_examples_runs_to_its_end() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut count, mut failed) = (0, Vec::new());
    for path in toml_files(examples.canonicalize().unwrap()) {
        let text = fs::read_to_string(&path).unwrap();
        if !is_scenario(&text) {
            continue;
        }
        count += 1;
        let folder = path.parent().unwrap();
        let mut files = |name: &str| {
            fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"))
        };
        let study = fleet::read(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let step = study.rows.len().div_ceil(MOST_ROWS);
        for (n, mut row) in study.rows.into_iter().step_by(step).enumerate() {
            small(&mut row);
            // One policy for each row, and another one for the next.
            let policies = &row.scenario.server.policy.0;
            let built: Vec<&Policy> = policies.iter().filter(|policy| policy.is_built()).collect();
            let policy = built.get(n % built.len().max(1)).copied().copied().unwrap_or_default();
            let seed = row.scenario.seed;
            let run = fleet::run(&row.scenario, policy, seed, Ask::Result, &mut files, &mut ());
            match run {
                Ok(run) => assert!(run.makespan > 0.0, "{path:?}, {}", row.label),
                Err(error) => failed.push(format!("{path:?}, {}: {error}", row.label)),
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count >= 20, "only {count} scenarios were found");
}
