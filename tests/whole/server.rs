//! The command line against the real server, as processes: `serve`, and what is asked of it.

use crate::support::{Folder, sojourn};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Output, Stdio},
};

const JOB: &str = r#"name = "small"
[data]
train = "t.csv"
label = "y"
shards = 2
[[model]]
arch = "mlp"
hidden = { choice = [[4], [8]] }
[training]
epochs = 2
"#;

/// A server's process on a port of its own; killed when dropped.
struct Server {
    child: Child,
    url: String,
    announced: String,
}

impl Server {
    fn start(data: &Folder) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sojourn"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let announced: Vec<String> = (0..3).map(|_| lines.next().unwrap().unwrap()).collect();
        let url = announced[0].strip_prefix("serving at ").unwrap().to_owned();
        Self { child, url, announced: announced.join("\n") }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, as some tests want it to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server's data, a job with its data, and a cache.
struct World {
    data: Folder,
    job: Folder,
    cache: Folder,
}

impl World {
    fn new() -> Self {
        let rows: String = (0..40).map(|i| format!("{i},{},{}\n", i * 2, i % 2)).collect();
        Self {
            data: Folder::with(&[]),
            job: Folder::with(&[("job.toml", JOB), ("t.csv", &format!("a,b,y\n{rows}"))]),
            cache: Folder::with(&[]),
        }
    }

    /// Runs a command with the server's token at hand.
    fn run(&self, server: &Server, args: &[&str]) -> Output {
        sojourn(args)
            .env("SOJOURN_SERVER", &server.url)
            .env("SOJOURN_DATA", self.data.path())
            .env("XDG_CACHE_HOME", self.cache.path())
            .current_dir(self.job.path())
            .output()
            .unwrap()
    }

