//! Snapshots: a copy of the state is encoded, compressed and read back on a thread of its own, while the core and the
//! journal go on. The core waits for the copy alone, and the journal for writing the compressed bytes.

use super::{error::ShellError, message::Item};
use crate::journal::Snapshot;
use sojourn_core::{Core, CoreConfig, Folded, State, snapshot_of};
use std::{
    borrow::Cow,
    io,
    sync::mpsc::Sender,
    thread::{Builder, JoinHandle},
};

/// The first bytes of a packed snapshot (RFC 8878, section 3.1.1); one that isn't is plain JSON.
const PACKED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Fast, and a fifth of the bytes.
const LEVEL: i32 = 1;

/// A snapshot of a state, which was read back once to see that it can be.
///
/// # Errors
/// Where it can't: it must not take the place of one that can.
pub fn make(state: &State, config: CoreConfig) -> Result<Snapshot, ShellError> {
    let plain = snapshot_of(state)?;
    let bytes = zstd::encode_all(plain.as_slice(), LEVEL).map_err(ShellError::Pack)?;
    let snapshot = Snapshot { position: state.position, bytes };
    read_snapshot(&snapshot, config)?;
    Ok(snapshot)
}

/// As [`make`], on a thread of its own, for the journal's thread.
pub(super) fn send(
    state: Folded,
    config: CoreConfig,
    writer: Sender<Vec<Item>>,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name("snapshot".to_owned()).spawn(move || match make(&state, config) {
        // A writer that has failed wants no more.
        Ok(snapshot) => drop(writer.send(vec![Item::Snapshot(snapshot)])),
        Err(error) => not_kept(&error),
    })
}

/// Without it the journal stays long; nothing is lost.
pub(super) fn not_kept(error: &ShellError) {
    let error = error as &dyn std::error::Error;
    tracing::warn!(error, "a snapshot could not be kept");
}

/// The core that a snapshot holds.
///
/// # Errors
/// Where it holds none, or one at another position than it says.
pub fn read_snapshot(snapshot: &Snapshot, config: CoreConfig) -> Result<Core, ShellError> {
    let core = Core::from_snapshot(&unpack(&snapshot.bytes)?, config)?;
    let (position, holds) = (snapshot.position, core.position());
    if position == holds { Ok(core) } else { Err(ShellError::Misplaced { position, holds }) }
}

/// The JSON in a snapshot.
fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ShellError> {
    if bytes.starts_with(&PACKED) {
        zstd::decode_all(bytes).map(Cow::Owned).map_err(ShellError::Pack)
    } else {
        Ok(Cow::Borrowed(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_core::JournalPosition;

    #[test]
    fn a_snapshot_is_packed_and_reads_back_as_it_was() {
        let config = CoreConfig::default();
        let core = Core::new(config);
        let made = make(core.state(), config).unwrap();
        assert_eq!(made.bytes[..4], PACKED);
        assert_eq!(read_snapshot(&made, config).unwrap().state(), core.state());
        // As it was written before there was packing.
        let plain = Snapshot { position: JournalPosition(0), bytes: core.snapshot().unwrap() };
        assert_eq!(read_snapshot(&plain, config).unwrap().state(), core.state());
    }

    #[test]
    fn a_snapshot_of_another_position_is_refused() {
        let config = CoreConfig::default();
        let good = make(Core::new(config).state(), config).unwrap();
        for bad in [
            Snapshot { position: JournalPosition(0), bytes: b"{}".to_vec() },
            Snapshot { position: JournalPosition(0), bytes: Vec::new() },
            Snapshot { position: JournalPosition(0), bytes: good.bytes[..20].to_vec() },
            Snapshot { position: JournalPosition(1), ..good.clone() },
        ] {
            assert!(read_snapshot(&bad, config).is_err(), "{bad:?}");
        }
    }
}
