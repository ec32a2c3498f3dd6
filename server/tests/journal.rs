//! One suite for every journal, and what only a file can suffer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sojourn_core::{EVENT_VERSION, Event, JournalPosition, LeaseEnd, Record, UnitKey};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    report::Sums,
    time::UnixMillis,
};
use sojourn_server::journal::{
    Fault, Journal, JournalError, MemoryJournal, Snapshot, SqliteJournal,
};
use std::path::Path;

fn record(position: u64, event: Event) -> Record {
    Record { position: JournalPosition(position), at: UnixMillis(1000 + position), event }
}

/// Grants and ends of leases of jobs 1 and 2 in turn, and a host now and then.
fn records(positions: std::ops::RangeInclusive<u64>) -> Vec<Record> {
    let event = |position: u64| {
        let lease = LeaseId(position / 4);
        match position % 4 {
            0 => Event::LeaseGranted {
                until: None,
                device: "cpu".into(),
                lease,
                host: HostId(1),
                then: Vec::new(),
                unit: UnitKey::Train {
                    job: JobId(1 + lease.0 % 2),
                    trial: TrialId(0),
                    epoch: Epoch(0),
                    shard: ShardId(3),
                    from: 0,
                },
                base: Version(0),
                class: None,
                copy_of: None,
                why: "it is the first".to_owned(),
            },
            1 => Event::LeaseEnded { lease, end: LeaseEnd::Silent },
            2 => Event::HostRevoked { host: HostId(position) },
            _ => Event::JobCancelled { job: JobId(2) },
        }
    };
    positions.map(|position| record(position, event(position))).collect()
}

fn at(position: u64) -> JournalPosition {
    JournalPosition(position)
}

/// What every journal promises; `open` opens the same journal again.
fn contract(open: impl Fn() -> Box<dyn Journal>) {
    let mut journal = open();
    assert_eq!(journal.tail(), at(0));
    assert_eq!(journal.read(at(0), 10).unwrap(), []);
    assert_eq!(journal.load_snapshot().unwrap(), None);
    assert!(matches!(journal.trim(at(1)), Err(JournalError::NotCovered { .. })));

    journal.append(&records(1..=5)).unwrap();
    journal.append(&records(6..=6)).unwrap();
    for wrong in [records(6..=7), records(8..=8)] {
        let refused = journal.append(&wrong).unwrap_err();
        assert!(
            matches!(refused, JournalError::OutOfOrder { expected: JournalPosition(7), .. }),
            "{refused}"
        );
    }
    journal.append(&[]).unwrap();
    // What could not be read back is no event: JSON has no such number.
    let valid = Sums { rows: 1, loss: f64::NAN, ..Sums::default() };
    let event = Event::Evaluated { lease: LeaseId(1), epoch: Epoch(0), valid, f1: None };
    let refused = journal.append(&[record(7, event)]).unwrap_err();
    assert!(
        matches!(refused, JournalError::Unwritable { position: JournalPosition(7), .. }),
        "{refused}"
    );
    drop(journal);

    let mut journal = open();
    assert_eq!(journal.tail(), at(6));
    assert_eq!(journal.read(at(0), 100).unwrap(), records(1..=6));
    assert_eq!(journal.read(at(2), 3).unwrap(), records(3..=5));
    assert_eq!(journal.read(at(6), 3).unwrap(), []);
    journal.append(&records(7..=40)).unwrap();

    // Job 1: leases 2, 4, …, granted at 8, 16, … and ended at 9, 17, …
    let positions = |records: Vec<Record>| -> Vec<u64> {
        records.iter().map(|record| record.position.0).collect()
    };
    let ones = journal.events(JobId(1), at(0), 100).unwrap();
    assert_eq!(positions(ones), [8, 9, 16, 17, 24, 25, 32, 33, 40]);
    assert_eq!(positions(journal.events(JobId(1), at(9), 2).unwrap()), [16, 17]);
    assert!(journal.events(JobId(9), at(0), 2).unwrap().is_empty());

    let snapshot =
        |position, bytes: &[u8]| Snapshot { position: at(position), bytes: bytes.into() };
    assert!(matches!(
        journal.save_snapshot(&snapshot(41, b"x")),
        Err(JournalError::BeyondTail { .. })
    ));
    for position in [10, 20, 30] {
        journal.save_snapshot(&snapshot(position, format!("at {position}").as_bytes())).unwrap();
    }
    assert!(matches!(journal.trim(at(32)), Err(JournalError::NotCovered { .. })));
    journal.trim(at(25)).unwrap();
    journal.trim(at(3)).unwrap();
    drop(journal);

    let mut journal = open();
    assert_eq!(journal.load_snapshot().unwrap(), Some(snapshot(30, b"at 30")));
    assert_eq!(journal.load_snapshot_below(at(30)).unwrap(), Some(snapshot(20, b"at 20")));
    assert_eq!(journal.load_snapshot_below(at(20)).unwrap(), None);
    let refused = journal.read(at(0), 10).unwrap_err();
    assert!(
        matches!(refused, JournalError::Corrupt { position: JournalPosition(1), .. }),
        "{refused}"
    );
    assert_eq!(journal.read(at(24), 100).unwrap(), records(25..=40));
    assert_eq!(journal.read(at(30), 100).unwrap(), records(31..=40));
    // Lease 6 was granted before what is left.
    assert_eq!(positions(journal.events(JobId(1), at(0), 100).unwrap()), [25, 32, 33, 40]);
    journal.append(&records(41..=42)).unwrap();
    assert_eq!(open().read(at(39), 100).unwrap(), records(40..=42));
    // Down to the snapshot itself.
    journal.trim(at(31)).unwrap();
    assert_eq!(open().read(at(30), 100).unwrap(), records(31..=42));
}

