//! A machine that claims a numeric class of its own, and lies about whatever it is given.

use crate::{
    hostile::{Hostile, token_of},
    http::poll,
    site::Site,
};
use serde_json::Value;
use sojourn_protocol::digest::Digest;

/// The machine claims a numeric class that nobody else is of, so that nobody could repeat its results.
#[test]
fn a_machine_that_invents_a_numeric_class_gets_nothing_into_a_model() {
    let mut site = Site::start();
    let hostile_token = token_of(&site, "mallory", "1");
    let placement = "reproducible = true\nverify = { quorum = 2, rate = 1.0 }";
    let class = Digest::of(b"invented").to_string();
    let mut hostile = Hostile::new(&site.url, &class);
    let mallory = hostile.enrol(&hostile_token).unwrap();
    hostile.lie(&mallory);
    let job = site.submit_with(11, 2, "[1e-3, 3e-3]", placement);

    // Alone with the job it is given nothing, and everybody is told why.
    let told = hostile.lie(&mallory).unwrap();
    assert!(told.starts_with("no other party's host in contact offers"), "{told}");
    let waiting = site.job(&job)["waiting"].clone();
    let why = "no numeric class is offered by 2 parties; host 1 is alone in its class";
    assert_eq!(waiting, why);
    let events = String::from_utf8(site.run(&["events", &job, "--why"]).stdout).unwrap();
    assert_eq!(events.lines().last(), Some(format!("now it waits: {why}").as_str()), "{events}");
    let hosts = site.get("hosts");
    let alone = (&hosts[0]["alone"], &hosts[0]["devices"][0]["parties"][0]["parties"]);
    assert_eq!(alone, (&true.into(), &1.into()), "{hosts}");

    let mut clients = Vec::new();
    for owner in ["lab", "home"] {
        site.enrolment = token_of(&site, owner, "1");
        clients.push(site.client(owner));
    }
    let view = poll(|| {
        hostile.lie(&mallory);
        let view = site.job(&job);
        (view["state"] != "running").then_some(view)
    });
    let view = view.unwrap();
    assert_eq!(
        (&view["state"], &view["trials_finished"]),
        (&"finished".into(), &4.into()),
        "{view}"
    );
    assert_eq!(hostile.false_results, 0, "it was given units");
    assert!(view["best"]["value"].as_f64().unwrap() < 0.9999, "a false evaluation counts: {view}");
    let hosts = site.get("hosts");
    assert_eq!((&hosts[0]["owner"], &hosts[0]["used"]), (&"mallory".into(), &0.into()), "{hosts}");
    for trial in 0..4 {
        let replay = site.json(&["replay", &job, "--trial", &trial.to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    let model = site.path().join("best.safetensors");
    let exported = site.json(&["export", &job, "--best", "-o", model.to_str().unwrap()]);
    assert_eq!(exported["unverified"], Value::Null, "{exported}");
}
