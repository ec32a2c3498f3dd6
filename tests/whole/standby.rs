//! Two servers with one journal in Redis: the one that stands by takes over, and the one that was away can change
//! nothing. And journals that go from a file into Redis and back.

use crate::{
    http::{HttpClient, poll},
    redis_server::RedisServer,
    site::{Process, listening, program, spawn},
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A server's folder, process and address.
struct Server {
    data: PathBuf,
    process: Process,
    url: String,
}

impl Server {
    fn start(folder: &Path, name: &str, journal: &[&str]) -> Self {
        let data = folder.join(name);
        let mut command = Command::new(program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).args(journal);
        let _ = fs::remove_file(data.join("address"));
        let log = folder.join(format!("{name}.log"));
        let mut process = spawn(command, &log);
        let url = format!("http://{}", listening(&data, &mut process, &log));
        Self { data, process, url }
    }

    fn token(&self) -> String {
        fs::read_to_string(self.data.join("admin-token")).unwrap().trim().to_owned()
    }
}

/// A folder with a job in it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|i| format!("{i},{},{}\n", i * 2, i % 2)).collect();
    fs::write(folder.path().join("t.csv"), format!("a,b,y\n{rows}")).unwrap();
    let job = "name = \"small\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 2\n\
               [[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 2\n";
    fs::write(folder.path().join("job.toml"), job).unwrap();
    folder
}

fn run(folder: &Path, server: &str, token: &str, args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .env("SOJOURN_SERVER", server)
        .env("SOJOURN_TOKEN", token)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("XDG_DATA_HOME", folder.join("share"))
        .current_dir(folder)
        .output()
        .unwrap()
}

