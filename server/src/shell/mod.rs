//! The shell around the core: it gives the core commands with a time and a random seed, and carries out the effects.
//! A reply is sent only when all events before it are durable. The shell decides nothing.
//!
//! ```text
//!  ShellHandle --Input--> driver thread (owns Core) --Items--> writer thread (owns Journal)
//!       ^                        ^                                  |       |
//!       |                        +---------- journal failed --------+       +--> side effects
//!       +------------------------------ replies, once durable ------+
//! ```

mod clock;
mod config;
mod counts;
mod driver;
mod error;
mod failures;
mod faults;
mod group_commit;
mod handle;
mod journal_lease;
mod live_uploads;
mod message;
mod planner_thread;
mod recovery;
mod side_effects;
mod snapshot;
mod writer;

pub(crate) use clock::wall_time;
pub use clock::{Clock, SteadyClock};
pub use config::ShellConfig;
pub(crate) use counts::ShellCounts;
pub use error::ShellError;
pub use handle::ShellHandle;
pub use journal_lease::{JournalLease, LeaseLost};
pub use live_uploads::LiveUploads;
pub(crate) use recovery::recover;
pub use side_effects::SideEffect;
pub use snapshot::{make as make_snapshot, read_snapshot};

use crate::journal::OpenJournal;
use driver::Driver;
use std::sync::Arc;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

/// A running shell.
#[derive(Debug)]
pub struct Shell {
    handle: ShellHandle,
    /// Completes when the driver's thread has ended, also by a panic.
    ended: oneshot::Receiver<()>,
}

impl Shell {
    /// Recovers the state from the journal and starts the core.
    ///
    /// # Errors
    /// Where the journal can't be read, an event in it doesn't fit the state, or the recovered state breaks an
    /// invariant that isn't accepted.
    pub fn start(
        journals: Arc<dyn OpenJournal>,
        config: ShellConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, UnboundedReceiver<SideEffect>), ShellError> {
        let (inputs, inbox) = std::sync::mpsc::channel();
        let (side_effects, outbox) = tokio::sync::mpsc::unbounded_channel();
        let (alive, ended) = oneshot::channel();
        let lease = JournalLease::new(Arc::clone(&journals));
        let counts = ShellCounts::default();
        let handle = ShellHandle::new(inputs.clone(), lease, counts.clone());
        let driver = Driver::recover(journals, config, clock, inputs, inbox, side_effects, counts)?;
        std::thread::Builder::new()
            .name("core".to_owned())
            .spawn(move || {
                let _alive = alive;
                driver.run();
            })
            .map_err(ShellError::Thread)?;
        Ok((Self { handle, ended }, outbox))
    }

    /// The handle through which commands are given.
    #[must_use]
    pub const fn handle(&self) -> &ShellHandle {
        &self.handle
    }

    /// Returns when the core's thread has ended without having been stopped, which it does only by
    /// a fault of the program.
    pub async fn ended(&mut self) {
        let _ = (&mut self.ended).await;
    }

    /// Carries out the commands that were given before, refuses the callers that wait, writes a snapshot and ends.
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
