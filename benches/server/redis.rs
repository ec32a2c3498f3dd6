//! The same server with its journal in Redis: under load, as it starts, and as a standby takes over.

use super::{
    events, figure,
    load::{self, Load, Units},
    past::{Past, Shape},
    program::{Program, Syncs},
    redis_server::RedisServer,
    size,
};
use sojourn_server::shell::ShellConfig;
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// How long a server that has died keeps another from taking over.
const LEASE_SECONDS: f64 = 3.0;

/// A `redis-server` on a socket in a folder of its own.
struct Redis(RedisServer);

impl Redis {
    fn start(fsync: &str) -> Self {
        Self(RedisServer::with(&["--appendonly", "yes", "--appendfsync", fsync]))
    }

    fn url(&self) -> String {
        self.0.url()
    }

    /// With the journal of a data folder.
    fn with_past(fsync: &str, data: &Path) -> Self {
        let redis = Self::start(fsync);
        let copied = Command::new(env!("CARGO_BIN_EXE_sojourn"))
            .args(["migrate", "--redis-durability", fsync, "--to", &redis.url(), "--from"])
            .arg(format!("sqlite:{}", data.join("journal.sqlite").display()))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(copied.success(), "the journal is copied");
        redis
    }

    fn journal(&self, fsync: &str) -> [String; 4] {
        ["--journal".into(), self.url(), "--redis-durability".into(), fsync.into()]
    }
}

/// Cycles with Redis beside those with SQLite, on the disk as it is.
pub(crate) fn cycles(units: Units, shape: &Shape, sqlite: &Load) {
    for fsync in ["everysec", "always"] {
        let folder = tempfile::tempdir().unwrap();
        let mut past = Past::begin(folder.path(), shape);
        if units == Units::Evaluations {
            past.train_all();
        }
        past.end();
        let redis = Redis::with_past(fsync, folder.path());
        let syncs = Syncs::new(Duration::ZERO);
        let program = Program::serve_with(folder.path(), &syncs, &redis.journal(fsync));
        let ours = load::run(&program, units, &syncs);
        let what =
            if units == Units::Evaluations { "lease + result" } else { "lease + upload + result" };
        let name =
            |figure: &str| format!("{figure}, {what}, journal in Redis ({fsync}), beside SQLite");
        figure(&name("cycles"), ours.cycles, "1/s", sqlite.cycles);
        figure(&name("99th percentile of a request"), ours.slow_millis, "ms", sqlite.slow_millis);
    }
}

/// From the start of the program to a healthy answer, on a journal with as many events behind its last snapshot as
/// there can be.
pub(crate) fn replay() {
    let folder = tempfile::tempdir().unwrap();
    let mut past = Past::begin(folder.path(), &Shape { trials: 256, epochs: 40, shards: 64 });
    // A tenth of what the restart on SQLite has, as Redis has all of it in memory.
    past.train_until(events() / 10);
    past.end();
    let redis = Redis::with_past("everysec", folder.path());
    let syncs = Syncs::new(Duration::ZERO);
    let timed = |journal: &[String]| {
        let begun = Instant::now();
        Program::serve_with(folder.path(), &syncs, journal).kill();
        begun.elapsed().as_secs_f64()
    };
    let sqlite = timed(&[]);
    let took = timed(&redis.journal("everysec"));
    // Those since the last snapshot; reading that, and starting the program, is in it too.
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^53")]
    let events = ShellConfig::default().snapshot_every as f64;
    let name = format!("events replayed on a start, {events} of them, from Redis, beside SQLite");
    figure(&name, events / took, "1/s", events / sqlite);
}

/// From the kill of the active server to the standby's first healthy answer.
pub(crate) fn take_over() {
    let redis = Redis::start("always");
    let folder = tempfile::tempdir().unwrap();
    let syncs = Syncs::new(Duration::ZERO);
    let mut journal = redis.journal("always").to_vec();
    journal.extend(["--blobs".to_owned(), format!("file://{}/blobs", folder.path().display())]);
    let start = |name: &str| {
        let data = folder.path().join(name);
        Program::stand_by(&data, &syncs, &journal)
    };
    let mut names = ["one", "two"];
    let mut active = Program::serve_with(&folder.path().join(names[0]), &syncs, &journal);
    let mut turns = Vec::new();
    let count = size::of(20, 1);
    for _ in 0..count {
        let standby = start(names[1]);
        active.kill();
        let begun = Instant::now();
        while !standby.is_healthy() {
            std::thread::sleep(Duration::from_millis(5));
        }
        turns.push(begun.elapsed().as_secs_f64());
        active = standby;
        names.swap(0, 1);
    }
    turns.sort_by(f64::total_cmp);
    let name = |which: &str| {
        format!("take-over after SIGKILL, {which} of {count}, beside the lease's term")
    };
    figure(&name("median"), turns[count / 2], "s", LEASE_SECONDS);
    figure(&name("worst"), turns[count - 1], "s", LEASE_SECONDS);
}
