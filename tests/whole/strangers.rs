//! Strangers that lie, at default settings: an owner with two machines that lie alike about all that they are given, and machines
//! that are honest but in evaluations, from the first on or late.

use crate::{
    hostile::{Hostile, token_of},
    http::{PATIENCE, poll},
    site::Site,
    support::{Answer, FakeServer, Request},
};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
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
    for trial in 0..4 {
        let replay = site.json(&["replay", &job, "--trial", &trial.to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    let hosts = site.get("hosts");
    let hosts = hosts.as_array().unwrap().iter().filter(|host| host["owner"] == "mallory");
    let refuted: u64 = hosts.filter_map(|host| host["refuted"].as_u64()).sum();
    assert!(refuted > 0, "{}", site.get("hosts"));
}

/// A machine that trains as it should, and lies about evaluations from its `honest`th on: whoever stands between it and the server
/// writes what it says.
fn lies_in_evaluations(site: &Site, honest: usize) -> (FakeServer, Arc<AtomicUsize>) {
    let lies = Arc::new(AtomicUsize::new(0));
    let (counted, evaluations) = (Arc::clone(&lies), AtomicUsize::new(0));
    let url = site.url.clone();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let between = FakeServer::start(move |request| {
        let mut body = request.body.clone();
        let (_, path) = request.line.split_once(' ').unwrap();
        if path == "/v1/results" {
            let mut report: Value = serde_json::from_slice(&body).unwrap();
            let shards = report["outcome"]["evaluated"]["shards"].as_array_mut();
            if let Some(shards) = shards
                && evaluations.fetch_add(1, Ordering::SeqCst) >= honest
            {
                for sums in shards {
                    sums["loss"] = 0.0.into();
                    sums["correct"] = sums["rows"].clone();
                }
                counted.fetch_add(1, Ordering::SeqCst);
                body = report.to_string().into_bytes();
            }
        }
        pass_on(&http, &url, request, body)
    });
    (between, lies)
}

/// Asks the real server, as the machine asked.
fn pass_on(http: &reqwest::Client, url: &str, request: &Request, body: Vec<u8>) -> Answer {
    let own =
        |name: &str| ["host", "connection", "content-length", "transfer-encoding"].contains(&name);
    let (method, path) = request.line.split_once(' ').unwrap();
    let mut asked = http.request(method.parse().unwrap(), format!("{url}{path}")).body(body);
    for (name, value) in request.headers.iter().filter(|(name, _)| !own(name)) {
        asked = asked.header(name, value);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let answer = asked.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?.to_vec()))
    });
    let Ok((status, headers, body)) = answer else { return Answer::lost() };
    let headers = headers.iter().filter(|(name, _)| !own(name.as_str()));
    let headers =
        headers.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect();
    Answer { status, headers, body }
}

/// Each false evaluation would make its trial the best.
fn no_false_evaluation_counts(honest: usize) {
    let mut site = Site::start();
    let _own = site.client("own");
    let (between, lies) = lies_in_evaluations(&site, honest);
    site.enrolment = token_of(&site, "mallory", "1");
    let url = std::mem::replace(&mut site.url, between.url.clone());
    let _mallory = site.client_with("mallory", &["--slots", "2"]);
    site.url = url;
    // Which machine gets which unit isn't sure: there are jobs until it has lied.
    for seed in 11..31 {
        let job = site.submit(seed, 4);
        let view = site.wait(&job, |view| view["state"] != "running");
        assert_eq!(view["state"], "finished", "{view}");
        assert!(view["best"]["value"].as_f64().unwrap() < 0.9999, "it counts: {view}");
        for trial in 0..4 {
            let replay = site.json(&["replay", &job, "--trial", &trial.to_string()]);
            assert_eq!(replay["verdict"], "identical", "{replay}");
        }
        if lies.load(Ordering::SeqCst) > 0 {
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
