//! Faults that a journal in Redis can suffer: other servers, a Redis that dies, forgets, is full or can't keep what was chosen.

use crate::{
    contract::{at, contract, records},
    redis_server::RedisServer,
};
use sojourn_core::JournalPosition;
use sojourn_protocol::{digest::Digest, ids::JobId, tokens::ServerToken};
use sojourn_server::{
    DataFolder, ServerTokens,
    journal::{JournalError, OpenJournal, RedisJournals, RedisSettings, RedisUrl, Snapshot},
};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

/// The lease of servers here: none of them is to lose it by being slow.
const LEASE: Duration = Duration::from_secs(600);

/// One server's folder and view of a journal.
pub(crate) struct Server {
    pub(crate) journals: RedisJournals,
    folder: TempDir,
}

pub(crate) fn settings(url: &str, durability: &str, note: PathBuf) -> RedisSettings {
    RedisSettings {
        url: RedisUrl::of(url).unwrap(),
        durability: durability.parse().unwrap(),
        lease: LEASE,
        note,
    }
}

fn server_with(redis: &RedisServer, durability: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&redis.url(), durability, folder.path().join("reached"));
    Server { journals: RedisJournals::connect(settings).unwrap(), folder }
}

pub(crate) fn server(redis: &RedisServer) -> Server {
    server_with(redis, "always")
}

#[test]
fn redis_keeps_the_contract() {
    let redis = RedisServer::start();
    let server = server(&redis);
    contract(|| server.journals.open().unwrap());
}

#[test]
fn deployments_in_one_redis_are_independent() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let url = format!("{}?name={name}", redis.url());
        RedisJournals::connect(settings(&url, "always", folder.path().join(name))).unwrap()
    };
    let (one, two) = (open("one"), open("two"));
    one.open().unwrap().append(&records(1..=3)).unwrap();
    let mut journal = two.open().unwrap();
    assert_eq!(journal.tail(), at(0));
    journal.append(&records(1..=1)).unwrap();
    assert_eq!(one.open().unwrap().tail(), at(3));
}

#[test]
fn one_server_is_active_and_the_others_know_its_url() {
    let redis = RedisServer::start();
    let (one, two) = (server(&redis), server(&redis));
    one.journals.advertise("http://one:8642");
    assert!(!one.journals.is_ours());
    let mut journal = one.journals.open().unwrap();
    assert!(one.journals.is_ours());
    journal.append(&records(1..=3)).unwrap();
    for _ in 0..2 {
        let refused = two.journals.open().err().unwrap();
        assert!(
            matches!(&refused, JournalError::Standby { active } if active == "http://one:8642"),
            "{refused}"
        );
        assert!(!two.journals.is_ours());
    }
    // It ends as it should: nobody waits for the end of its lease.
    one.journals.leave();
    assert!(!one.journals.is_ours());
    let mut journal = two.journals.open().unwrap();
    assert_eq!(journal.read(at(0), 9).unwrap(), records(1..=3));
    journal.append(&records(4..=5)).unwrap();
    assert!(matches!(one.journals.open(), Err(JournalError::Standby { .. })));
}

#[test]
fn a_server_that_lost_its_lease_cannot_write() {
    let redis = RedisServer::start();
    let (one, two) = (server(&redis), server(&redis));
    let mut old = one.journals.open().unwrap();
    old.append(&records(1..=40)).unwrap();
    old.save_snapshot(&Snapshot { position: at(20), bytes: b"old".into() }).unwrap();
    // As if it had been stopped until its lease ran out.
    let _: u32 = redis.ask(&["DEL", "{sojourn}:lease"]);
    let mut new = two.journals.open().unwrap();
    assert_eq!(new.tail(), at(40));
    let before: Vec<Vec<u8>> = redis.ask(&["XRANGE", "{sojourn}:events", "-", "+", "COUNT", "0"]);
    for _ in 0..2 {
        let refused = old.append(&records(41..=41)).unwrap_err();
        assert!(matches!(refused, JournalError::Fenced), "{refused}");
    }
    let snapshot = Snapshot { position: at(30), bytes: b"forged".into() };
    assert!(matches!(old.save_snapshot(&snapshot), Err(JournalError::Fenced)));
    assert!(matches!(old.trim(at(15)), Err(JournalError::Fenced)));
    let rotated = one.journals.set_secret("admin-token-sha256", "forged");
    assert!(matches!(rotated, Err(JournalError::Fenced)));
    assert_eq!(two.journals.existing_secret("admin-token-sha256").unwrap(), None);
    two.journals.set_secret("admin-token-sha256", "new").unwrap();
    let after: Vec<Vec<u8>> = redis.ask(&["XRANGE", "{sojourn}:events", "-", "+", "COUNT", "0"]);
    assert_eq!(before, after);

    new.append(&records(41..=42)).unwrap();
    assert_eq!(new.read(at(0), 100).unwrap(), records(1..=42));
    assert_eq!(new.load_snapshot().unwrap().unwrap().bytes, b"old");
    assert_eq!(new.anchor(), at(0));
    // Even its own lease doesn't come back to it.
    assert!(matches!(one.journals.open(), Err(JournalError::Standby { .. })));
}

