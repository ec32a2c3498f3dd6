//! A note of how far the journal has come, where all servers of the journal see it: beside their blobs. It shows a server that
//! takes over that the journal has gone back, or is another one: a replica that lacked the last events became the primary, or an
//! old copy was put in its place.
//!
//! The note has a position and the hash of the chain there. It is written when the journal is opened, when it is closed, and at
//! most once in [`NOTE_INTERVAL`] between: a put into an object store takes longer than an append. So events that were lost
//! within a second or so of their acknowledgement may go unnoticed. The note is never ahead of what is durable.

use super::{ChainHash, JournalError, Mark};
use parking_lot::Mutex;
use sojourn_core::JournalPosition;
use sojourn_protocol::digest::Digest;
use std::{
    error::Error,
    fmt,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

/// The note is written at most this often while events come.
pub const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// A place for notes that all servers of a journal reach. Calls block.
pub trait NoteStore: Send + Sync {
    /// The text of a note; `None` where there is none.
    ///
    /// # Errors
    /// Where the place can't be reached.
    fn read(&self, name: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>>;

    /// Replaces the text of a note, durably.
    ///
    /// # Errors
    /// Where the place can't be reached.
    fn write(&self, name: &str, text: &str) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// The note's place, for people who want to remove it.
    fn place(&self, name: &str) -> String;
}

/// The note of one journal.
#[derive(Clone)]
pub(in crate::journal) struct SharedNote {
    store: Arc<dyn NoteStore>,
    name: String,
}

impl fmt::Debug for SharedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedNote").field(&self.name).finish()
    }
}

impl SharedNote {
    /// The note of this name.
    pub(in crate::journal) fn new(store: Arc<dyn NoteStore>, name: String) -> Self {
        Self { store, name }
    }

    /// The note's place, for people.
    pub(in crate::journal) fn place(&self) -> String {
        self.store.place(&self.name)
    }

    /// How far the journal had come; `None` where nobody has noted it yet.
    pub(in crate::journal) fn read(&self) -> Result<Option<Mark>, JournalError> {
        let text = self.store.read(&self.name).map_err(JournalError::Storage)?;
        let Some(text) = text else { return Ok(None) };
        let mark = text.trim().split_once(' ').and_then(|(position, hash)| {
            let hash: Digest = hash.parse().ok()?;
            Some(Mark {
                position: JournalPosition(position.parse().ok()?),
                hash: ChainHash(hash.0),
            })
        });
        mark.map(Some).ok_or_else(|| {
            let place = self.place();
            let what = format!(
                "the note `{place}` should hold a position and a hash; where the journal is whole, remove it to go on"
            );
            JournalError::Unreadable(what.into())
        })
    }

    /// Notes how far the journal has come.
    pub(in crate::journal) fn write(&self, mark: Mark) -> Result<(), JournalError> {
        let text = format!("{} {}\n", mark.position.0, Digest(mark.hash.0));
        self.store.write(&self.name, &text).map_err(JournalError::Storage)
    }
}

/// Writes the note on a thread of its own, until this is dropped.
pub(in crate::journal) struct NoteKeeper {
    reached: Arc<Mutex<Mark>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for NoteKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoteKeeper").field("reached", &*self.reached.lock()).finish()
    }
}

impl NoteKeeper {
    /// Notes that the journal has come so far, and goes on doing so while `may_write`: another server may have it then.
    pub(in crate::journal) fn start(
        note: SharedNote,
        mark: Mark,
        may_write: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, JournalError> {
        note.write(mark)?;
        let reached = Arc::new(Mutex::new(mark));
        let (stop, stopped) = mpsc::channel();
        let latest = Arc::clone(&reached);
        let thread = std::thread::Builder::new()
            .name("note".to_owned())
            .spawn(move || keep(&note, mark, &latest, may_write, &stopped))
            .map_err(|error| JournalError::Storage(Box::new(error)))?;
        Ok(Self { reached, stop: Some(stop), thread: Some(thread) })
    }

    /// The journal is durable up to this mark.
    pub(in crate::journal) fn reached(&self, mark: Mark) {
        *self.reached.lock() = mark;
    }
}

fn keep(
    note: &SharedNote,
    mut written: Mark,
    latest: &Mutex<Mark>,
    may_write: impl Fn() -> bool,
    stopped: &mpsc::Receiver<()>,
) {
    let mut has_failed = false;
    loop {
        let ends = stopped.recv_timeout(NOTE_INTERVAL) != Err(mpsc::RecvTimeoutError::Timeout);
        let mark = *latest.lock();
        if mark != written && may_write() {
            match note.write(mark) {
                Ok(()) => (written, has_failed) = (mark, false),
                Err(error) if !has_failed => {
                    has_failed = true;
                    let error = &error as &dyn Error;
                    let place = note.place();
                    tracing::warn!(
                        error,
                        place,
                        "the note of how far the journal has come can't be written; trying again"
                    );
                }
                Err(_) => {}
            }
        }
        if ends {
            return;
        }
    }
}

impl Drop for NoteKeeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the note's thread panicked");
        }
    }
}
