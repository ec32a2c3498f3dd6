//! The shell around the core: it gives it commands with time and chance, and carries its effects
//! out. A reply leaves only when what it promises is durable; it decides nothing.
//!
//! ```text
//!  ShellHandle --Input--> driver thread (owns Core) --Items--> writer thread (owns Journal)
//!       ^                        ^                                  |       |
//!       |                        +---------- journal broken --------+       +--> errands
//!       +------------------------------ replies, once durable ------+
//! ```

mod clock;
mod driver;
mod error;
mod gather;
mod handle;
mod planner;
mod recover;
mod snapshot;
mod wanted;
mod writer;

pub use clock::{Clock, SteadyClock};
pub use error::ShellError;
pub use handle::ShellHandle;
pub use recover::read_snapshot;
pub(crate) use recover::recover;
pub use snapshot::make as make_snapshot;
pub use wanted::WantedUploads;

use crate::journal::OpenJournal;
use driver::Driver;
use sojourn_core::CoreConfig;
use sojourn_protocol::{digest::Digest, ids::LeaseId};
use std::sync::Arc;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

/// The shell's settings.
#[derive(Debug, Clone, Copy)]
pub struct ShellConfig {
    /// The core's.
    pub core: CoreConfig,
    /// A snapshot is made after this many events.
    pub snapshot_every: u64,
    /// How many of the last events are kept for people to read when a snapshot allows a trim.
    pub keep_events: u64,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self { core: CoreConfig::default(), snapshot_every: 50_000, keep_events: 1_000_000 }
    }
}

/// Something to do outside, once all that was decided before is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    /// There are uploads to assimilate.
    Assimilate,
    /// Delete this blob, then tell [`sojourn_core::Command::Deleted`].
    Delete(Digest),
    /// Drop what was uploaded under this lease.
    DropUpload(LeaseId),
}

/// A running shell.
#[derive(Debug)]
pub struct Shell {
    handle: ShellHandle,
    /// Ends when the driver's thread has ended, however it did.
    ended: oneshot::Receiver<()>,
}

impl Shell {
    /// Brings the state back from the journal and starts the core.
    ///
    /// # Errors
    /// Where the journal is refused.
    pub fn start(
        journals: Arc<dyn OpenJournal>,
        config: ShellConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, UnboundedReceiver<Errand>), ShellError> {
        let (inputs, inbox) = std::sync::mpsc::channel();
        let (errands, outbox) = tokio::sync::mpsc::unbounded_channel();
        let (alive, ended) = oneshot::channel();
        let handle = ShellHandle::new(inputs.clone());
        let driver = Driver::recover(journals, config, clock, inputs, inbox, errands)?;
        std::thread::Builder::new()
            .name("core".to_owned())
            .spawn(move || {
                let _alive = alive;
                driver.run();
            })
            .map_err(ShellError::Thread)?;
        Ok((Self { handle, ended }, outbox))
    }

    /// What commands are given through.
    #[must_use]
    pub const fn handle(&self) -> &ShellHandle {
        &self.handle
    }

    /// Returns when the core's thread has ended without having been stopped, which it does only by
    /// a fault of the program.
    pub async fn ended(&mut self) {
        let _ = (&mut self.ended).await;
    }

    /// Does what was asked before, answers those who wait that the server stops, writes a snapshot
    /// and ends.
    pub async fn stop(mut self) {
        self.handle.stop();
        self.ended().await;
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.handle.stop();
    }
}
