//! Faults that only a file can suffer.

use crate::contract::{at, contract, records};
use sojourn_core::{EVENT_VERSION, JournalPosition};
use sojourn_protocol::ids::JobId;
use sojourn_server::journal::{Journal, JournalError, Snapshot, SqliteJournal};
use std::path::Path;

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
        // Granted, and ended: the columns by which a job's events are found aren't in the chain.
        ("UPDATE records SET job = 3 WHERE position = 40", 40),
        ("UPDATE records SET job = NULL WHERE position = 41", 41),
        ("UPDATE records SET job = 3 - job WHERE job IS NOT NULL", 3),
        ("UPDATE lease_jobs SET job = 7 WHERE lease = 10", 40),
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

/// Flips a bit in the head of each page of SQLite's trees, those of indices too, which the chain doesn't cover.
#[test]
fn a_flipped_bit_in_a_page_of_the_file_is_found_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = SqliteJournal::open(&path).unwrap();
    journal.append(&records(1..=600)).unwrap();
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    let page = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    // The kinds of pages: inner and leaf pages of indices and tables.
    let is_tree = |at: &usize| [2, 5, 10, 13].contains(&whole[*at]);
    let heads: Vec<usize> = (page..whole.len()).step_by(page).filter(is_tree).collect();
    assert!(heads.len() > 10, "{}", heads.len());
    assert!(heads.iter().any(|at| [2, 10].contains(&whole[*at])), "there are pages of an index");
    for at in heads {
        let mut flipped = whole.clone();
        // The number of cells.
        flipped[at + 3] ^= 0x80;
        std::fs::write(&path, &flipped).unwrap();
        let refused = SqliteJournal::open(&path).unwrap_err();
        let found = matches!(refused, JournalError::Unreadable(_) | JournalError::Corrupt { .. });
        assert!(found, "page {}: {refused:?}", at / page);
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(SqliteJournal::open(&path).unwrap().tail(), at(600));
}

#[test]
fn a_newer_journal_is_refused() {
    let next = EVENT_VERSION + 1;
    for (damage, says) in [
        ("UPDATE meta SET value = CAST('2' AS BLOB) WHERE key = 'format'", "format `2`"),
        (
            &format!("UPDATE meta SET value = CAST('{next}' AS BLOB) WHERE key = 'event-version'"),
            &format!("event-version `{next}`"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let refused = damaged(folder.path(), damage).unwrap_err();
        assert!(matches!(refused, JournalError::UnknownVersion { .. }), "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut journal =
        damaged(folder.path(), &format!("UPDATE snapshots SET version = {next}")).unwrap();
    let refused = journal.load_snapshot().unwrap_err();
    assert!(refused.to_string().contains(&format!("version `{next}`")), "{refused}");
}

#[test]
fn an_older_journal_is_read_and_upgraded() {
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
fn a_damaged_snapshot_is_skipped() {
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
fn a_file_that_is_no_journal_is_refused() {
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
fn a_journal_below_its_high_water_mark_is_refused() {
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
