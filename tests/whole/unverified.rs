//! Results that a server of before took in unverified: commands show them, and the models aren't exported unless that is said.

use crate::{
    reading::{World, printed},
    support::{Folder, sojourn},
};
use serde_json::Value;

/// The best trial follows from three results that nobody confirmed.
fn world() -> World {
    let mut world = World::new();
    let (job, best) = (&mut world.detail.summary, &mut world.trials[1]);
    (job.unverified, best.unverified) = (3, 3);
    for view in [&mut job.best, &mut best.best] {
        view.as_mut().unwrap().unverified = 3;
    }
    world
}

#[test]
fn an_unverified_model_is_exported_only_where_that_is_said() {
    let server = world().serve();
    let folder = Folder::with(&[]);
    let run = |args: &[&str]| {
        let command = &mut sojourn(args);
        let command = command.args(["--server", &server.url]).current_dir(folder.path());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for choice in [&["--best"][..], &["--trial", "1"], &["--trial", "1", "--last"], &[]] {
        let (code, told) = run(&[&["export", "1", "-o", "m"], choice].concat());
        assert_eq!(code, Some(1), "{choice:?}");
        assert!(told.contains("trial 1 isn't verified: 3 results were taken in"), "{told}");
        assert!(told.contains("`--unverified` exports it all the same"), "{told}");
        assert!(folder.names().is_empty(), "nothing is written");
    }
    let (code, told) = run(&["export", "1", "-o", "m", "--trial", "0"]);
    assert_eq!(code, Some(0), "the other trial is as it should be: {told}");

    let path = folder.path().join("all-the-same");
    let path = path.to_str().unwrap();
    let report = printed(&server, &["export", "1", "--json", "-o", path, "--unverified"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["trial"], &report["unverified"]), (&1.into(), &3.into()));
    let said = printed(&server, &["export", "1", "--best", "-o", path, "--unverified"]);
    assert!(said.contains("it isn't verified"), "{said}");
}

#[test]
fn status_and_trials_count_unverified_results() {
    let server = world().serve();
    let status = printed(&server, &["status", "1"]);
    let line = status.lines().find(|line| line.starts_with("unverified")).expect("a line");
    assert!(line.ends_with("3 results were taken in that nobody confirmed"), "{line}");
    let trials = printed(&server, &["trials", "1"]);
    let best = trials.lines().find(|line| line.contains("hidden=[8]")).expect("its line");
    assert!(best.trim_end().ends_with("finished; 3 results unverified"), "{best}");
    let other = trials.lines().find(|line| line.contains("hidden=[4]")).expect("its line");
    assert!(!other.contains("unverified"), "{other}");
    let json: Value = serde_json::from_str(&printed(&server, &["trials", "1", "--json"])).unwrap();
    assert_eq!((&json[0]["unverified"], &json[1]["unverified"]), (&Value::Null, &3.into()));
}
