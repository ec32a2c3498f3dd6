//! The report of a job: one file, which a browser shows without a network.

use crate::{
    site::{Process, Site},
    support::Folder,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// `scripts/setup-tests` makes it, with Playwright; and installs Chromium.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");

/// Opens a report in a browser; what that found in it.
fn read(report: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/whole/report/read.py");
    // Alone in its folder: what is beside it is no part of it.
    let sent = Folder::with(&[("sent.html", &fs::read_to_string(report).unwrap())]);
    let ran = Command::new(PYTHON).arg(script).arg(sent.path().join("sent.html")).output().unwrap();
    let (said, failed) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{failed}");
    serde_json::from_str(&said).unwrap()
}

#[test]
fn a_finished_job_is_reported_in_one_file_that_loads_nothing() {
    let site = Site::start_with_hops(2);
    let clients: Vec<Process> = ["a", "b"].map(|name| site.client(name)).into();
    let job = site.submit(7, 3);
    let view = site.wait(&job, |view| view["state"] == "finished");
    let written = site.json(&["report", &job, "-o", "report.html", "--replay"]);
    drop(clients);
    let report = site.path().join("report.html");
    assert_eq!(written["bytes"], fs::metadata(&report).unwrap().len());
    let best = &view["best"];
    assert_eq!(written["replays"][0]["trial"], best["trial"], "{written}");
    assert_eq!(written["replays"][0]["verdict"], "identical", "{written}");

    let shown = read(&report);
    assert_eq!(shown["asked"].as_array().unwrap().len(), 1, "the file itself: {shown}");
    assert_eq!(shown["trials"].as_array().unwrap().len(), 4, "{shown}");
    assert_eq!(shown["trials"][0], best["trial"].to_string(), "the best is first: {shown}");
    let said = |name: &str| shown[name].as_str().unwrap();
    let value = format!("{:.4}", best["value"].as_f64().unwrap());
    assert!(said("head").contains(&value), "{shown}");
    assert!(said("replay").contains("identical"), "{shown}");
    assert!(said("digests").contains(best["checkpoint"]["sha256"].as_str().unwrap()), "{shown}");
    let names = ["per epoch", "convergence", "memory and storage", "communication"];
    assert_eq!(shown["efficiencies"], serde_json::json!(names), "{shown}");
    let spec: Value = serde_json::from_str(said("spec")).unwrap();
    assert_eq!(spec, site.get(&format!("jobs/{job}"))["spec"]);
}

#[test]
fn efficiencies_are_counted_from_what_was_trained() {
    let site = Site::start();
    let client = site.client("only");
    let job = site.submit(7, 2);
    site.wait(&job, |view| view["state"] == "finished");
    let written = site.json(&["report", &job, "-o", "report.html"]);
    drop(client);
    let of = &written["efficiencies"];
    // Four trials of three shards and two epochs, on one machine.
    let hops = 4 * 3 * 2;
    assert_eq!(of["communication"]["hops"], hops, "{of}");
    assert_eq!(
        of["communication"]["downloaded_bytes"], 0,
        "one machine has made all of them: {of}"
    );
    assert_eq!(of["communication"]["share"], 1.0, "{of}");
    assert_eq!(
        (&of["convergence"]["results"], &of["convergence"]["merged"]),
        (&hops.into(), &0.into())
    );
    assert_eq!(
        (&of["storage"]["hosts"], &of["storage"]["share"]),
        (&1.into(), &1.0.into()),
        "{of}"
    );
    let epoch = &of["per_epoch"];
    assert_eq!((&epoch["slots"], &epoch["epochs"]), (&1.into(), &2.into()), "{of}");
    assert_eq!(epoch["least"], epoch["training"], "one slot trains one after the other: {of}");
    let ratio = epoch["share"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio <= 1.0, "{of}");
    assert_eq!(written["replays"], serde_json::json!([]), "none was asked for");
    assert!(fs::read_to_string(site.path().join("report.html")).unwrap().contains("not replayed"));
}

#[test]
fn a_report_needs_a_file_that_can_be_written() {
    let site = Site::start();
    let client = site.client("only");
    let job = site.submit(7, 1);
    site.wait(&job, |view| view["state"] == "finished");
    drop(client);
    let refused = site.run(&["report", &job, "-o", "no-folder/report.html"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(site.run(&["report", "9", "-o", "report.html"]).status.code(), Some(2));
    assert!(!site.path().join("report.html").exists(), "nothing half written");
}
