//! An owner who is honest in the numeric class that the operator watches, and lies in another one, which strangers alone offer.

use super::{
    assert_identical, assert_identical_by,
    between::{Between, Lie},
    count, start_stranger,
};
use crate::{
    hostile::token_of,
    http::poll,
    site::{Site, program},
    support::script,
};
use serde_json::Value;
use std::path::PathBuf;

/// The job waits, as only strangers are in contact whom nobody could confirm.
const ALONE: &str = "results of strangers' hosts count once another party has come to the same";
/// The job waits, as two parties differ.
const DISPUTED: &str = "hosts came to different results: one more host of their numeric class";

/// A trainer that trains as ours does, and says that its arithmetic is another.
fn trainer_of_another_class(site: &Site) -> PathBuf {
    let path = site.path().join("trainer");
    let real = program().with_file_name("sojourn-trainer");
    let class = r#"s/"numeric_class":"......../"numeric_class":"cdacdacd/"#;
    script(&path, &format!("'{}' \"$@\" | sed -u '{class}'\n", real.display()));
    path
}

/// Waits until a job stands still for this reason; `status` says the same.
fn waits(site: &Site, job: &str, reason: &str) -> Value {
    let begins = |view: &Value| view["waiting"].as_str().is_some_and(|of| of.starts_with(reason));
    let view = site.wait(job, |view| begins(view) || view["state"] != "running");
    assert!(begins(&view), "{view}");
    let status = String::from_utf8(site.run(&["status", job]).stdout).unwrap();
    assert!(status.contains(reason), "{status}");
    view
}

fn host(site: &Site, name: &str) -> Value {
    let hosts = site.get("hosts");
    let host = hosts.as_array().unwrap().iter().find(|host| host["name"] == name);
    host.unwrap_or_else(|| panic!("no {name}: {hosts}")).clone()
}

#[test]
fn an_owner_who_lies_in_one_of_two_classes_gets_nothing_into_a_model() {
    let site = Site::start();
    let other_class = trainer_of_another_class(&site);
    let token = token_of(&site, "mallory", "2");
    let tokens = ["lab", "home"].map(|owner| token_of(&site, owner, "1"));

    // In the class of the operator's machine its owner earns trust.
    let mut own = site.client("own");
    let mut honest = start_stranger(&site, ("honest", &token), &site.url, None);
    let trusted = (11..31).find(|seed| {
        let job = site.submit(*seed, 4);
        let view = site.wait(&job, |view| view["state"] != "running");
        assert_eq!(view["state"], "finished", "{view}");
        assert_identical(&site, &job);
        count(&site, "mallory", "confirmed_in_row") >= 10
    });
    assert!(trusted.is_some(), "{}", site.get("hosts"));
    own.end();
    honest.end();

    // In a class of its own it is given nothing, trusted or not.
    let between = Between::start(&site.url, Lie::All);
    let _liar = start_stranger(&site, ("liar", &token), &between.url, Some(&other_class));
    let job = site.submit(31, 2);
    waits(&site, &job, ALONE);
    let is_alone = poll(|| (host(&site, "liar")["alone"] == true).then_some(()));
    assert!(is_alone.is_some(), "{}", site.get("hosts"));
    assert_eq!(between.lies(), 0, "it was given a unit: {}", site.job(&job));

    // Once another stranger offers the class, one word stands against another: nothing goes on.
    let _lab = start_stranger(&site, ("lab", &tokens[0]), &site.url, Some(&other_class));
    let view = waits(&site, &job, DISPUTED);
    assert_eq!((&view["hops"], &view["best"]), (&0.into(), &Value::Null), "{view}");
    let trials = site.trials(&job);
    let mut said = trials.as_array().unwrap().iter().filter_map(|trial| trial["waiting"].as_str());
    assert!(said.any(|why| why.starts_with(DISPUTED)), "{trials}");
    let model = site.path().join("best.safetensors");
    let export = ["export", &job, "--best", "-o", model.to_str().unwrap()];
    assert!(!site.run(&export).status.success() && !model.exists(), "a model was exported");
    assert!(between.lies() > 0);

    // A third party tells who has lied.
    let _home = start_stranger(&site, ("home", &tokens[1]), &site.url, Some(&other_class));
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(
        (&view["state"], &view["trials_finished"]),
        (&"finished".into(), &4.into()),
        "{view}"
    );
    assert!(view["best"]["value"].as_f64().unwrap() < 0.9999, "a false evaluation counts: {view}");
    assert_identical_by(&site, &job, Some(&other_class));
    let exported = site.json(&export);
    assert_eq!(exported["unverified"], Value::Null, "{exported}");
    let (liar, honest) = (host(&site, "liar"), host(&site, "honest"));
    assert!(liar["refuted"].as_u64() > Some(0), "{liar}");
    assert_eq!(honest["refuted"], Value::Null, "{honest}");
    // The owner has lost the trust that the other machine has earned.
    assert_eq!(honest["verified_rate"], 1000, "{honest}");
    let refuted = ["lab", "home"].map(|owner| count(&site, owner, "refuted"));
    assert_eq!(refuted, [0, 0], "{}", site.get("hosts"));
}
