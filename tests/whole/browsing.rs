//! The web page in a real browser: each page and each button, over a server with a job that trains.

use crate::{
    http::poll,
    site::{Process, Site},
};
use std::{fs, path::Path, process::Command};

/// `scripts/setup-tests` makes it, with Playwright; and installs Chromium.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
/// Where screenshots stay, to be looked at.
const SCREENSHOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");

#[test]
fn a_browser_shows_a_job_as_it_trains_and_its_buttons_work() {
    let site = Site::start_with_hops(2);
    let _clients: Vec<Process> = ["a", "b"].map(|name| site.client(name)).into();
    let job = site.submit(7, 2_000);
    site.wait(&job, |view| view["evaluations"].as_u64() > Some(4));
    fs::create_dir_all(SCREENSHOTS).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/whole/browsing/browse.py");
    let ran = Command::new(PYTHON)
        .arg(script)
        .args([site.url.as_str(), site.token.as_str(), job.as_str(), SCREENSHOTS])
        .output()
        .unwrap();
    let (said, failed) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{failed}\n{}", site.log("server"));
    // Of files that were sent nothing stays, whether their jobs have begun or not.
    let left = || fs::read_dir(site.data().join("data-uploads")).unwrap().count();
    assert!(poll(|| (left() == 0).then_some(())).is_some(), "{} uploads stay", left());
}