fn json(folder: &Path, server: &str, token: &str, args: &[&str]) -> Value {
    let output = run(folder, server, token, &[args, &["--json"]].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_standby_takes_over_and_the_old_leader_changes_nothing() {
    let redis = RedisServer::start();
    let folder = folder();
    let path = folder.path();
    let blobs = format!("file://{}", path.join("blobs").display());
    let journal = ["--journal", &redis.url(), "--blobs", &blobs];
    let mut one = Server::start(path, "one", &journal);
    let mut two = Server::start(path, "two", &journal);
    let token = one.token();
    assert!(!two.data.join("admin-token").exists(), "the servers share hashes, not tokens");
    let both = format!("{},{}", two.url, one.url);

    // The standby says so, and where the other is.
    let output = run(path, &two.url, &token, &["jobs"]);
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("stands by") && told.contains(&one.url), "{told}");
    let submitted = json(path, &both, &token, &["submit", "job.toml"]);
    let before = json(path, &both, &token, &["jobs"]);
    let rotated = run(path, &both, &token, &["token", "rotate", "admin"]);
    assert!(rotated.status.success(), "{}", String::from_utf8_lossy(&rotated.stderr));
    let (old, token) = (token, one.token());
    assert_eq!(String::from_utf8_lossy(&rotated.stdout).trim(), token);

    one.process.kill();
    let http = HttpClient::new(&token, None);
    let after = poll(|| http.get(&two.url, "jobs")).expect("nobody took over");
    assert_eq!(after, before, "what was acknowledged is there");
    let refused = run(path, &two.url, &old, &["jobs"]);
    assert_eq!(refused.status.code(), Some(2), "the token of before opens nothing here either");
    assert_eq!(redis.ask::<u64>(&["HGET", "{sojourn}:meta", "fence"]), 2, "one take-over");

    // Stopped over its lease, and continued once the other has taken over.
    let mut one = Server::start(path, "one", &journal);
    let both = format!("{},{}", two.url, one.url);
    two.process.signal(rustix::process::Signal::STOP);
    let cancel =
        |server: &str| run(path, server, &token, &["cancel", &submitted["job"].to_string()]);
    poll(|| http.get(&one.url, "jobs")).expect("nobody took over");
    two.process.signal(rustix::process::Signal::CONT);
    let output = cancel(&two.url);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_eq!(json(path, &one.url, &token, &["jobs"]), before);
    assert!(cancel(&both).status.success());
    assert_eq!(json(path, &both, &token, &["jobs"])[0]["state"], "cancelled");

    // One that ends as it should leaves at once.
    assert_eq!(one.process.end(), Some(0));
    let output = run(path, &two.url, &token, &["jobs", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(two.process.end(), Some(0));
}

/// Work that the active server acknowledges would be in its own folder alone.
#[test]
fn a_server_with_a_store_of_its_own_does_not_stand_by() {
    let redis = RedisServer::start();
    let folder = folder();
    let path = folder.path();
    let journal = ["--journal", &redis.url()];
    let mut one = Server::start(path, "one", &journal);
    let mut command = Command::new(program());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(path.join("two"))
        .args(journal);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("start all servers of a journal with the same `--blobs`"), "{told}");
    // The first goes on, and may be started again.
    assert_eq!(one.process.end(), Some(0));
    let mut one = Server::start(path, "one", &journal);
    assert_eq!(one.process.end(), Some(0));
}

/// Events that the server wrote from then on would be gone with its folder.
#[test]
fn a_server_whose_folder_is_deleted_acknowledges_nothing_more_and_ends() {
    let redis = RedisServer::start();
    for journal in [&[][..], &["--journal", &redis.url()]] {
        let folder = folder();
        let path = folder.path();
        let mut server = Server::start(path, "one", journal);
        let token = server.token();
        json(path, &server.url, &token, &["submit", "job.toml"]);
        fs::remove_dir_all(&server.data).unwrap();
        let output = run(path, &server.url, &token, &["pause", "1"]);
        assert_eq!(output.status.code(), Some(3), "{journal:?}");
        assert_eq!(server.process.wait(), Some(1));
        let log = fs::read_to_string(path.join("one.log")).unwrap();
        assert!(log.contains("was deleted, moved or replaced while the server ran"), "{log}");
    }
}

/// The server knows of events that the journal lacks, so it can't go on; the others can.
#[test]
fn a_server_that_cannot_go_on_from_the_journal_leaves_it_to_the_others() {
    let redis = RedisServer::start();
    let folder = folder();
    let path = folder.path();
    let blobs = format!("file://{}", path.join("blobs").display());
    let journal = ["--journal", &redis.url(), "--blobs", &blobs];
    let mut one = Server::start(path, "one", &journal);
    let token = one.token();
    json(path, &one.url, &token, &["submit", "job.toml"]);
    let before = json(path, &one.url, &token, &["jobs"]);
    let mut broken = Server::start(path, "broken", &journal);
    fs::write(broken.data.join("redis.reached"), "00000000000000999999\n").unwrap();

    // It is the first to take over, and there is nobody else yet.
    assert_eq!(one.process.end(), Some(0));
    let log = || fs::read_to_string(path.join("broken.log")).unwrap();
    let left = "can't go on from the journal; leaving it to other servers";
    poll(|| log().contains(left).then_some(())).expect("it says so");
    let output = run(path, &broken.url, &token, &["jobs"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("can't go on from the journal") || told.contains("stands by"), "{told}");

    let two = Server::start(path, "two", &journal);
    let http = HttpClient::new(&token, None);
    let after = poll(|| http.get(&two.url, "jobs")).expect("nobody could take over");
    assert_eq!(after, before);
    let stands_by = || {
        let output = run(path, &broken.url, &token, &["jobs"]);
        String::from_utf8_lossy(&output.stderr).contains(&two.url).then_some(())
    };
    poll(stands_by).expect("it never stood by");
    assert_eq!(broken.process.end(), Some(0));
}

/// A machine may start before its Redis, and an assimilator before there is an active server.
#[test]
fn a_server_waits_for_a_redis_that_is_not_there_yet_and_an_assimilator_for_the_server() {
    let mut redis = RedisServer::start();
    let folder = folder();
    let path = folder.path();
    let blobs = format!("file://{}", path.join("blobs").display());
    let journal = ["--journal", &redis.url(), "--blobs", &blobs];
    let data = path.join("one");
    let mut one = Server::start(path, "one", &journal);
    let token = fs::read_to_string(data.join("assimilator-token")).unwrap();
    assert_eq!(one.process.end(), Some(0));
    let mut command = Command::new(program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).args(journal);
    redis.kill();
    let mut waiting = spawn(command, &path.join("waits.log"));
    let log = || fs::read_to_string(path.join("waits.log")).unwrap_or_default();
    poll(|| log().contains("waiting for the journal").then_some(())).expect("it says so");
    assert!(waiting.is_running(), "{}", log());
    redis.start_again();
    let url = format!("http://{}", listening(&data, &mut waiting, &path.join("waits.log")));

    // Another that stands by, and an assimilator that knows only this one.
    let mut two = Server::start(path, "two", &journal);
    let mut command = Command::new(program());
    command.args(["assimilate", "--server", &two.url, "--blobs", &blobs, "--token", token.trim()]);
    let mut assimilator = spawn(command, &path.join("assimilator.log"));
    let log = || fs::read_to_string(path.join("assimilator.log")).unwrap_or_default();
    poll(|| log().contains("no server is active yet").then_some(())).expect("it says so");
    waiting.kill();
    poll(|| log().contains("assimilating").then_some(())).expect("it begins");
    assert!(assimilator.is_running(), "{}", log());
    assert_ne!(url, two.url);
    assert_eq!(assimilator.end(), Some(0));
    assert_eq!(two.process.end(), Some(0));
}

#[test]
fn a_server_waits_for_a_redis_that_died() {
    let mut redis = RedisServer::start();
    let folder = folder();
    let path = folder.path();
    let mut server = Server::start(path, "one", &["--journal", &redis.url()]);
    let token = server.token();
    json(path, &server.url, &token, &["submit", "job.toml"]);
    let before = json(path, &server.url, &token, &["jobs"]);
    redis.kill();
    let output = run(path, &server.url, &token, &["cancel", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    redis.start_again();
    let http = HttpClient::new(&token, None);
    let after = poll(|| http.get(&server.url, "jobs")).expect("the server never came back");
    assert_eq!(after, before);
    assert!(run(path, &server.url, &token, &["cancel", "1"]).status.success());
    assert_eq!(server.process.end(), Some(0));
}

#[test]
fn a_journal_goes_into_redis_and_back() {
    let redis = RedisServer::start();
    let folder = folder();
    let path = folder.path();
    let mut server = Server::start(path, "one", &[]);
    let token = server.token();
    json(path, &server.url, &token, &["submit", "job.toml"]);
    let before = json(path, &server.url, &token, &["jobs"]);
    let (sqlite, url) = ("sqlite:one/journal.sqlite", redis.url());
    let migrate = |from: &str, to: &str| {
        run(path, "", "", &["migrate", "--from", from, "--to", to, "--json"])
    };
    let refused = migrate(sqlite, &url);
    assert_eq!(refused.status.code(), Some(2), "while a server runs");
    assert_eq!(server.process.end(), Some(0));
    let copied = migrate(sqlite, &url);
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let copied: Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert_eq!(copied["jobs"], 1);
    let again = migrate(sqlite, &url);
    assert_eq!(again.status.code(), Some(2), "nothing is written over");

    // The server of before, with its blobs.
    let mut server = Server::start(path, "one", &["--journal", &url]);
    assert_eq!(server.token(), token);
    assert_eq!(json(path, &server.url, &token, &["jobs"]), before);
    let active = migrate(&url, "sqlite:two/journal.sqlite");
    assert_eq!(active.status.code(), Some(2), "{}", String::from_utf8_lossy(&active.stderr));
    assert!(run(path, &server.url, &token, &["cancel", "1"]).status.success());
    let before = json(path, &server.url, &token, &["jobs"]);
    assert_eq!(server.process.end(), Some(0));

    fs::remove_dir_all(path.join("two")).unwrap();
    let back = migrate(&url, "sqlite:two/journal.sqlite");
    assert!(back.status.success(), "{}", String::from_utf8_lossy(&back.stderr));
    let server = Server::start(path, "two", &[]);
    assert!(!path.join("two/admin-token").exists(), "the hashes go along");
    assert_eq!(json(path, &server.url, &token, &["jobs"]), before);
    let missing = migrate("sqlite:none.sqlite", &url);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no file"));
}
