//! Webhooks: addresses that are told of what happens, each of it once, signed in the way of
//! [Standard Webhooks](https://www.standardwebhooks.com).
//!
//! ```text
//! journal grows --> watch: views of the core --> notice (pure) --> book (a file) --> deliver: one task an address --> POST
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `settings.rs` | the addresses, as the operator's file has them |
//! | `notice.rs` | which notifications follow from what was seen before and what is seen now; pure |
//! | `book.rs` | what was seen, and what is still to be delivered: the file that outlives a restart |
//! | `signature.rs` | the signature of a delivery |
//! | `watch.rs`, `deliver.rs` | the tasks |

mod book;
mod deliver;
mod notice;
mod settings;
mod signature;
mod watch;

pub(crate) use settings::WebhookSettings;
pub use settings::WebhooksError;

use crate::shell::ShellHandle;
use book::BookFile;
use std::{io, path::PathBuf, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// The tasks. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Webhooks {
    _tasks: JoinSet<()>,
}

impl Webhooks {
    /// Starts them. Must be called within a Tokio runtime. `lease_term`: after so long without a word a host counts as lost.
    pub(crate) fn start(
        settings: WebhookSettings,
        file: PathBuf,
        shell: &ShellHandle,
        lease_term: Duration,
    ) -> io::Result<Self> {
        let names = settings.webhooks.iter().map(|webhook| webhook.name.clone());
        let book = Arc::new(BookFile::open(file, &names.collect())?);
        let mut tasks = JoinSet::new();
        let watch = watch::Watch::new(&settings, Arc::clone(&book), shell.clone(), lease_term);
        tasks.spawn(watch.run());
        for webhook in settings.webhooks {
            tasks.spawn(deliver::run(webhook, Arc::clone(&book)));
        }
        Ok(Self { _tasks: tasks })
    }
}
