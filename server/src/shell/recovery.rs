//! The state from the journal: the newest snapshot that can be read, and all events after it.

use super::{error::ShellError, snapshot::read_snapshot};
use crate::journal::Journal;
use sojourn_core::{Core, CoreConfig, InvariantSet, JournalPosition, RecoverError, Violation};
use sojourn_protocol::time::UnixMillis;

/// Records read at once.
const BATCH: usize = 10_000;

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

/// The state that a journal holds.
pub(crate) struct Recovered {
    /// The core with all events folded in.
    pub(crate) core: Core,
    /// The position of the snapshot that it began with; 0 without one.
    pub(super) snapshot: JournalPosition,
    /// The time of the last event, in the snapshot or after it.
    pub(super) last: UnixMillis,
    /// The invariants that the state breaks, all of them accepted.
    pub(super) accepted: Vec<Violation>,
}

/// Reads all that the journal holds. The state may break these invariants, and no others.
pub(crate) fn recover(
    journal: &mut dyn Journal,
    config: CoreConfig,
    accept: InvariantSet,
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
    let (accepted, refused): (Vec<Violation>, Vec<Violation>) =
        core.violations().partition(|violation| accept.contains(violation.id));
    for violation in &accepted {
        tracing::error!(%violation, "the recovered state breaks an invariant, which is accepted");
    }
    if !refused.is_empty() {
        return Err(ShellError::Violated(refused));
    }
    let last = core.state().at;
    Ok(Recovered { core, snapshot, last, accepted })
}
