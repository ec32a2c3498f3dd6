//! The compose file in `deploy/`: it is valid, and the program understands it.

use crate::site::program;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

const COMPOSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/compose/compose.yaml");

/// Whether a file keeps to the schema of compose files, and what is said of it.
fn keeps_to_schema(file: &Path) -> (bool, String) {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
    let output = Command::new(python)
        .args(["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"])
        .arg(file)
        .output()
        .expect("`make setup` makes the Python environment");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command's help, its lines joined.
fn help(command: &str) -> String {
    let output = Command::new(program()).args([command, "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_compose_file_is_valid() {
    let (keeps, told) = keeps_to_schema(Path::new(COMPOSE));
    assert!(keeps, "{told}");
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("compose.yaml");
    let text = fs::read_to_string(COMPOSE).unwrap().replace("volumes: [one:", "volume: [one:");
    fs::write(&broken, text).unwrap();
    let (keeps, told) = keeps_to_schema(&broken);
    assert!(!keeps && told.contains("volume"), "{told}");
}

#[test]
fn the_compose_file_uses_flags_and_variables_that_the_program_has() {
    let text = fs::read_to_string(COMPOSE).unwrap();
    let read = help("serve") + &help("assimilate");
    let names: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("SOJOURN_"))
        .collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(read.contains(&format!("[env: {name}")), "nothing reads {name}");
    }
}
