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

/// The words of a file, without its comments.
fn settings(name: &str) -> String {
    let file = Path::new(COMPOSE).with_file_name(name);
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_proxy_encrypts_unless_it_is_asked_not_to() {
    let proxy = settings("haproxy.cfg");
    let insecure =
        "  .if streq(\"$PROXY_INSECURE\",true)\n  bind :8642\n  .else\n  bind :8642 ssl crt ";
    assert!(proxy.contains(insecure), "{proxy}");
    assert_eq!(proxy.matches("bind :").count(), 2, "no other way in");
    assert!(proxy.contains("option forwardfor"), "servers behind it count callers by that");
    let compose = settings("compose.yaml");
    assert!(compose.contains("PROXY_INSECURE: ${PROXY_INSECURE:-false}"));
    assert!(compose.contains("SOJOURN_BEHIND_PROXY: \"true\""));
    assert_eq!(
        compose.matches("ports:").count(),
        1,
        "nothing but the proxy is reached from outside"
    );
}

#[test]
fn each_service_has_keys_of_its_own_and_none_in_its_command_line() {
    let compose = settings("compose.yaml");
    for key in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        for service in ["SERVER", "ASSIMILATOR"] {
            assert!(compose.contains(&format!("{key}: ${{{service}_{key}")), "{service} {key}");
        }
        assert!(!compose.contains(&format!("${{{key}")), "one {key} for all");
    }
    assert!(!compose.contains("--requirepass"), "a list of processes would show it");
    // Whatever compose.yaml asks for is in the example.
    let example = settings("example.env");
    let asked = compose.split("${").skip(1).filter_map(|rest| rest.split([':', '}']).next());
    for name in asked {
        assert!(example.contains(&format!("{name}=")), "{name} isn't in example.env");
    }
}
