//! Webhooks: receivers that fail, a server that is killed meanwhile, and the receiver of the documentation.

use crate::{
    http::poll,
    site::{Process, Site, spawn},
    support::{Answer, FakeServer, Request},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tempfile::TempDir;

/// `scripts/setup-tests` makes it.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
const PAGE: &str = include_str!("../../docs/operate/webhooks.md");
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Says of each line of JSON on stdin whether its request is signed, by the receiver of the documentation.
const CHECK: &str = "
import json, sys, receive
for line in sys.stdin:
    headers, body = json.loads(line)
    assert receive.is_signed(headers, body.encode(), int(headers['webhook-timestamp'])), line
    assert not receive.is_signed(headers, body.encode() + b' ', int(headers['webhook-timestamp'])), line
    assert not receive.is_signed(headers, body.encode(), int(headers['webhook-timestamp']) + 400), line
    print('signed')
";

/// A server that tells this address of everything, in a folder that also has the receiver of the documentation.
fn site(url: &str, more: &str) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let receiver = PAGE.split("```python file=receive.py\n").nth(1).unwrap();
    fs::write(folder.path().join("receive.py"), receiver.split("```").next().unwrap()).unwrap();
    start(folder, url, more)
}

fn start(folder: TempDir, url: &str, more: &str) -> Site {
    let settings = format!(
        "{more}\n[[webhook]]\nname = \"test\"\nurl = \"{url}\"\nsecret_file = \"secret\"\n"
    );
    let file = folder.path().join("webhooks.toml");
    fs::write(&file, settings).unwrap();
    fs::write(folder.path().join("secret"), SECRET).unwrap();
    let file = file.to_str().unwrap().to_owned();
    Site::start_in(folder, vec!["--webhooks".to_owned(), file])
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn id(request: &Request) -> String {
    request.header("webhook-id").unwrap().to_owned()
}

/// Are all of these signed?
fn check_signatures(folder: &Path, requests: &[Request]) {
    let lines = requests.iter().map(|request| {
        let headers: BTreeMap<_, _> = request.headers.iter().cloned().collect();
        serde_json::to_string(&(headers, String::from_utf8_lossy(&request.body))).unwrap() + "\n"
    });
    let input = folder.join("requests");
    fs::write(&input, lines.collect::<String>()).unwrap();
    let mut python = Command::new(PYTHON);
    python.args(["-B", "-c", CHECK]).current_dir(folder).stdin(fs::File::open(input).unwrap());
    let checked = python.output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(said.lines().count(), requests.len());
}

#[test]
fn a_receiver_that_was_away_hears_everything_once_through_restarts_of_the_server() {
    let is_there = Arc::new(AtomicBool::new(false));
    let answers = Arc::new(AtomicUsize::new(0));
    let (there, count) = (Arc::clone(&is_there), Arc::clone(&answers));
    let receiver = FakeServer::start(move |_| match there.load(Ordering::SeqCst) {
        true => Answer::json(204, ""),
        // It fails in turn, breaks off, and leads elsewhere.
        false => match count.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => Answer::json(500, "try again"),
            1 => Answer::lost(),
            _ => Answer { headers: "location: /elsewhere\r\n".to_owned(), ..Answer::json(302, "") },
        },
    });
    let mut site = site(&format!("{}/hook", receiver.url), "");
    let client = site.client("a");
    let job = site.submit(3, 1);
    site.wait(&job, |view| view["state"] == "finished");
    drop(client);
    let requests = || receiver.requests.lock().unwrap().clone();
    let heard = |kind: &str, from: usize| {
        requests().iter().skip(from).any(|request| body(request)["type"] == kind)
    };
    assert!(poll(|| heard("job.done", 0).then_some(())).is_some(), "{}", site.log("server"));
    assert!(poll(|| (requests().len() > 4).then_some(())).is_some(), "{}", site.log("server"));
    site.restart();
    is_there.store(true, Ordering::SeqCst);
    // What came to the receiver from here on, it has accepted; one answer may have been on its way.
    let failed = answers.load(Ordering::SeqCst);
    assert!(poll(|| heard("job.done", failed).then_some(())).is_some(), "{}", site.log("server"));

    // A server that is killed before it has noted an answer would deliver once more.
    let waiting = || {
        let book = fs::read(site.data().join("webhooks")).unwrap();
        let book: Value = serde_json::from_slice(&book).unwrap();
        (book["waiting"]["test"] == serde_json::json!([])).then_some(())
    };
    assert!(poll(waiting).is_some(), "{}", site.log("server"));

    // A second job shows that what is behind isn't told again, also after another restart.
    site.restart();
    let second = site.submit(4, 1);
    site.run(&["cancel", &second]);
    let done = |request: &Request| {
        let body = body(request);
        (body["type"] == "job.done").then(|| body["data"]["job"].to_string())
    };
    let has_second = || requests().iter().filter_map(done).any(|job| job == second);
    assert!(poll(|| has_second().then_some(())).is_some(), "{}", site.log("server"));

    let all = requests();
    assert!(all.iter().all(|request| request.line == "POST /hook"), "no redirect is followed");
    let (failed, accepted) = all.split_at(failed);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for request in accepted {
        *times.entry(id(request)).or_default() += 1;
    }
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    let missed: Vec<String> = failed.iter().map(id).filter(|id| !times.contains_key(id)).collect();
    assert!(missed.is_empty(), "{missed:?} of {times:?}");
    let ends: Vec<String> = accepted.iter().filter_map(done).collect();
    assert_eq!(ends.iter().collect::<BTreeSet<_>>().len(), 2, "{ends:?}");
    let kinds: BTreeSet<String> = accepted.iter().map(|of| body(of)["type"].to_string()).collect();
    assert!(kinds.contains("\"job.new-best\""), "{kinds:?}");
    check_signatures(site.path(), &all);
    assert!(!site.log("server").contains("/hook"), "the address is in no log");
}

