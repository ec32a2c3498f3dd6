//! Events and snapshots of the server's journal.

use crate::expect::{is_said, round_trip};
use sojourn_core::{Core, CoreConfig, JournalPosition, Record};
use sojourn_protocol::error::error_chain;

/// Reads records, one a line, and folds those that fit into a core, which is the same after a restart.
pub(crate) fn journal(input: &[u8]) -> bool {
    let mut core = Core::new(CoreConfig::default());
    let mut refused = false;
    for line in input.split(|byte| *byte == b'\n') {
        let Some(mut record) = round_trip::<Record>(line) else { continue };
        // After a fault the state is no longer the fold of what came before.
        if refused {
            continue;
        }
        record.position = JournalPosition(core.position().0 + 1);
        if let Err(error) = core.fold(&record) {
            is_said(&error_chain(&error), input);
            refused = true;
        }
    }
    if !refused {
        restarts_the_same(&core);
    }
    core.position().0 > 0
}

/// Reads a snapshot.
pub(crate) fn snapshot(input: &[u8]) -> bool {
    match Core::from_snapshot(input, CoreConfig::default()) {
        Ok(core) => {
            restarts_the_same(&core);
            true
        }
        Err(error) => {
            is_said(&error_chain(&error), input);
            false
        }
    }
}

fn restarts_the_same(core: &Core) {
    let written = core.snapshot();
    assert!(written.is_ok(), "a state that can't be written: {written:?}");
    let written = written.unwrap_or_default();
    let again = Core::from_snapshot(&written, CoreConfig::default());
    assert!(again.is_ok(), "a snapshot that can't be read: {:?}", again.err());
    let rewritten = again.ok().and_then(|core| core.snapshot().ok());
    assert!(rewritten == Some(written), "a state changes where it is written and read");
}
