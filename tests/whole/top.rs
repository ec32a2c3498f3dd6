//! `sojourn top` where nobody looks at a terminal.

use crate::{site::Site, support::sojourn};

#[test]
fn top_prints_jobs_trials_hosts_and_events_once() {
    let site = Site::start();
    let text = || {
        let output = site.run(&["top"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(0), ""));
        String::from_utf8(output.stdout).unwrap()
    };
    let before = text();
    assert!(before.starts_with(&format!("{}, sojourn ", site.url)), "{before}");
    assert!(before.contains("\nconnected; storage "), "{before}");
    assert!(before.contains(" jobs: 0, 0 running ") && before.contains("none yet"), "{before}");

    let job = site.submit(5, 1);
    let waits = text();
    assert!(waits.contains("the job waits: no host is in contact"), "{waits}");
    let client = site.client("attic");
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    drop(client);
    let after = text();
    for part in [
        " jobs: 1, 0 running ",
        &format!("██████████ {hops}/{hops}", hops = view["hops"]),
        &format!("of job {job} `"),
        " attic ",
        &format!("job {job} `"),
    ] {
        assert!(after.contains(part), "no `{part}` in\n{after}");
    }
    let best = view["best"]["value"].as_f64().unwrap();
    assert!(after.matches(&format!("{best:.4}")).count() >= 2, "job and trial\n{after}");
    assert!(after.contains(" was submitted") || after.contains("became version"), "{after}");

    let report = site.json(&["top"]);
    assert_eq!(report["jobs"], serde_json::json!([site.job(&job)]));
    assert_eq!(report["hosts"][0]["name"], "attic");
    assert_eq!(report.as_object().unwrap().len(), 2);
}

#[test]
fn a_server_that_is_not_there_ends_it_where_nobody_looks() {
    let output = sojourn(&["top", "--server", "http://127.0.0.1:1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no server at http://127.0.0.1:1") && output.stdout.is_empty(), "{said}");
}
