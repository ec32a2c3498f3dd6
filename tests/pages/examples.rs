//! Every file below `examples/` is tried, at a small size: files are found by walking, so a new one is tried by itself.
//!
//! | kind | is |
//! |---|---|
//! | job file | read; validated with its data where that is in the repository and the model needs no Python |
//! | scenario that trains | run, its first row and for one epoch, where its data is in the repository |
//! | scenario | read here; `server/sim/tests/examples.rs` runs each row |
//! | simulation of a spot fleet | run, with a small job |
//! | configuration of the autoscaler | read |
//! | script | compiled; `results` runs those that write pages |

use crate::page::{ROOT, files, is};
use sojourn_autoscaler::config::Config;
use sojourn_protocol::jobfile;
use sojourn_sim::fleet;
use sojourn_studies::spot;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use toml_edit::{DocumentMut, Item, value};

/// The data that comes with the repository.
const DATA: &str = "digits.csv";

/// The kinds of examples in TOML.
#[derive(Debug, PartialEq)]
enum Kind {
    Job,
    Scenario,
    SpotFleet,
    Autoscaler,
}

/// The files, each with its kind. A file of no known kind ends the test.
fn all() -> Vec<(PathBuf, String, Kind)> {
    // The package of the studies is no example: it has tests of its own.
    let is_example = |path: &Path| is(path, "toml") && !path.starts_with("examples/studies");
    let paths = files("examples", &is_example);
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(Path::new(ROOT).join(&path)).unwrap();
            let table: toml::Table = toml::from_str(&text).unwrap();
            let has = |key: &str| table.contains_key(key);
            let kind = match () {
                () if has("model") && has("training") => Kind::Job,
                () if has("market") && has("types") => Kind::SpotFleet,
                () if has("hosts") || has("drawn") => Kind::Scenario,
                () if has("fleet") && has("limits") => Kind::Autoscaler,
                () => panic!("{}: no known kind of example: teach this test", path.display()),
            };
            (path, text, kind)
        })
        .collect()
}

fn of_kind(kind: &Kind) -> Vec<(PathBuf, String)> {
    let all = all().into_iter().filter(|(.., of)| of == kind);
    let found: Vec<_> = all.map(|(path, text, _)| (path, text)).collect();
    assert!(!found.is_empty(), "no {kind:?}");
    found
}

/// Runs the program in a folder.
fn sojourn(folder: &Path, args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_sojourn"))
        .args(args)
        .current_dir(folder)
        .env_remove("SOJOURN_SERVER")
        .env("SOJOURN_GPUS", "none")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {args:?}: {said}", folder.display());
}

#[test]
fn every_job_file_is_read_and_validated_where_its_data_is_here() {
    let mut validated = 0;
    for (path, text) in of_kind(&Kind::Job) {
        jobfile::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let needs_python = text.contains("arch = \"graph\"");
        if !needs_python && text.contains(DATA) {
            validated += 1;
            sojourn(Path::new(ROOT), &["validate", path.to_str().unwrap()]);
        }
    }
    assert!(validated >= 6, "only {validated} were validated");
}

#[test]
fn every_scenario_is_read() {
    for (path, text) in of_kind(&Kind::Scenario) {
        let study =
            fleet::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!study.rows.is_empty(), "{}", path.display());
    }
}

/// A scenario with its first case alone, the first of each value that varies, one seed and one epoch. None where it doesn't
/// train on data of the repository.
fn small(text: &str, folder: &Path) -> Option<String> {
    let mut scenario: DocumentMut = text.parse().unwrap();
    let job = scenario.get_mut("job")?.as_table_like_mut()?;
    let file = folder.join(job.get("file")?.as_str()?).canonicalize().unwrap();
    let trains = job.get("train").and_then(Item::as_bool).unwrap_or(false);
    if !trains || !fs::read_to_string(&file).unwrap().contains(DATA) {
        return None;
    }
    job.insert("file", value(file.to_str().unwrap()));
    job.insert("epochs", value(1_i64));
    if job.contains_key("curve") {
        job.insert("curve", value(20_i64));
    }
    scenario["seeds"] = value(1_i64);
    if let Some(cases) = scenario.get_mut("case").and_then(Item::as_array_of_tables_mut) {
        while cases.len() > 1 {
            cases.remove(1);
        }
    }
    if let Some(varied) = scenario.get_mut("vary") {
        first_of_each(varied);
    }
    Some(scenario.to_string())
}

/// Cuts lists to their first value, also those of tables in tables.
fn first_of_each(item: &mut Item) {
    if let Some(values) = item.as_array_mut() {
        while values.len() > 1 {
            values.remove(1);
        }
    } else if let Some(table) = item.as_table_like_mut() {
        table.iter_mut().for_each(|(_, item)| first_of_each(item));
    }
}

#[test]
fn every_scenario_that_trains_on_our_data_is_run() {
    let mut run = 0;
    for (path, text) in of_kind(&Kind::Scenario) {
        let folder = Path::new(ROOT).join(path.parent().unwrap());
        let Some(text) = small(&text, &folder) else { continue };
        run += 1;
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("small.toml"), text).unwrap();
        sojourn(here.path(), &["simulate", "small.toml", "--out", "out"]);
        assert!(here.path().join("out/result.json").exists(), "{}", path.display());
    }
    assert!(run >= 5, "only {run} scenarios train on {DATA}");
}

#[test]
fn every_simulation_of_a_spot_fleet_is_run() {
    for (path, text) in of_kind(&Kind::SpotFleet) {
        let mut simulation: DocumentMut = text.parse().unwrap();
        simulation["job"]["trials"] = value(4_i64);
        simulation["job"]["epochs"] = value(2_i64);
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("small.toml");
        fs::write(&file, simulation.to_string()).unwrap();
        let (seeds, rate) = (Some(1), Some(0.1));
        let args = spot::Args { file, seeds, seed: None, rate, json: true, quick: true };
        let loaded =
            spot::load(&args).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        spot::run(&loaded).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn every_configuration_of_the_autoscaler_is_read() {
    for (path, _) in of_kind(&Kind::Autoscaler) {
        let config = Config::read(&Path::new(ROOT).join(&path), &[]);
        config.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn every_script_compiles() {
    let scripts = files("examples", &|path| is(path, "py"));
    assert!(scripts.len() > 20, "{scripts:?}");
    let check = "import sys; [compile(open(file, encoding='utf-8').read(), file, 'exec') for file in sys.argv[1:]]";
    let python = Path::new(ROOT).join(".cache/python/bin");
    let path = format!("{}:{}", python.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("python3")
        .args(["-c", check])
        .args(&scripts)
        .current_dir(ROOT)
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
