//! An owner with two machines that lie alike about all that they are given, at default settings.

use crate::{
    hostile::{Hostile, token_of},
    http::poll,
    site::Site,
};

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
    assert_eq!(site.job(&job)["best"], serde_json::Value::Null, "{}", site.job(&job));
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
    for trial in 0..4 {
        let replay = site.json(&["replay", &job, "--trial", &trial.to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    let hosts = site.get("hosts");
    let hosts = hosts.as_array().unwrap().iter().filter(|host| host["owner"] == "mallory");
    let refuted: u64 = hosts.filter_map(|host| host["refuted"].as_u64()).sum();
    assert!(refuted > 0, "{}", site.get("hosts"));
}
