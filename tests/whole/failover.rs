//! The active server and its Redis die together, after events were acknowledged, and a replica takes the place of that Redis.
//! What was acknowledged is there, or the server that takes over refuses in words.

use crate::{
    http::{HttpClient, poll},
    redis_server::RedisServer,
    replicas::{follow, is_in_step, primary},
    site::{Process, listening, program, spawn},
};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// Hops of the job: two shards, two trials, twelve epochs.
const HOPS: u64 = 48;
/// The note of how far the journal has come, in the store of the blobs.
const NOTE: &str = "journal-reached-sojourn";

/// Two servers with one journal, in a Redis with a replica. All know the Redis by one path, which is set to another when that
/// takes its place.
struct Site {
    folder: TempDir,
    primary: RedisServer,
    replica: RedisServer,
    replica_port: u16,
    token: String,
    http: HttpClient,
    active: (Process, String),
    standby: (Process, String),
}

impl Site {
    fn start(durability: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fsync = ["--appendfsync", if durability == "everysec" { "everysec" } else { "always" }];
        let (primary, primary_port) = primary(&fsync);
        let (replica, replica_port) = crate::replicas::primary(&fsync);
        follow(&replica, primary_port);
        poll(|| is_in_step(&replica, &primary).then_some(())).expect("it never followed");
        set_path(folder.path(), &primary);
        let active = serve(folder.path(), "one", durability);
        let standby = serve(folder.path(), "two", durability);
        let token = fs::read_to_string(folder.path().join("one/admin-token")).unwrap();
        let token = token.trim().to_owned();
        let http = HttpClient::new(&token, None);
        Self { folder, primary, replica, replica_port, token, http, active, standby }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    fn servers(&self) -> String {
        format!("{},{}", self.active.1, self.standby.1)
    }

    /// Runs a command against the servers; its JSON.
    fn run(&self, args: &[&str]) -> Value {
        let output = Command::new(program())
            .args(args)
            .arg("--json")
            .env("SOJOURN_SERVER", self.servers())
            .env("SOJOURN_TOKEN", &self.token)
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_DATA_HOME", self.path().join("share"))
            .current_dir(self.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn submit(&self) -> String {
        let rows: String = (0..40).map(|i| format!("{i},{},{}\n", i * 2, i % 2)).collect();
        fs::write(self.path().join("t.csv"), format!("a,b,y\n{rows}")).unwrap();
        let job = "name = \"small\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 2\n[[model]]\narch = \"mlp\"\n\
                   hidden = [4]\n[training]\nepochs = 12\noptimizer = { name = \"sgd\", lr = { choice = [0.1, 0.2] } }\n";
        fs::write(self.path().join("job.toml"), job).unwrap();
        self.run(&["submit", "job.toml"])["job"].to_string()
    }

    fn client(&self) -> Process {
        let mut command = Command::new(program());
        command
            .args(["client", "--server", &self.servers(), "--slots", "1", "--token-file"])
            .arg(self.path().join("one/enrol-token"))
            .arg("--data")
            .arg(self.path().join("client"))
            .env("SOJOURN_METADATA", "none");
        spawn(command, &self.path().join("client.log"))
    }

    /// The job, as the active server has it; none while nobody serves.
    fn job(&self) -> Option<Value> {
        Some(self.http.get(&self.servers(), "jobs")?[0].clone())
    }

    fn wait(&self, done: impl Fn(&Value) -> bool) -> Value {
        let job = poll(|| self.job().filter(&done));
        job.unwrap_or_else(|| panic!("waited in vain:\n{}\n{}", self.log("one"), self.log("two")))
    }

    /// Waits until the replica has all that the primary has by now.
    fn await_replica(&self) {
        let offset = |redis: &RedisServer, field: &str| -> u64 {
            let told: String = redis.ask(&["INFO", "replication"]);
            let value = told.lines().find_map(|line| line.strip_prefix(field));
            value.unwrap_or_else(|| panic!("no `{field}`: {told}")).parse().unwrap()
        };
        let wanted = offset(&self.primary, "master_repl_offset:");
        let has = || (offset(&self.replica, "slave_repl_offset:") >= wanted).then_some(());
        poll(has).expect("it never had all");
    }

    /// Cuts the replica off: it hears of nothing more.
    fn cut_off_the_replica(&self) {
        let _: String = self.replica.ask(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Waits until the servers' note says that the journal has come as far as it has by now.
    fn noted(&self) {
        let health = self.http.get(&self.active.1, "health").unwrap();
        let reached = health["journal_position"].as_u64().unwrap();
        let noted = || {
            let note = fs::read_to_string(self.note()).ok()?;
            let position: u64 = note.split(' ').next()?.parse().ok()?;
            (position >= reached).then_some(())
        };
        poll(noted).expect("it was never noted");
    }

    fn note(&self) -> PathBuf {
        self.path().join("store").join(NOTE)
    }

    /// The active server and the primary die, and the replica is the primary from now on.
    fn fail_over(&mut self) {
        self.active.0.kill();
        self.primary.kill();
        self.cut_off_the_replica();
        set_path(self.path(), &self.replica);
    }

    /// Waits until a server's log says this.
    fn says(&self, name: &str, text: &str) {
        let said = poll(|| self.log(name).contains(text).then_some(()));
        assert!(said.is_some(), "no `{text}` in:\n{}", self.log(name));
    }

    fn is_replayed(&self) {
        for trial in ["0", "1"] {
            let replay = self.run(&["replay", "1", "--trial", trial]);
            assert_eq!(replay["verdict"], "identical", "{replay}");
        }
    }
}

/// Where the servers find their Redis.
fn redis_path(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}

/// Has that path lead to this Redis.
fn set_path(folder: &Path, redis: &RedisServer) {
    let new = folder.join("new.sock");
    symlink(redis.socket(), &new).unwrap();
    fs::rename(new, redis_path(folder)).unwrap();
}

fn serve(folder: &Path, name: &str, durability: &str) -> (Process, String) {
    let data = folder.join(name);
    let mut command = Command::new(program());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--most-hops", "1"])
        .args(["--journal", &format!("redis+unix://{}", redis_path(folder).display())])
        .args(["--blobs", &format!("file://{}", folder.join("store").display())])
        .args(["--redis-durability", durability, "--data"])
        .arg(&data);
    let log = folder.join(format!("{name}.log"));
    let mut process = spawn(command, &log);
    let url = format!("http://{}", listening(&data, &mut process, &log));
    (process, url)
}

#[test]
fn with_wait_1_all_that_was_acknowledged_is_there_after_both_died() {
    let mut site = Site::start("always,wait:1");
    site.submit();
    let _client = site.client();
    let before = site.wait(|job| job["hops"].as_u64().unwrap() >= 5);
    site.fail_over();
    // Alone it doesn't keep what was chosen.
    site.says("two", "0 replicas that are connected");
    let (other, _) = primary(&["--appendfsync", "always"]);
    follow(&other, site.replica_port);
    let after = site.wait(|job| job["state"] != "failed");
    assert!(after["hops"].as_u64() >= before["hops"].as_u64(), "{after} after {before}");
    let done = site.wait(|job| job["state"] != "running");
    assert_eq!((&done["state"], &done["hops"]), (&"finished".into(), &HOPS.into()), "{done}");
    site.is_replayed();
}

#[test]
fn a_replica_that_had_all_events_goes_on_where_the_primary_died() {
    for durability in ["always", "everysec"] {
        let mut site = Site::start(durability);
        site.submit();
        let mut client = site.client();
        site.wait(|job| job["hops"].as_u64().unwrap() >= 5);
        // Nothing more comes, and the replica has all of it.
        assert_eq!(client.end(), Some(0));
        let before = site.job().unwrap();
        site.await_replica();
        site.fail_over();
        let after = site.wait(|_| true);
        assert!(after["hops"].as_u64() >= before["hops"].as_u64(), "{durability}: {after}");
        let _client = site.client();
        let done = site.wait(|job| job["state"] != "running");
        assert_eq!((&done["state"], &done["hops"]), (&"finished".into(), &HOPS.into()), "{done}");
        site.is_replayed();
    }
}

#[test]
fn a_server_that_takes_over_a_redis_without_the_last_acknowledged_events_refuses_in_words() {
    let mut site = Site::start("always");
    let job = site.submit();
    site.await_replica();
    site.cut_off_the_replica();
    assert_eq!(site.run(&["pause", &job])["state"], "paused");
    site.noted();
    site.fail_over();
    site.says("two", "Redis has lost acknowledged events");
    site.says("two", "leaving it to other servers");
    assert_eq!(site.job(), None, "nobody serves a journal that lacks what was acknowledged");

    // Somebody has decided to go on with what is there.
    fs::remove_file(site.note()).unwrap();
    let after = site.wait(|_| true);
    assert_eq!(after["state"], "running", "the pause is lost");
}

#[test]
fn with_everysec_a_server_says_that_acknowledged_events_are_lost_and_goes_on() {
    let mut site = Site::start("everysec");
    let job = site.submit();
    site.await_replica();
    site.cut_off_the_replica();
    assert_eq!(site.run(&["pause", &job])["state"], "paused");
    site.noted();
    site.fail_over();
    let after = site.wait(|_| true);
    assert_eq!(after["state"], "running", "the pause is lost");
    site.says("two", "LOST acknowledged events");
}
