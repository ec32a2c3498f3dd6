//! The state from the journal: the newest snapshot that can be read, and all events after it.

use super::{error::ShellError, snapshot::unpack};
use crate::journal::{Journal, Snapshot};
use sojourn_core::{Core, CoreConfig, JournalPosition, RecoverError};
use sojourn_protocol::time::UnixMillis;

/// Records read at once.
const BATCH: usize = 10_000;

/// The core that a snapshot holds.
///
/// # Errors
/// Where it holds none, or one at another position than it says.
pub fn read_snapshot(snapshot: &Snapshot, config: CoreConfig) -> Result<Core, ShellError> {
    let core = Core::from_snapshot(&unpack(&snapshot.bytes)?, config)?;
    let (position, holds) = (snapshot.position, core.position());
    if position == holds { Ok(core) } else { Err(ShellError::Misplaced { position, holds }) }
}

/// The newest snapshot's core, or that of the one before; an empty one where the events go back to
/// the beginning.
fn start(journal: &mut dyn Journal, config: CoreConfig) -> Result<Core, ShellError> {
    let mut below = JournalPosition(u64::MAX);
    let mut unreadable = None;
    while let Some(snapshot) = journal.load_snapshot_below(below)? {
        match read_snapshot(&snapshot, config) {
            Ok(core) => return Ok(core),
            // Another version of the program wrote it: not damage.
            Err(error @ ShellError::Recover(RecoverError::Version { .. })) => return Err(error),
            Err(error) => {
                let cause = &error as &dyn std::error::Error;
                tracing::error!(
                    error = cause,
                    position = snapshot.position.0,
                    "an unreadable snapshot is passed over"
                );
                below = snapshot.position;
                unreadable.get_or_insert(error);
            }
        }
    }
    match unreadable {
        Some(error) if journal.read(JournalPosition(0), 1).is_err() => Err(error),
        _ => Ok(Core::new(config)),
    }
}

/// What a journal holds.
pub(crate) struct Recovered {
    /// With everything in it.
    pub(crate) core: Core,
    /// Where the snapshot was that it began with; 0 without one.
    pub(super) snapshot: JournalPosition,
    /// The time of the last event, be it in the snapshot or after it.
    pub(super) last: UnixMillis,
}

/// Reads all that the journal holds.
pub(crate) fn recover(
    journal: &mut dyn Journal,
    config: CoreConfig,
) -> Result<Recovered, ShellError> {
    let mut core = start(journal, config)?;
    let snapshot = core.position();
    loop {
        let records = journal.read(core.position(), BATCH)?;
        if records.is_empty() {
            break;
        }
        for record in &records {
            core.fold(record)?;
        }
    }
    if let Err(violation) = core.check_invariants() {
        tracing::error!(%violation, "the recovered state breaks an invariant");
    }
    let last = core.state().at;
    Ok(Recovered { core, snapshot, last })
}
