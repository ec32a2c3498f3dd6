//! Searches from Python: the tests of the SDK, with the program and the trainer that were built here.

use crate::site::program;
use std::{path::Path, process::Command};
use tempfile::TempDir;

/// `scripts/setup-tests` makes it, with numpy, pandas, polars, optuna, scikit-learn and anywidget.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/tests/sdk");
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python");

/// Runs a module of the tests, in the home of a user who has no server.
fn passes(module: &str) {
    assert!(Path::new(PYTHON).is_file(), "`make test` makes the Python environment");
    let home: TempDir = tempfile::tempdir().unwrap();
    let programs = program().parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(PYTHON)
        .args(["-B", "-W", "error", "-m", "unittest", module])
        .current_dir(TESTS)
        .env("PYTHONPATH", PACKAGE)
        .env("PATH", format!("{programs}:{path}"))
        .env("HOME", home.path())
        .env("SOJOURN", program())
        .env("SOJOURN_GPUS", "none")
        .env_remove("SOJOURN_SERVER")
        .env_remove("SOJOURN_DATA")
        .env_remove("XDG_DATA_HOME")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{module}:\n{said}");
}

#[test]
fn searches_are_job_files() {
    passes("test_search");
}

#[test]
fn code_of_a_script_travels() {
    passes("test_code");
}

#[test]
fn data_in_memory_is_written_once() {
    passes("test_data");
}

#[test]
fn calls_are_made_again() {
    passes("test_api");
}

#[test]
fn servers_are_found() {
    passes("test_connect");
}

#[test]
fn adapters_carry_the_code_of_their_tasks() {
    passes("test_adapters");
}

#[test]
fn spaces_of_others_are_read() {
    passes("test_spaces");
}

#[test]
fn fifteen_lines_train_and_their_job_has_every_call() {
    passes("test_job");
}

#[test]
fn a_local_server_goes_with_its_scripts_and_comes_back_with_their_jobs() {
    passes("test_local");
}

#[test]
fn a_script_that_is_killed_at_any_point_ends_with_the_same_digests() {
    passes("test_kills");
}

#[test]
fn programs_drive_searches() {
    passes("test_study");
}

#[test]
fn jobs_are_boards_in_notebooks() {
    passes("test_notebook");
}

#[test]
fn scikit_learn_takes_a_search_for_an_estimator() {
    passes("test_sklearn");
}

#[test]
fn the_page_s_blocks_run() {
    passes("test_page");
}

#[test]
fn the_reference_is_whole_and_current() {
    passes("test_reference");
}

#[test]
fn the_package_is_typed() {
    passes("test_types");
}
