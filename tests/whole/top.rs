//! `sojourn top` and `sojourn status --watch`, on a terminal and where nobody looks at one.

use crate::{site::Site, support::sojourn, terminal::Terminal};

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

    assert_eq!(site.json(&["status", "--watch"]), report, "without a job it is the same");
    let watched = site.run(&["status", "--watch"]);
    let watched = String::from_utf8(watched.stdout).unwrap();
    // The first lines say how much room the server's disk has now.
    let panes = |text: &str| text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(panes(&watched), panes(&after));
    let output = site.run(&["status"]);
    assert_eq!(output.status.code(), Some(2), "without either it shows nothing");
    let output = site.run(&["status", &job, "--watch"]);
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.starts_with(&format!("job {job} finished: ")), "{line}");
    assert_eq!((line.lines().count(), output.status.code()), (1, Some(0)));
}

#[test]
fn a_job_is_watched_on_the_terminal_until_it_ends() {
    let site = Site::start();
    let job = site.submit(5, 1);
    let watch = |args: &[&str]| Terminal::with(site.command(args));

    let mut whole = watch(&["status", "--watch"]);
    whole.until("running");
    whole.until("digits");
    whole.press("q");
    whole.ends_clean(0);

    let mut left = watch(&["status", "--watch", &job]);
    left.until("evaluations");
    left.press("q");
    left.until("hasn't");
    left.ends_clean(130);

    let terminal = watch(&["status", "--watch", &job]);
    terminal.until("evaluations");
    let _client = site.client("attic");
    // What stays there after the screen.
    terminal.until("OF EPOCH");
    let shown = terminal.ends_clean(0);
    let page = shown.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(page.contains(&format!("job {job} `digits` finished")), "{page:?}");
}

#[test]
fn a_server_that_is_not_there_ends_it_where_nobody_looks() {
    let output = sojourn(&["top", "--server", "http://127.0.0.1:1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no server at http://127.0.0.1:1") && output.stdout.is_empty(), "{said}");
}
