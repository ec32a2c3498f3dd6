//! The promises of every journal.

use sojourn_core::{Event, JournalPosition, LeaseEnd, Record, UnitKey};
use sojourn_protocol::{
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    report::Sums,
    time::UnixMillis,
};
use sojourn_server::journal::{Journal, JournalError, Snapshot};

pub(crate) fn record(position: u64, event: Event) -> Record {
    Record { position: JournalPosition(position), at: UnixMillis(1000 + position), event }
}

/// Grants and ends of leases of jobs 1 and 2 in turn, and a host now and then.
pub(crate) fn records(positions: std::ops::RangeInclusive<u64>) -> Vec<Record> {
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
                speculative_for: None,
                why: "it is the first".to_owned(),
            },
            1 => Event::LeaseEnded { lease, end: LeaseEnd::Silent },
            2 => Event::HostRevoked { host: HostId(position) },
            _ => Event::JobCancelled { job: JobId(2) },
        }
    };
    positions.map(|position| record(position, event(position))).collect()
}

pub(crate) fn at(position: u64) -> JournalPosition {
    JournalPosition(position)
}

/// Checks the promises of every journal; `open` opens the same journal again.
pub(crate) fn contract(open: impl Fn() -> Box<dyn Journal>) {
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
    let event =
        Event::Evaluated { lease: LeaseId(1), epoch: Epoch(0), valid, f1: None, own: [].into() };
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
    drop(journal);
    let mut journal = open();
    assert_eq!(journal.read(at(39), 100).unwrap(), records(40..=42));
    assert_eq!(journal.load_snapshot().unwrap(), Some(snapshot(30, b"at 30")));
    // Down to the snapshot itself.
    journal.trim(at(31)).unwrap();
    assert_eq!(open().read(at(30), 100).unwrap(), records(31..=42));
}