#[test]
fn memory_keeps_the_contract() {
    let journal = MemoryJournal::default();
    contract(|| Box::new(journal.clone()));
}

#[test]
fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    contract(|| Box::new(SqliteJournal::open(&folder.path().join("journal")).unwrap()));
}

#[test]
fn a_trim_forgets_the_leases_that_ended_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = SqliteJournal::open(&path).unwrap();
    // Leases 1 to 10; the last is granted at 40 and doesn't end.
    journal.append(&records(1..=40)).unwrap();
    journal.save_snapshot(&Snapshot { position: at(40), bytes: b"all".into() }).unwrap();
    let leases = || -> Vec<i64> {
        let connection = rusqlite::Connection::open(&path).unwrap();
        let mut rows = connection.prepare("SELECT lease FROM lease_jobs ORDER BY 1").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    // Lease 6 was granted at 24 and ends at 25.
    journal.trim(at(25)).unwrap();
    assert_eq!(leases(), [6, 7, 8, 9, 10]);
    journal.trim(at(41)).unwrap();
    assert_eq!(leases(), [10]);
    // Its end is still listed under its job.
    journal.append(&records(41..=41)).unwrap();
    assert_eq!(journal.events(JobId(1), at(0), 9).unwrap().len(), 1);
}

#[test]
fn faults_of_the_fake_leave_what_they_say() {
    for (fault, left) in [(Fault::Fails, 0), (Fault::Torn, 2), (Fault::Unknown, 4)] {
        let mut journal = MemoryJournal::default();
        journal.inject(fault);
        assert!(matches!(journal.append(&records(1..=4)), Err(JournalError::Storage(_))));
        assert_eq!(journal.tail(), at(left));
        journal.append(&records(left + 1..=5)).unwrap();
        assert_eq!(journal.read(at(0), 9).unwrap(), records(1..=5));
    }
    let mut journal = MemoryJournal::default();
    journal.append(&records(1..=4)).unwrap();
    journal.alter(at(3), |payload| payload[0] ^= 1);
    let refused = journal.read(at(0), 9).unwrap_err();
    assert!(matches!(refused, JournalError::Corrupt { position: JournalPosition(3), .. }));
}

