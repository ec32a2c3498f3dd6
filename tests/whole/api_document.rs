//! The document that describes the API, used by others' programs: a client is generated from it, and a running server is tried
//! against it.

use crate::{
    http::HttpClient,
    site::{Site, program},
};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// `scripts/setup-tests` makes it, with `openapi-python-client` and `schemathesis`.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/whole/api_document");

/// Runs a program, which must succeed, and gives its output.
fn run(command: &mut Command, log: &dyn Fn() -> String) -> String {
    let ran = command.output().unwrap();
    let (said, failed) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{command:?}\n{said}{failed}\n{}", log());
    said.into_owned()
}

/// The document, as the command prints it.
fn document(site: &Site) -> PathBuf {
    let file = site.path().join("openapi.json");
    let printed = Command::new(program()).arg("openapi").output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    fs::write(&file, printed.stdout).unwrap();
    file
}

#[test]
fn a_client_is_generated_with_every_operation_and_reads_a_job_with_a_large_seed() {
    let site = Site::start();
    // The largest that a job file can say, and more than the 53 bits of a number in JavaScript.
    let seed = i64::MAX.unsigned_abs();
    let job = site.submit(seed, 1);
    assert_eq!(site.json(&["status", &job])["spec"]["seed"], seed.to_string());
    let document = document(&site);
    let log = || String::new();
    let config = site.path().join("generator.json");
    fs::write(&config, json!({ "post_hooks": [] }).to_string()).unwrap();
    let said = run(
        Command::new(Path::new(PYTHON).join("openapi-python-client"))
            .args(["generate", "--meta", "none", "--fail-on-warning", "--path"])
            .arg(&document)
            .arg("--config")
            .arg(&config)
            .arg("--output-path")
            .arg(site.path().join("client")),
        &log,
    );
    assert!(!said.contains("WARNING") && !said.contains("Warning"), "{said}");
    run(
        Command::new(Path::new(PYTHON).join("python"))
            .args(["-B", &format!("{SCRIPTS}/generated.py")])
            .arg(&document)
            .arg(site.path())
            .args([site.url.as_str(), site.token.as_str(), job.as_str(), &seed.to_string()]),
        &|| site.log("server"),
    );
}

/// Tries the operations that this kind of token opens, with a bounded number of requests from a fixed seed.
fn tried(site: &Site, kind: &str, token: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/try_api.py");
    run(
        Command::new(Path::new(PYTHON).join("python"))
            .args(["-B", script, &site.url, kind, "--examples", "5"])
            .env("SOJOURN_TOKEN", token)
            .current_dir(site.path()),
        &|| site.log("server"),
    );
}

#[test]
fn a_server_answers_a_user_as_the_document_says() {
    let site = Site::start();
    site.submit(1, 1);
    tried(&site, "admin", &site.token);
}

#[test]
fn a_server_answers_a_host_as_the_document_says() {
    let site = Site::start();
    site.submit(1, 1);
    let enrolled = HttpClient::new(&site.enrolment, None)
        .post(&site.url, "enrol", &json!({ "name": "stranger" }))
        .unwrap();
    tried(&site, "host", enrolled["token"].as_str().unwrap());
}