#[test]
fn a_host_that_vanishes_and_a_job_without_hosts_are_told() {
    let receiver = FakeServer::start(|_| Answer::json(200, "{}"));
    let site = site(&receiver.url, "stalled_after = \"1s\"");
    let mut client = site.client("vanishing");
    let job = site.submit(3, 2_000);
    site.wait(&job, |view| view["hops"].as_u64() > Some(0));
    let told = |kind: &str| {
        let requests = receiver.requests.lock().unwrap();
        requests.iter().map(body).find(|body| body["type"] == kind)
    };
    // The server has seen it live by then.
    assert!(poll(|| told("job.new-best")).is_some(), "{}", site.log("server"));
    client.kill();
    let lost = poll(|| told("host.lost")).unwrap_or_else(|| panic!("{}", site.log("server")));
    assert_eq!(lost["data"]["name"], "vanishing", "{lost}");
    let stalled = poll(|| told("job.stalled")).unwrap_or_else(|| panic!("{}", site.log("server")));
    assert_eq!(stalled["data"]["job"].to_string(), job, "{stalled}");
}

#[test]
fn the_receiver_of_the_documentation_hears_of_a_job() {
    // Its port is known once it runs.
    let waiting = tempfile::tempdir().unwrap();
    fs::write(waiting.path().join("secret"), SECRET).unwrap();
    let receiver = PAGE.split("```python file=receive.py\n").nth(1).unwrap();
    fs::write(waiting.path().join("receive.py"), receiver.split("```").next().unwrap()).unwrap();
    let mut python = Command::new(PYTHON);
    python.args(["-B", "receive.py", "0"]).current_dir(waiting.path());
    let log = waiting.path().join("receiver.log");
    let _receiver: Process = spawn(python, &log);
    let text = || fs::read_to_string(&log).unwrap_or_default();
    let port = poll(|| {
        let text = text();
        Some(text.lines().next()?.strip_prefix("listening on ")?.to_owned())
    });
    let site = site(&format!("http://127.0.0.1:{}/", port.unwrap()), "");
    let job = site.submit(3, 1);
    site.run(&["cancel", &job]);
    let heard = || text().contains("job.done digits").then_some(());
    assert!(poll(heard).is_some(), "{}\n{}", text(), site.log("server"));
}

#[test]
fn a_file_that_is_wrong_is_refused_when_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("webhooks.toml");
    fs::write(&file, "[[webhook]]\nname = \"a\"\nurl = \"nowhere\"\nsecret_file = \"secret\"\n")
        .unwrap();
    let data = folder.path().join("server");
    let mut command = Command::new(crate::site::program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
    let refused = command.arg("--webhooks").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("webhook `a`: `url` can't be used"), "{said}");
}
