//! A leader that the network cuts off, from Redis and from everybody at home: another takes over there, and the old one
//! changes nothing, then or once the network is mended.

use crate::{
    http::{HttpClient, poll},
    networks::{FAR, HOME, Networks, with_networks},
    redis_server::RedisServer,
    site::{Process, Site, program},
};
use std::{
    process::{Command, Output},
    thread,
};

const EPOCHS: u32 = 6;
/// The exit code of a command whose server didn't serve it.
const UNSERVED: Option<i32> = Some(3);

/// One that listens where the networks know it, started in the network at hand.
fn serve(site: &Site, name: &str, address: &str) -> (Process, String) {
    let (process, listen) = site.other_server(name, &format!("{address}:0"));
    (process, format!("http://{listen}"))
}

/// Asks one server from the network at hand.
fn ask(site: &Site, server: &str, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(args).env("SOJOURN_SERVER", server).env("SOJOURN_TOKEN", &site.token);
    command.output().unwrap()
}

/// The reason that it gives for not serving.
fn refusal(site: &Site, server: &str, args: &[&str]) -> String {
    let output = ask(site, server, args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), UNSERVED, "{args:?}: {told}");
    told
}

/// Asks one until it serves.
fn await_active(site: &Site, server: &str) {
    let http = HttpClient::new(&site.token, None);
    let jobs = poll(|| http.get(server, "jobs"));
    assert!(jobs.is_some(), "nobody took over:\n{}", site.log("server"));
}

#[test]
fn a_leader_that_is_cut_off_changes_nothing() {
    with_networks("cut_off::a_leader_that_is_cut_off_changes_nothing", |networks| {
        networks.home(|| cut_off(networks));
    });
}

/// At home, where all but the leader are.
fn cut_off(networks: &Networks) {
    // Its port is nobody else's: the network is the test's own.
    let settings = ["--appendonly", "yes", "--appendfsync", "always", "--protected-mode", "no"];
    let redis = RedisServer::with(&[&settings[..], &["--bind", HOME, "--port", "6379"]].concat());
    let store = tempfile::tempdir().unwrap();
    let blobs = format!("file://{}/store", store.path().display());
    let mut site = Site::start_shared(&format!("redis://{HOME}:6379"), &blobs, vec![]);
    let (mut far, far_url) = networks.far(|| serve(&site, "far", FAR));
    assert_eq!(site.server.end(), Some(0));
    await_active(&site, &far_url);
    let (mut near, near_url) = serve(&site, "near", HOME);
    assert!(refusal(&site, &near_url, &["jobs"]).contains(&far_url), "it says who is active");

    site.url = format!("{far_url},{near_url}");
    let job = site.submit(53, EPOCHS);
    let mut assimilator = site.assimilator("assimilator");
    let mut clients = [0, 1].map(|n| site.client(&format!("client-{n}")));
    let some = site.wait(&job, |view| view["hops"].as_u64().unwrap() > 3);

    networks.cut();
    thread::scope(|threads| {
        // The old leader still believes that it leads: it can't write, and so acknowledges nothing.
        let told = threads.spawn(|| networks.far(|| refusal(&site, &far_url, &["cancel", &job])));
        await_active(&site, &near_url);
        // It has known the end of its lease before anybody else could.
        networks.far(|| refusal(&site, &far_url, &["jobs"]));
        told.join().unwrap();
    });
    let more = site.wait(&job, |view| view["hops"].as_u64().unwrap() >= 20);
    assert_eq!([&some["state"], &more["state"]], ["running"; 2], "{more}");
    networks.far(|| refusal(&site, &far_url, &["jobs"]));

    networks.mend();
    let stands_by = poll(|| refusal(&site, &far_url, &["jobs"]).contains(&near_url).then_some(()));
    assert!(stands_by.is_some(), "it never stood by:\n{}", site.log("server"));
    networks.far(|| refusal(&site, &far_url, &["cancel", &job]));
    let other = site.submit(54, EPOCHS);

    // It may lead again.
    near.kill();
    await_active(&site, &far_url);
    for job in [&job, &other] {
        let view = site.wait(job, |view| view["state"] != "running");
        assert_eq!(view["state"], "finished", "nobody cancelled it: {view}");
        assert_eq!(view["hops"], 4 * EPOCHS * 3, "each result once: {view}");
    }
    for trial in site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
    let taken: u64 = redis.ask(&["HGET", "{sojourn}:meta", "fence"]);
    assert!(taken >= 4, "the first, the far one, the near one, and the far one again: {taken}");
    let processes = clients.iter_mut().chain([&mut assimilator, &mut far]);
    for process in processes {
        assert_eq!(process.end(), Some(0), "all end well when they are told to");
    }
}
