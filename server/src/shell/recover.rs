//! The state from the journal: the newest snapshot, and all events after it.

use super::error::ShellError;
use crate::journal::Journal;
use sojourn_core::{Core, CoreConfig};
use sojourn_protocol::time::UnixMillis;

/// Records read at once.
const BATCH: usize = 10_000;

/// A core with everything in it that the journal holds, and the time of the last event.
pub(super) fn recover(
    journal: &mut dyn Journal,
    config: CoreConfig,
) -> Result<(Core, UnixMillis), ShellError> {
    let mut core = match journal.load_snapshot()? {
        Some(snapshot) => Core::from_snapshot(&snapshot.bytes, config)?,
        None => Core::new(config),
    };
    let mut last = UnixMillis::default();
    loop {
        let records = journal.read(core.position(), BATCH)?;
        if records.is_empty() {
            break;
        }
        for record in &records {
            core.fold(record)?;
            last = record.at;
        }
    }
    if let Err(violation) = core.check_invariants() {
        tracing::error!(%violation, "the recovered state breaks an invariant");
    }
    Ok((core, last))
}
