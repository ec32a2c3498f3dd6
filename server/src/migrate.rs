//! Copies a journal to another place, and verifies the copy.

use crate::{
    journal::{Journal, JournalError, Marks},
    shell::{ShellError, recover},
};
use sojourn_core::{CoreConfig, InvariantSet, JournalPosition};

/// Records copied at once.
const BATCH: usize = 2_000;

/// Why a journal was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum MigrateError {
    /// One of the two was refused.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the state can't be brought back from the journal")]
    State(#[from] ShellError),
    #[error("there is a journal already, up to position {}: name an empty place", .0.0)]
    NotEmpty(JournalPosition),
    /// The copy differs from the original: its storage is at fault.
    #[error("the copy differs from what was copied: {0}; don't use it")]
    Differs(&'static str),
}

/// The size of a copied journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// Events that were copied.
    pub events: u64,
    /// The position of the last one.
    pub tail: JournalPosition,
    /// The position of the snapshot that was copied with them.
    pub snapshot: Option<JournalPosition>,
    /// Jobs in the state.
    pub jobs: usize,
    /// Hosts in the state.
    pub hosts: usize,
}

/// Copies a journal into an empty one, and replays both: their chains and states are the same then. `progress` gets the
/// number of copied events and of all events.
///
/// # Errors
/// Where either is refused, or the copy isn't the same.
pub fn migrate(
    from: &mut dyn Journal,
    to: &mut dyn Journal,
    mut progress: impl FnMut(u64, u64),
) -> Result<Migrated, MigrateError> {
    let Marks { anchor, tail } = from.marks();
    if to.tail().0 > 0 {
        return Err(MigrateError::NotEmpty(to.tail()));
    }
    let snapshot = from.load_snapshot()?;
    if anchor.position.0 > 0 {
        to.begin_after(anchor)?;
    }
    let all = tail.position.0 - anchor.position.0;
    let mut position = anchor.position;
    while position < tail.position {
        let records = from.read(position, BATCH)?;
        let Some(last) = records.last() else { break };
        position = last.position;
        to.append(&records)?;
        progress(position.0 - anchor.position.0, all);
    }
    if let Some(snapshot) = &snapshot {
        to.save_snapshot(snapshot)?;
    }
    if from.marks() != to.marks() {
        return Err(MigrateError::Differs("their chains have different ends"));
    }
    let config = CoreConfig::default();
    // A state that breaks an invariant isn't served, but it may be copied.
    let accept = InvariantSet::ALL;
    let before = recover(from, config, accept)?.core;
    let after = recover(to, config, accept)?.core;
    if before.state() != after.state() {
        return Err(MigrateError::Differs("they make different states"));
    }
    let state = after.state();
    Ok(Migrated {
        events: all,
        tail: tail.position,
        snapshot: snapshot.map(|snapshot| snapshot.position),
        jobs: state.jobs.len(),
        hosts: state.hosts.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{MemoryJournal, Snapshot};
    use sojourn_core::{Core, Event, Record};
    use sojourn_protocol::{digest::Digest, ids::HostId, names::OwnerName, time::UnixMillis};

    fn enrolled(positions: std::ops::RangeInclusive<u64>) -> Vec<Record> {
        let event = |host: u64| Event::HostEnrolled {
            host: HostId(host),
            name: format!("host {host}"),
            token_sha256: Digest::of(&host.to_le_bytes()),
            owner: OwnerName::default(),
            token: None,
        };
        let record = |position: u64| Record {
            position: JournalPosition(position),
            at: UnixMillis(position),
            event: event(position),
        };
        positions.map(record).collect()
    }

    /// A journal of ten hosts, the first of them only in its snapshot.
    fn trimmed() -> MemoryJournal {
        let mut journal = MemoryJournal::default();
        journal.append(&enrolled(1..=10)).unwrap();
        let mut core = Core::new(CoreConfig::default());
        for record in enrolled(1..=6) {
            core.fold(&record).unwrap();
        }
        let snapshot = Snapshot { position: JournalPosition(6), bytes: core.snapshot().unwrap() };
        journal.save_snapshot(&snapshot).unwrap();
        journal.trim(JournalPosition(5)).unwrap();
        journal
    }

    #[test]
    fn a_copy_has_the_same_chain_and_state() {
        let mut told = Vec::new();
        let mut copy = MemoryJournal::default();
        let done = migrate(&mut trimmed(), &mut copy, |at, of| told.push((at, of))).unwrap();
        let (tail, snapshot) = (JournalPosition(10), Some(JournalPosition(6)));
        assert_eq!(done, Migrated { events: 6, tail, snapshot, jobs: 0, hosts: 10 });
        assert_eq!(told, [(6, 6)]);
        assert_eq!(copy.marks(), trimmed().marks());
        // It goes on as the other would have.
        copy.append(&enrolled(11..=11)).unwrap();
    }

    #[test]
    fn a_journal_is_not_overwritten() {
        let mut there = MemoryJournal::default();
        there.append(&enrolled(1..=1)).unwrap();
        let refused = migrate(&mut trimmed(), &mut there, |_, _| {}).unwrap_err();
        assert!(matches!(refused, MigrateError::NotEmpty(JournalPosition(1))), "{refused}");
        assert_eq!(there.tail(), JournalPosition(1));
    }

    #[test]
    fn a_damaged_journal_is_not_copied() {
        let mut journal = trimmed();
        journal.alter(JournalPosition(8), |payload| payload[0] ^= 1);
        let refused = migrate(&mut journal, &mut MemoryJournal::default(), |_, _| {}).unwrap_err();
        assert!(
            matches!(refused, MigrateError::Journal(JournalError::Corrupt { .. })),
            "{refused}"
        );
    }
}