#[test]
fn an_earlier_writer_of_the_same_process_cannot_write() {
    let redis = RedisServer::start();
    let server = server(&redis);
    let mut old = server.journals.open().unwrap();
    let mut new = server.journals.open().unwrap();
    assert!(matches!(old.append(&records(1..=1)), Err(JournalError::Fenced)));
    new.append(&records(1..=1)).unwrap();
}

#[test]
fn acknowledged_events_survive_a_kill_of_redis() {
    let mut redis = RedisServer::start();
    let server = server(&redis);
    let mut journal = server.journals.open().unwrap();
    journal.append(&records(1..=30)).unwrap();
    redis.kill();
    assert!(matches!(journal.append(&records(31..=31)), Err(JournalError::Storage(_))));
    let refused = server.journals.open().err().unwrap();
    assert!(matches!(refused, JournalError::Unreachable { .. }), "{refused}");
    redis.start_again();
    let mut journal = server.journals.open().unwrap();
    assert_eq!(journal.read(at(0), 100).unwrap(), records(1..=30));
    journal.append(&records(31..=32)).unwrap();
}

#[test]
fn a_redis_below_its_high_water_mark_is_refused_if_it_must_be_durable() {
    let redis = RedisServer::start();
    let (careful, careless) = (server(&redis), server_with(&redis, "everysec"));
    careful.journals.open().unwrap().append(&records(1..=30)).unwrap();
    careful.journals.leave();
    careless.journals.open().unwrap().append(&records(31..=33)).unwrap();
    careless.journals.leave();
    careful.journals.open().unwrap().append(&records(34..=35)).unwrap();
    careful.journals.leave();
    // An older copy of its state: the last two groups are missing.
    for position in 34..=35 {
        let _: u32 = redis.ask(&["XDEL", "{sojourn}:events", &format!("{position}-0")]);
    }
    let refused = careless.journals.open().err().unwrap();
    assert!(
        matches!(&refused, JournalError::Corrupt { position: JournalPosition(34), .. }),
        "{refused}"
    );
    careless.journals.leave();

    let _: String = redis.ask(&["FLUSHALL"]);
    for server in [&careful, &careless] {
        let refused = server.journals.open().err().unwrap();
        assert!(matches!(&refused, JournalError::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("had reached"), "{refused}");
        server.journals.leave();
    }
}

#[test]
fn a_full_redis_refuses_appends_until_there_is_room() {
    let redis = RedisServer::start();
    let server = server(&redis);
    let mut journal = server.journals.open().unwrap();
    journal.append(&records(1..=10)).unwrap();
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = journal.append(&records(11..=20)).unwrap_err();
    assert!(matches!(refused, JournalError::Storage(_)), "{refused}");
    assert!(server.journals.open().is_err());
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    let mut journal = server.journals.open().unwrap();
    assert_eq!(journal.tail(), at(10), "all or none of a group");
    journal.append(&records(11..=20)).unwrap();
}

#[test]
fn a_redis_that_is_not_durable_enough_is_refused() {
    let redis = RedisServer::with(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let folder = tempfile::tempdir().unwrap();
    let connect = |durability: &str| {
        let note = folder.path().join("reached");
        RedisJournals::connect(settings(&redis.url(), durability, note))
    };
    let refused = connect("always").unwrap_err().to_string();
    assert!(refused.contains("once a second") && refused.contains("CONFIG SET"), "{refused}");
    let refused = connect("everysec,wait:1").unwrap_err().to_string();
    assert!(refused.contains("0 replicas"), "{refused}");
    let weak = connect("everysec").unwrap();
    assert!(weak.durability().unwrap().contains("last second"), "{:?}", weak.durability());
    weak.open().unwrap();
    let _: String = redis.ask(&["CONFIG", "SET", "appendonly", "no"]);
    assert!(matches!(weak.open(), Err(JournalError::Weak(_))));
    let none = connect("none").unwrap();
    assert!(none.durability().unwrap().contains("EVERYTHING"), "{:?}", none.durability());
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert!(connect("none").unwrap_err().to_string().contains("noeviction"));
}

#[test]
fn the_first_servers_secrets_are_shared() {
    let redis = RedisServer::start();
    let (one, two) = (server(&redis), server(&redis));
    assert_eq!(one.journals.secret("admin-token", "first").unwrap(), "first");
    assert_eq!(two.journals.secret("admin-token", "second").unwrap(), "first");
    assert_eq!(two.journals.secret("enrol-token", "second").unwrap(), "second");
}

#[test]
fn a_deployment_whose_tokens_were_kept_in_redis_goes_on_with_their_hashes() {
    let redis = RedisServer::start();
    let key = "{sojourn}:secrets";
    for which in ServerToken::ALL {
        let (name, token) = (format!("{}-token", which.name()), format!("old-{}", which.name()));
        let _: u8 = redis.ask(&["HSET", key, &name, &token]);
    }
    let settle = |server: &Server| {
        let folder = DataFolder::take(&server.folder.path().join("data")).unwrap();
        let settings = settings(&redis.url(), "always", server.folder.path().join("reached"));
        let journals = Arc::new(RedisJournals::connect(settings).unwrap());
        ServerTokens::settle(&folder, journals).unwrap()
    };
    let held = || -> Vec<String> { redis.ask(&["HVALS", key]) };
    let (one, two) = (server(&redis), server(&redis));
    let tokens = settle(&one);
    let secret = tokens.local_secret(ServerToken::Admin).unwrap();
    assert_eq!(secret.as_deref(), Some("old-admin"), "local commands go on");
    let hashes = held();
    assert!(hashes.iter().all(|value| value.parse::<Digest>().is_ok()), "{hashes:?}");
    assert!(hashes.contains(&Digest::of(b"old-admin").to_string()));
    // A server that comes later verifies the same tokens, and has none for its local commands.
    let tokens = settle(&two);
    assert_eq!(tokens.local_secret(ServerToken::Admin).unwrap(), None);
    assert_eq!(held(), hashes);
}

#[test]
fn a_trim_drops_events_indexes_and_ended_leases() {
    let redis = RedisServer::start();
    let server = server(&redis);
    let mut journal = server.journals.open().unwrap();
    // Leases 1 to 10; the last is granted at 40 and doesn't end.
    journal.append(&records(1..=40)).unwrap();
    journal.save_snapshot(&Snapshot { position: at(40), bytes: b"all".into() }).unwrap();
    let leases = || -> Vec<u64> {
        let mut leases: Vec<u64> = redis.ask(&["HKEYS", "{sojourn}:lease-jobs"]);
        leases.sort_unstable();
        leases
    };
    journal.trim(at(25)).unwrap();
    assert_eq!(leases(), [6, 7, 8, 9, 10]);
    journal.trim(at(41)).unwrap();
    assert_eq!(leases(), [10]);
    assert_eq!(redis.ask::<u64>(&["XLEN", "{sojourn}:events"]), 0);
    assert_eq!(redis.ask::<Vec<String>>(&["KEYS", "{sojourn}:job:*"]), Vec::<String>::new());
    journal.append(&records(41..=41)).unwrap();
    assert_eq!(journal.events(JobId(1), at(0), 9).unwrap().len(), 1);
    drop(journal);
    assert_eq!(server.journals.open().unwrap().read(at(40), 9).unwrap(), records(41..=41));
}

#[test]
fn a_damaged_stream_is_refused() {
    let journal_of = |damage: &[&str]| {
        let redis = RedisServer::start();
        let server = server(&redis);
        let mut journal = server.journals.open().unwrap();
        journal.append(&records(1..=100)).unwrap();
        let _: redis::Value = redis.ask(damage);
        let opened = server.journals.open();
        opened.and_then(|mut journal| journal.read(at(0), 1000)).unwrap_err()
    };
    for (damage, at) in [
        (&["XDEL", "{sojourn}:events", "60-0"][..], 60),
        (&["XDEL", "{sojourn}:events", "100-0"], 100),
        (
            &[
                "XADD",
                "{sojourn}:events",
                "101-0",
                "p",
                "x",
                "c",
                "01234567890123456789012345678901",
            ],
            101,
        ),
        (&["HSET", "{sojourn}:meta", "tail", "90"], 91),
    ] {
        let refused = journal_of(damage);
        assert!(
            matches!(refused, JournalError::Corrupt { position, .. } if position.0 == at),
            "{damage:?}: {refused}"
        );
    }
    let refused = journal_of(&["HSET", "{sojourn}:meta", "event-version", "99"]);
    assert!(refused.to_string().contains("event-version `99`"), "{refused}");
}

/// After a power cut: it takes connections, and answers nothing until it has read its file.
#[test]
fn a_redis_that_still_loads_its_file_counts_as_not_there_yet_and_one_that_refuses_does_not() {
    let says = |user: &str, answer: &'static str| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{user}{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(&stream).lines();
            for line in lines.map_while(Result::ok) {
                // Each command begins with the count of its words.
                if line.starts_with('*') && (&stream).write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let refused = RedisJournals::connect(settings(&url, "always", folder.path().join("n")));
        let refused = refused.err().unwrap();
        server.join().unwrap();
        refused
    };
    let loading = says("", "-LOADING Redis is loading the dataset in memory\r\n");
    assert!(matches!(loading, JournalError::Unreachable { .. }), "{loading}");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let password = says(":secret@", wrong);
    assert!(matches!(password, JournalError::Refused { .. }), "{password}");
}
