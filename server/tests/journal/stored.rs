//! Journals that the program stored before `Storage` was there: they are read, and go on.

use crate::{
    contract::{at, record},
    redis::server,
    redis_server::RedisServer,
};
use sojourn_core::{Core, CoreConfig, Event, LeaseEnd};
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, LeaseId},
};
use sojourn_server::{
    journal::{Journal, OpenJournal as _, SqliteJournal},
    shell::read_snapshot,
};

/// Three hosts, blobs, and a job with two leases, of which the first has ended.
const SQLITE: &[u8] = include_bytes!("../samples/journal-v6.sqlite");
/// The same journal in Redis, as commands: a line each, with arguments in hex.
const REDIS: &str = include_str!("../samples/journal-v6.redis");
/// The hash of its last record.
const TAIL: &str = "3b063ec9b8d9d08ce4cdffb3a799fb93df0a266b25304bb9c48706e1a2df311e";

fn goes_on(journal: &mut dyn Journal) {
    let tail = journal.marks().tail;
    assert_eq!((tail.position, Digest(tail.hash.0).to_string().as_str()), (at(13), TAIL));
    let records = journal.read(at(0), 100).unwrap();
    assert_eq!(records.len(), 13);
    let mut core = Core::new(CoreConfig::default());
    records.iter().for_each(|record| core.fold(record).unwrap());
    assert_eq!((core.state().jobs.len(), core.state().hosts.len()), (1, 3));
    let snapshot = journal.load_snapshot().unwrap().unwrap();
    assert_eq!(snapshot.position, at(13));
    assert_eq!(read_snapshot(&snapshot, CoreConfig::default()).unwrap().state(), core.state());

    // The lease's job is known from before.
    let ended = record(14, Event::LeaseEnded { lease: LeaseId(2), end: LeaseEnd::Silent });
    journal.append(std::slice::from_ref(&ended)).unwrap();
    let events = journal.events(JobId(1), at(0), 100).unwrap();
    let positions: Vec<u64> = events.iter().map(|record| record.position.0).collect();
    assert_eq!(positions, [10, 11, 12, 13, 14]);
    journal.trim(at(13)).unwrap();
    assert_eq!(journal.read(at(12), 100).unwrap(), [records.last().unwrap().clone(), ended]);
}

#[test]
fn a_stored_sqlite_journal_is_read_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite");
    std::fs::write(&path, SQLITE).unwrap();
    goes_on(&mut SqliteJournal::open(&path).unwrap());
    assert_eq!(SqliteJournal::open(&path).unwrap().tail(), at(14));
}

#[test]
fn a_stored_redis_journal_is_read_and_goes_on() {
    let redis = RedisServer::start();
    let mut connection = ::redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    for line in REDIS.lines() {
        let arguments = line.split(' ').map(from_hex);
        let mut command = ::redis::Cmd::new();
        for argument in arguments {
            command.arg(argument);
        }
        let _: ::redis::Value = command.query(&mut connection).unwrap();
    }
    let server = server(&redis);
    goes_on(&mut *server.journals.open().unwrap());
    server.journals.leave();
    assert_eq!(server.journals.open().unwrap().tail(), at(14));
}

fn from_hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