/// A journal of 100 records with a snapshot at 50, after `damage` was done to its tables.
fn damaged(folder: &Path, damage: &str) -> Result<SqliteJournal, JournalError> {
    let path = folder.join("journal");
    let mut journal = SqliteJournal::open(&path).unwrap();
    journal.append(&records(1..=100)).unwrap();
    journal.save_snapshot(&Snapshot { position: at(40), bytes: b"old".into() }).unwrap();
    journal.save_snapshot(&Snapshot { position: at(50), bytes: b"new".into() }).unwrap();
    drop(journal);
    rusqlite::Connection::open(&path).unwrap().execute_batch(damage).unwrap();
    SqliteJournal::open(&path)
}

#[test]
fn an_altered_or_torn_journal_is_refused_with_the_position() {
    for (damage, at) in [
        (
            "UPDATE records SET payload = CAST(replace(payload, '7', '8') AS BLOB) WHERE position = 77",
            77,
        ),
        ("UPDATE records SET mark = zeroblob(32) WHERE position = 12", 12),
        ("DELETE FROM records WHERE position = 60", 60),
        ("DELETE FROM records WHERE position > 90", 91),
        ("DELETE FROM records WHERE position < 10", 1),
        ("DELETE FROM records", 1),
        (
            "INSERT INTO records SELECT 101, job, payload, mark FROM records WHERE position = 100",
            101,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let refused = damaged(folder.path(), damage).unwrap_err();
        assert!(
            matches!(refused, JournalError::Corrupt { position, .. } if position.0 == at),
            "{damage}: {refused}"
        );
        assert!(refused.to_string().contains(&format!("position {at}")), "{refused}");
    }
}

#[test]
fn a_newer_journal_is_refused() {
    for (damage, says) in [
        ("UPDATE meta SET value = CAST('2' AS BLOB) WHERE key = 'format'", "format `2`"),
        (
            "UPDATE meta SET value = CAST('9' AS BLOB) WHERE key = 'event-version'",
            "event-version `9`",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let refused = damaged(folder.path(), damage).unwrap_err();
        assert!(matches!(refused, JournalError::UnknownVersion { .. }), "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut journal = damaged(folder.path(), "UPDATE snapshots SET version = 7").unwrap();
    let refused = journal.load_snapshot().unwrap_err();
    assert!(refused.to_string().contains("version `7`"), "{refused}");
}

#[test]
fn an_older_journal_is_read_and_is_of_this_version_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let older = "UPDATE meta SET value = CAST('1' AS BLOB) WHERE key = 'event-version';
                 UPDATE snapshots SET version = 1";
    let mut journal = damaged(folder.path(), older).unwrap();
    assert_eq!(journal.read(at(50), 1000).unwrap(), records(51..=100));
    assert_eq!(journal.load_snapshot().unwrap().unwrap().position, at(50));
    drop(journal);
    let file = rusqlite::Connection::open(folder.path().join("journal")).unwrap();
    let version: Vec<u8> = file
        .query_row("SELECT value FROM meta WHERE key = 'event-version'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, EVENT_VERSION.to_string().into_bytes(), "a program of before refuses it");
}

#[test]
fn a_damaged_snapshot_is_passed_over() {
    for damage in [
        "UPDATE snapshots SET bytes = CAST('nex' AS BLOB) WHERE position = 50",
        "UPDATE snapshots SET position = 51 WHERE position = 50",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = damaged(folder.path(), damage).unwrap();
        let found = journal.load_snapshot().unwrap().unwrap();
        assert_eq!(found, Snapshot { position: at(40), bytes: b"old".into() });
        assert!(matches!(journal.trim(at(51)), Err(JournalError::NotCovered { .. })));
    }
    let folder = tempfile::tempdir().unwrap();
    let damage = "UPDATE snapshots SET position = 200 WHERE position = 50";
    let refused = damaged(folder.path(), damage).unwrap().load_snapshot().unwrap_err();
    assert!(matches!(refused, JournalError::Corrupt { position: JournalPosition(101), .. }));
}

#[test]
fn what_is_no_journal_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    std::fs::write(&path, [b'x'; 5000]).unwrap();
    assert!(matches!(SqliteJournal::open(&path), Err(JournalError::Unreadable(_))));

    // A journal that lost its end on disk.
    let path = folder.path().join("short");
    let mut journal = SqliteJournal::open(&path).unwrap();
    journal.append(&records(1..=2000)).unwrap();
    drop(journal);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let refused = SqliteJournal::open(&path).unwrap_err();
    assert!(
        matches!(refused, JournalError::Unreadable(_) | JournalError::Corrupt { .. }),
        "{refused}"
    );
}

#[test]
fn a_check_changes_with_every_part() {
    use sojourn_server::journal::Check;
    let zero = Check::default();
    let one = zero.then(at(1), b"payload");
    assert_eq!(one, zero.then(at(1), b"payload"));
    assert_ne!(one, zero.then(at(2), b"payload"));
    assert_ne!(one, zero.then(at(1), b"payloae"));
    assert_ne!(one, one.then(at(1), b"payload"));
    assert_ne!(Digest(one.0), Digest::of(b"payload"));
}

#[test]
fn a_journal_that_has_gone_back_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite");
    let wal = folder.path().join("journal.sqlite-wal");
    SqliteJournal::open(&path).unwrap().append(&records(1..=40)).unwrap();
    let old = std::fs::read(&path).unwrap();
    SqliteJournal::open(&path).unwrap().append(&records(41..=100)).unwrap();
    drop(SqliteJournal::open(&path).unwrap());

    // An old copy in its place.
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, old).unwrap();
    let refused = SqliteJournal::open(&path).unwrap_err();
    assert!(refused.to_string().contains("it ends at 40, and had reached 100"), "{refused}");

    // Emptied, or gone with its write-ahead log.
    for empty in [true, false] {
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_file(&wal);
        if empty {
            std::fs::write(&path, b"").unwrap();
        }
        let refused = SqliteJournal::open(&path).unwrap_err();
        assert!(refused.to_string().contains("missing or empty"), "{refused}");
    }
    let _ = std::fs::remove_file(&wal);
    std::fs::write(&path, whole).unwrap();
    assert_eq!(SqliteJournal::open(&path).unwrap().tail(), at(100));
}

#[test]
fn a_journal_without_its_write_ahead_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite");
    SqliteJournal::open(&path).unwrap().append(&records(1..=40)).unwrap();
    let mut journal = SqliteJournal::open(&path).unwrap();
    for first in (41..=600).step_by(8) {
        journal.append(&records(first..=first + 7)).unwrap();
    }
    // As a killed server leaves it, less the log.
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for name in ["journal.sqlite", "journal.sqlite.reached"] {
        std::fs::copy(folder.path().join(name), copy.join(name)).unwrap();
    }
    let refused = SqliteJournal::open(&copy.join("journal.sqlite")).unwrap_err();
    assert!(refused.to_string().contains("and had reached"), "{refused}");
}

#[test]
fn a_write_ahead_log_that_lost_its_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite");
    let mut journal = SqliteJournal::open(&path).unwrap();
    for first in (1..=80).step_by(8) {
        journal.append(&records(first..=first + 7)).unwrap();
    }
    let copied = |keep: u64, of: u64| {
        let copy = tempfile::tempdir().unwrap();
        for name in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite.reached"] {
            std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let wal = copy.path().join("journal.sqlite-wal");
        let file = std::fs::OpenOptions::new().write(true).open(wal).unwrap();
        file.set_len(file.metadata().unwrap().len() * keep / of).unwrap();
        SqliteJournal::open(&copy.path().join("journal.sqlite")).map(|journal| journal.tail())
    };
    assert_eq!(copied(1, 1).unwrap(), at(80), "as a killed server leaves it");
    let refused = copied(9, 10).unwrap_err();
    assert!(refused.to_string().contains("and had reached 80"), "{refused}");
}
