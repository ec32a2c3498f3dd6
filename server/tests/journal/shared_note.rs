//! The note of how far the journal has come, which all servers see; and replicas that lack events.

use crate::{
    contract::{at, record, records},
    redis::settings,
    redis_server::RedisServer,
    replicas::{follow, is_in_step, primary},
};
use sojourn_core::{Event, Record};
use sojourn_protocol::ids::HostId;
use sojourn_server::journal::{JournalError, NoteStore, OpenJournal, RedisJournals};
use std::{
    collections::BTreeMap,
    error::Error,
    process::Command,
    sync::{Arc, Condvar, Mutex},
};
use tempfile::TempDir;

/// Notes in memory, which all servers of a test see.
#[derive(Default)]
struct Notes {
    notes: Mutex<BTreeMap<String, String>>,
    written: Condvar,
}

impl Notes {
    /// Waits until the only note begins with this position.
    fn await_position(&self, position: u64) {
        let notes = self.notes.lock().unwrap();
        let begins = |text: &String| text.starts_with(&format!("{position} "));
        let _notes = self.written.wait_while(notes, |notes| !notes.values().any(begins)).unwrap();
    }

    fn text(&self) -> String {
        self.notes.lock().unwrap().values().next().unwrap().clone()
    }
}

impl NoteStore for Notes {
    fn read(&self, name: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.notes.lock().unwrap().get(name).cloned())
    }
    fn write(&self, name: &str, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.notes.lock().unwrap().insert(name.to_owned(), text.to_owned());
        self.written.notify_all();
        Ok(())
    }
    fn place(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// A server with a folder of its own, which sees these notes.
fn server(redis: &RedisServer, durability: &str, notes: &Arc<Notes>) -> (RedisJournals, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&redis.url(), durability, folder.path().join("reached"));
    let journals = RedisJournals::connect(settings).unwrap();
    journals.keep_note(Arc::<Notes>::clone(notes));
    (journals, folder)
}

/// Another event than that of the contract.
fn other(position: u64) -> Record {
    record(position, Event::HostRevoked { host: HostId(77) })
}

#[test]
fn the_note_follows_the_journal_while_it_is_open_and_is_exact_when_it_is_closed() {
    let (redis, notes) = (RedisServer::start(), Arc::new(Notes::default()));
    let (journals, _folder) = server(&redis, "always", &notes);
    let mut journal = journals.open().unwrap();
    notes.await_position(0);
    journal.append(&records(1..=20)).unwrap();
    notes.await_position(20);
    journal.append(&records(21..=30)).unwrap();
    drop(journal);
    assert!(notes.text().starts_with("30 "), "{}", notes.text());
}

#[test]
fn a_server_that_never_saw_the_journal_refuses_one_that_went_back_or_is_another() {
    let notes = Arc::new(Notes::default());
    let first = RedisServer::start();
    let (journals, _folder) = server(&first, "always", &notes);
    journals.open().unwrap().append(&records(1..=30)).unwrap();
    journals.leave();
    let noted = notes.text();

    let behind = records(1..=25);
    let mut forked = records(1..=29);
    forked.extend([other(30), other(31)]);
    for (events, says) in [
        (behind, "it ends at 25, and had reached 30"),
        (forked, "another event than this one was acknowledged at 30"),
        (vec![], "it ends at 0, and had reached 30"),
    ] {
        let redis = RedisServer::start();
        // Whoever wrote it knew of no note.
        let own = Arc::new(Notes::default());
        let (writer, _writers_folder) = server(&redis, "always", &own);
        writer.open().unwrap().append(&events).unwrap();
        writer.leave();
        let (journals, _folder) = server(&redis, "always", &notes);
        let refused = journals.open().err().unwrap();
        assert!(matches!(refused, JournalError::Corrupt { .. }), "{refused}");
        let told = refused.to_string();
        assert!(told.contains(says) && told.contains("journal-reached-sojourn"), "{told}");
        assert_eq!(notes.text(), noted, "a refusal changes no note");
        journals.leave();
        // With less durability a loss is said and accepted, unless all is lost.
        let (careless, _folder) = server(&redis, "everysec", &notes);
        assert_eq!(careless.open().is_ok(), !events.is_empty());
        careless.leave();
        *notes.notes.lock().unwrap() =
            BTreeMap::from([("journal-reached-sojourn".to_owned(), noted.clone())]);
    }

    // The whole one, whatever was trimmed of it.
    let (journals, _folder) = server(&first, "always", &notes);
    let mut journal = journals.open().unwrap();
    assert_eq!(journal.tail(), at(30));
    journal.append(&records(31..=31)).unwrap();
}

#[test]
fn a_note_that_is_no_position_and_hash_is_named() {
    let (redis, notes) = (RedisServer::start(), Arc::new(Notes::default()));
    notes.write("journal-reached-sojourn", "12").unwrap();
    let (journals, _folder) = server(&redis, "always", &notes);
    let refused = journals.open().err().unwrap();
    assert!(matches!(refused, JournalError::Unreadable(_)), "{refused}");
    let cause = refused.source().unwrap().to_string();
    assert!(cause.contains("journal-reached-sojourn"), "{cause}");
}

/// An event may be there although its append failed, and would be lost with the primary.
#[test]
fn events_that_no_replica_confirmed_are_taken_up_once_one_has() {
    let (redis, port) = primary(&["--appendfsync", "always"]);
    let (replica, _) = primary(&["--appendfsync", "always"]);
    follow(&replica, port);
    while !is_in_step(&replica, &redis) {}
    let notes = Arc::new(Notes::default());
    let (journals, _folder) = server(&redis, "always,wait:1", &notes);
    let mut journal = journals.open().unwrap();
    journal.append(&records(1..=10)).unwrap();
    let told: String = replica.ask(&["INFO", "server"]);
    let process = told.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, process]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    assert!(matches!(journal.append(&records(11..=11)), Err(JournalError::Storage(_))));
    assert_eq!(redis.ask::<u64>(&["XLEN", "{sojourn}:events"]), 11, "the primary has it");
    drop(journal);
    let refused = journals.open().err().unwrap();
    assert!(matches!(refused, JournalError::Storage(_)), "{refused}");
    signal("-CONT");
    let journal = journals.open().unwrap();
    assert_eq!(journal.tail(), at(11));
    assert_eq!(replica.ask::<u64>(&["XLEN", "{sojourn}:events"]), 11, "and so has the replica");
}
