//! A job is paused, resumed and extended, and every model is still the one that one machine makes.

use crate::site::Site;

#[test]
fn a_job_is_paused_resumed_and_extended_and_replays() {
    let mut site = Site::start();
    let _clients = [site.client("client-1"), site.client("client-2")];
    let job = site.submit(9, 4);
    site.wait(&job, |view| view["hops"].as_u64().unwrap() >= 5);
    assert_eq!(site.json(&["pause", &job])["state"], "paused");
    site.wait(&job, |view| view["leases_live"] == 0);
    site.restart();
    let status = site.run(&["status", &job]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("it is paused: resume it, and it goes on"), "{status}");
    // The machines work for others meanwhile.
    let other = site.submit_with(10, 1, "[1e-3]", "");
    site.wait(&other, |view| view["state"] == "finished");
    let view = site.job(&job);
    assert_eq!(view["state"], "paused");
    assert!(view["hops"].as_u64().unwrap() < 48, "{view}");
    assert_eq!(site.json(&["resume", &job])["state"], "running");

    // While it runs, with units under way, and after it has finished.
    let extended = site.json(&["extend", &job, "--epochs", "6"]);
    assert_eq!((&extended["state"], &extended["hops_expected"]), (&"running".into(), &72.into()));
    site.json(&["pause", &job, "--now"]);
    site.json(&["resume", &job]);
    site.wait(&job, |view| view["state"] == "finished");
    let extended = site.json(&["extend", &job, "--epochs", "7", "--trial", "1"]);
    assert_eq!((&extended["state"], &extended["hops_expected"]), (&"running".into(), &75.into()));
    let view = site.wait(&job, |view| view["state"] == "finished");
    assert_eq!((&view["hops"], &view["evaluations"]), (&75.into(), &25.into()), "{view}");
    for trial in site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
    for (args, message) in [
        (vec!["pause", &job], "job 1 has finished: there is nothing to pause"),
        (vec!["resume", &job], "job 1 has finished: there is nothing to resume"),
        (
            vec!["extend", &job, "--epochs", "2"],
            "job 1 trains for 7 epochs already: 2 in all are fewer",
        ),
    ] {
        let output = site.run(&args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(message), "{args:?}: {told}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}