    /// The JSON of a command, which must succeed.
    fn json(&self, server: &Server, args: &[&str]) -> Value {
        let output = self.run(server, args);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_job_is_submitted_once_looked_at_and_cancelled() {
    let world = World::new();
    let server = Server::start(&world.data);
    let first = world.json(&server, &["submit", "job.toml", "--json"]);
    assert_eq!((&first["job"], &first["trials"]), (&1.into(), &2.into()));
    assert_eq!((&first["submitted"], &first["blobs_sent"]), (&"new".into(), &3.into()));
    let second = world.json(&server, &["submit", "job.toml", "--json"]);
    assert_eq!((&second["job"], &second["submitted"]), (&1.into(), &"existing".into()));
    assert_eq!((&second["blobs_sent"], &second["bytes_sent"]), (&0.into(), &0.into()));
    let again = world.json(&server, &["submit", "job.toml", "--json", "--again"]);
    assert_eq!((&again["job"], &again["submitted"]), (&2.into(), &"new".into()));

    let noted = ["submit", "job.toml", "--json", "--note", "with augmentation"];
    assert_eq!(world.json(&server, &noted)["job"], 2);
    let note = || world.json(&server, &["jobs", "--json"])[1]["note"].clone();
    assert_eq!(note(), "with augmentation");
    let set = world.run(&server, &["set", "2", "--note", "too slow"]);
    assert_eq!(String::from_utf8_lossy(&set.stdout), "job 2 `small` has the note: too slow\n");
    assert_eq!(note(), "too slow");
    let wrong = world.run(&server, &["set", "2", "--note", "two\nlines"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");

    let status = world.json(&server, &["status", "1", "--json"]);
    assert_eq!(status["summary"]["hops_expected"], 8);
    assert_eq!(world.json(&server, &["trials", "1", "--json"]).as_array().unwrap().len(), 2);
    assert_eq!(world.json(&server, &["hosts", "--json"]), serde_json::json!([]));
    let events = world.run(&server, &["events", "1"]);
    assert!(String::from_utf8_lossy(&events.stdout).contains(" job 1 `small` was submitted"));

    assert_eq!(world.json(&server, &["cancel", "1", "--json"])["state"], "cancelled");
    let watched = world.run(&server, &["status", "1", "--watch"]);
    assert_eq!(told(&watched), (Some(1), "error: job 1 was cancelled\n".into()));
    let waited = world.run(&server, &["export", "1", "-o", "m.safetensors"]);
    assert_eq!(
        told(&waited),
        (Some(1), "error: job 1 has no best trial yet: none was evaluated\n".into())
    );
    assert_eq!(told(&world.run(&server, &["status", "9"])), (Some(2), "error: no job 9\n".into()));
}

#[test]
fn submitted_jobs_survive_a_killed_server() {
    let world = World::new();
    let server = Server::start(&world.data);
    let first = world.json(&server, &["submit", "job.toml", "--json"]);
    server.signal("-KILL");
    drop(server);
    let server = Server::start(&world.data);
    let jobs = world.json(&server, &["jobs", "--json"]);
    assert_eq!(jobs.as_array().unwrap().len(), 1);
    assert_eq!(jobs[0]["job"], first["job"]);
    let second = world.json(&server, &["submit", "job.toml", "--json"]);
    assert_eq!((&second["job"], &second["blobs_sent"]), (&first["job"], &0.into()));
}

#[test]
fn a_server_says_how_machines_join_and_ends_in_good_order() {
    let world = World::new();
    let mut server = Server::start(&world.data);
    let path = world.data.path().join("enrol-token");
    let token = std::fs::read_to_string(&path).unwrap();
    let line = format!("sojourn client --server {} --token-file {}", server.url, path.display());
    assert!(server.announced.contains(&line), "{}", server.announced);
    assert!(!server.announced.contains(token.trim()), "terminals and logs keep what is printed");
    server.signal("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_second_server_on_one_folder_or_port_is_refused() {
    let world = World::new();
    let server = Server::start(&world.data);
    let output = sojourn(&["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(world.data.path())
        .output()
        .unwrap();
    let folder = world.data.path().display();
    assert_eq!(
        told(&output),
        (
            Some(2),
            format!(
                "error: another server uses the data folder `{folder}`: commands on this machine ask that one already; to run a second \
                 server, give it a folder and an address of its own with `--data DIR` and `--listen ADDRESS`\n"
            )
        )
    );
    let address = server.url.strip_prefix("http://").unwrap();
    let other = Folder::with(&[]);
    let output =
        sojourn(&["serve", "--listen", address, "--data"]).arg(other.path()).output().unwrap();
    assert_eq!(
        told(&output),
        (
            Some(2),
            format!("error: another program listens on {address}: give another address or port\n")
        )
    );
}

#[test]
fn wrong_tokens_and_tokens_of_another_kind_are_refused() {
    let world = World::new();
    let server = Server::start(&world.data);
    let with = |token: &str| told(&world.run(&server, &["jobs", "--token", token]));
    let (code, message) = with("wrong");
    assert_eq!(code, Some(2));
    assert!(message.contains("refuses (the token is unknown or was revoked)"), "{message}");
    let enrol = std::fs::read_to_string(world.data.path().join("enrol-token")).unwrap();
    let (code, message) = with(enrol.trim());
    assert_eq!(code, Some(2), "machines may not look at jobs: {message}");
    assert!(
        message.contains("this is a token for machines to enrol with, and a user's"),
        "{message}"
    );
    let mut none = sojourn(&["jobs"]);
    none.env("SOJOURN_SERVER", &server.url).env("SOJOURN_DATA", "/nowhere");
    let (code, message) = told(&none.output().unwrap());
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("refuses (no token was sent)"), "{message}");
    let (code, _) = with("two\nlines");
    assert_eq!(code, Some(2));
}

#[test]
fn watching_survives_a_killed_server() {
    let world = World::new();
    let first = Server::start(&world.data);
    world.json(&first, &["submit", "job.toml", "--json"]);
    let address = first.url.strip_prefix("http://").unwrap().to_owned();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_sojourn"))
        .args(["status", "1", "--watch", "--server", &first.url])
        .env("SOJOURN_DATA", world.data.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("job 1 running"));
    first.signal("-KILL");
    drop(first);
    let mut errors = BufReader::new(watch.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("no server at") && line.contains("trying again"), "{line}");

    // The same address, so that whoever waits finds it again.
    let mut second = Command::new(env!("CARGO_BIN_EXE_sojourn"))
        .args(["serve", "--listen", &address, "--data"])
        .arg(world.data.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut announced = String::new();
    BufReader::new(second.stdout.as_mut().unwrap()).read_line(&mut announced).unwrap();
    let server = Server { child: second, url: format!("http://{address}"), announced };
    world.json(&server, &["cancel", "1", "--json"]);
    assert!(lines.next().unwrap().unwrap().starts_with("job 1 cancelled"));
    assert_eq!(watch.wait().unwrap().code(), Some(1));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("error: job 1 was cancelled\n"), "{rest}");
}
