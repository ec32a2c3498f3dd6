//! Strangers that lie, at default settings: an owner with two machines that lie alike about all that they are given, and machines
//! that are honest but in evaluations, from the first on or late. `hops` has lies about what was trained, `one_class` an owner who
//! lies where few watch.

mod between;
mod hops;
mod one_class;

use crate::{
    hostile::{Hostile, token_of},
    http::poll,
    site::{Process, Site},
};
use between::{Between, Lie};
use serde_json::Value;
use std::path::Path;

/// The two would confirm each other's results, and each other's evaluations, if their owner counted twice.
#[test]
fn two_machines_of_one_owner_that_lie_alike_get_nothing_into_a_model() {
    let site = Site::start();
    let (hostile_token, other_token) =
        (token_of(&site, "mallory", "2"), token_of(&site, "lab", "1"));
    let _own = site.client("own");
    let class = poll(|| {
        let hosts = site.get("hosts");
        let class = hosts[0]["devices"][0]["numeric_class"].as_str()?;
        Some(class.to_owned())
    });
    let mut hostile = Hostile::new(&site.url, &class.unwrap());
    let pair = [(); 2].map(|()| hostile.enrol(&hostile_token).unwrap());
    // Another party offers the class while the operator's machine takes no work.
    let other = hostile.enrol(&other_token).unwrap();
    let ctl = |word: &str| {
        let data = site.path().join("own");
        let output = site.run(&["client", "ctl", "--data", data.to_str().unwrap(), word]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    ctl("pause");
    let job = site.submit(11, 4);
    let lied = poll(|| {
        hostile.show(&other);
        pair.iter().for_each(|who| drop(hostile.lie(who)));
        (hostile.false_results > 0).then_some(())
    });
    assert!(lied.is_some(), "neither was given a unit: {}", site.job(&job));
    // Whatever the two say, nothing is taken in before somebody else has said the same.
    for _ in 0..5 {
        pair.iter().for_each(|who| drop(hostile.lie(who)));
    }
    assert_eq!(site.job(&job)["best"], Value::Null, "{}", site.job(&job));
    ctl("resume");
    let view = poll(|| {
        pair.iter().for_each(|who| drop(hostile.lie(who)));
        let view = site.job(&job);
        (view["state"] != "running").then_some(view)
    });
    let view = view.unwrap_or_else(|| panic!("waited in vain: {}", site.job(&job)));
    assert_eq!(
        (&view["state"], &view["trials_finished"]),
        (&"finished".into(), &4.into()),
        "{view}"
    );
    assert!(view["best"]["value"].as_f64().unwrap() < 0.9999, "a false evaluation counts: {view}");
    assert_identical(&site, &job);
    assert!(count(&site, "mallory", "refuted") > 0, "{}", site.get("hosts"));
}

/// The sum of a count over all machines of an owner.
fn count(site: &Site, owner: &str, of: &str) -> u64 {
    let hosts = site.get("hosts");
    let hosts = hosts.as_array().unwrap().iter().filter(|host| host["owner"] == owner);
    hosts.filter_map(|host| host[of].as_u64()).sum()
}

/// Each trial of a job is what one machine trains.
fn assert_identical(site: &Site, job: &str) {
    assert_identical_by(site, job, None);
}

/// The same with another trainer.
fn assert_identical_by(site: &Site, job: &str, trainer: Option<&Path>) {
    for trial in 0..4 {
        let mut command = site.command(&["replay", job, "--trial", &trial.to_string(), "--json"]);
        command.envs(trainer.map(|trainer| ("SOJOURN_TRAINER", trainer)));
        let output = command.output().unwrap();
        let replay: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(replay["verdict"], "identical", "trial {trial} of job {job}: {replay} {error}");
    }
}

/// Starts a client with two slots that asks at `url`, with a token of its owner, and perhaps another trainer.
fn start_stranger(
    site: &Site,
    (name, token): (&str, &str),
    url: &str,
    trainer: Option<&Path>,
) -> Process {
    let mut command = site.client_command(name, &["--slots", "2"]);
    command.env("SOJOURN_SERVER", url).env("SOJOURN_ENROL_TOKEN", token);
    command.envs(trainer.map(|trainer| ("SOJOURN_TRAINER", trainer)));
    site.start_client(name, command)
}

/// Each false evaluation would make its trial the best.
fn no_false_evaluation_counts(honest: usize) {
    let site = Site::start();
    let _own = site.client("own");
    let between = Between::start(&site.url, Lie::Evaluations { honest });
    let token = token_of(&site, "mallory", "1");
    let _mallory = start_stranger(&site, ("mallory", &token), &between.url, None);
    // Which machine gets which unit isn't sure: there are jobs until it has lied.
    for seed in 11..31 {
        let job = site.submit(seed, 4);
        let view = site.wait(&job, |view| view["state"] != "running");
        assert_eq!(view["state"], "finished", "{view}");
        assert!(view["best"]["value"].as_f64().unwrap() < 0.9999, "it counts: {view}");
        assert_identical(&site, &job);
        if between.lies() > 0 {
            return;
        }
    }
    panic!("it was never asked for an evaluation: {}", site.get("hosts"));
}

#[test]
fn a_machine_that_lies_in_evaluations_alone_makes_no_trial_the_best() {
    no_false_evaluation_counts(0);
}

#[test]
fn a_machine_that_lies_late_makes_no_trial_the_best() {
    no_false_evaluation_counts(3);
}
