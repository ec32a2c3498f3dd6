//! Opening a deployment's journal in Redis, for one server: it takes the lease, opens the journal, and says whether the
//! lease is still held.

use super::{
    RedisUrl,
    configured::Configured,
    keys::Keys,
    lease::{Holder, Lease, Taken, release, take},
    storage::{RedisStorage, check_fence},
};
use crate::{
    data_folder::new_token,
    journal::{
        Disk, Durability, Journal, JournalError, NoteStore, OpenJournal,
        chained::{ChainedJournal, Verify},
        high_water::{HighWaterMark, OnLoss},
        shared_note::SharedNote,
    },
};
use parking_lot::Mutex;
use redis::{Script, cmd};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

/// Redis counts as gone when it hasn't answered for so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of the note that all servers see, before that of the deployment.
const NOTE_NAME: &str = "journal-reached";

/// How a journal in Redis is used.
#[derive(Debug)]
pub struct RedisSettings {
    /// Where it is.
    pub url: RedisUrl,
    /// When an event counts as durable.
    pub durability: Durability,
    /// How long a server that has died keeps others from taking over.
    pub lease: Duration,
    /// A file of this machine for a note of how far the journal has come.
    pub note: PathBuf,
}

impl RedisSettings {
    /// The lease's usual term: a standby takes over in less than 5 s.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(3);
}

/// A deployment's journal in Redis, which several servers may share.
pub struct RedisJournals {
    url: Arc<RedisUrl>,
    keys: Keys,
    durability: Durability,
    note: PathBuf,
    /// The losses that a power cut could cause, for people.
    losses: String,
    /// Held while the journal is opened or left, which waits for Redis.
    holder: Mutex<Holder>,
    /// The lease that was taken last. It is held for moments only: whoever asks for it must not wait for Redis.
    lease: Mutex<Option<Arc<Lease>>>,
    notes: Mutex<Option<Arc<dyn NoteStore>>>,
}

impl fmt::Debug for RedisJournals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisJournals").field("url", &self.url).finish_non_exhaustive()
    }
}

impl RedisJournals {
    /// Connects, and verifies that Redis is set up for the chosen durability. Nothing is written.
    ///
    /// # Errors
    /// Where Redis can't be reached, or can't keep what was chosen.
    pub fn connect(settings: RedisSettings) -> Result<Self, JournalError> {
        let RedisSettings { url, durability, lease, note } = settings;
        let mut connection = url.connect(ANSWER_TIMEOUT)?;
        let configured = Configured::read(&mut connection)?;
        configured.check(durability)?;
        let losses = configured.losses(durability);
        let id = new_token().map_err(|error| JournalError::Storage(error.to_string().into()))?;
        let holder = Holder { id, url: String::new(), term: lease };
        let keys = Keys::of(&url.deployment);
        let (holder, lease) = (Mutex::new(holder), Mutex::default());
        let (url, notes) = (Arc::new(url), Mutex::default());
        Ok(Self { url, keys, durability, note, losses, holder, lease, notes })
    }

    /// Ends the lease that was taken last. Whether there was one.
    fn drop_lease(&self) -> bool {
        let lease = self.lease.lock().take();
        // Its thread may wait for Redis, and is waited for.
        lease.is_some()
    }
}

impl OpenJournal for RedisJournals {
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        let holder = self.holder.lock();
        // A writer of an earlier lease of this process is shut out by the next token.
        self.drop_lease();
        let mut connection = self.url.connect(ANSWER_TIMEOUT)?;
        let (token, until) = match take(&mut connection, &self.keys, &holder)? {
            Taken::Ours { token, until } => (token, until),
            Taken::Other(active) => return Err(JournalError::Standby { active }),
        };
        let (url, keys) = (Arc::clone(&self.url), self.keys.clone());
        let lease = Arc::new(Lease::keep(url, keys.clone(), holder.clone(), token, until)?);
        *self.lease.lock() = Some(Arc::clone(&lease));
        drop(holder);
        // Redis may have been set up anew, or be another one since a failover.
        Configured::read(&mut connection)?.check(self.durability)?;
        let held = Arc::clone(&lease);
        let mut storage = RedisStorage::open(connection, keys, lease, self.durability)?;
        storage.confirm_replicas()?;
        let may_lose = self.durability.disk < Disk::Always && self.durability.replicas == 0;
        let on_loss = if may_lose { OnLoss::Report } else { OnLoss::Refuse };
        let high_water = HighWaterMark::at(self.note.clone(), on_loss);
        let journal = ChainedJournal::over(storage, Some(high_water), Verify::Tail)?;
        let notes = self.notes.lock().clone();
        let Some(notes) = notes else { return Ok(Box::new(journal)) };
        let note = SharedNote::new(notes, format!("{NOTE_NAME}-{}", self.url.deployment));
        let may_write = move || !held.held_for().is_zero();
        Ok(Box::new(journal.with_note(note, on_loss, may_write)?))
    }

    fn keep_note(&self, notes: Arc<dyn NoteStore>) {
        *self.notes.lock() = Some(notes);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn held_for(&self) -> Duration {
        self.lease.lock().as_ref().map_or(Duration::ZERO, |lease| lease.held_for())
    }

    fn advertise(&self, url: &str) {
        url.clone_into(&mut self.holder.lock().url);
    }

    fn durability(&self) -> Option<&str> {
        Some(&self.losses)
    }

    fn secret(&self, name: &str, mine: &str) -> Result<String, JournalError> {
        let mut connection = self.url.connect(ANSWER_TIMEOUT)?;
        let key = self.keys.secrets();
        let _: u8 = connection.query(cmd("HSETNX").arg(&key).arg(name).arg(mine))?;
        connection.query(cmd("HGET").arg(&key).arg(name))
    }

    fn existing_secret(&self, name: &str) -> Result<Option<String>, JournalError> {
        let mut connection = self.url.connect(ANSWER_TIMEOUT)?;
        connection.query(cmd("HGET").arg(self.keys.secrets()).arg(name))
    }

    fn set_secret(&self, name: &str, value: &str) -> Result<(), JournalError> {
        let token = self.lease.lock().as_ref().map(|lease| lease.token());
        let token = token.ok_or(JournalError::Fenced)?;
        let mut connection = self.url.connect(ANSWER_TIMEOUT)?;
        let set: u32 = connection.run(
            &Script::new(include_str!("set_secret.lua")),
            &[&self.keys.meta(), &self.keys.secrets()],
            &[token.to_string().as_bytes(), name.as_bytes(), value.as_bytes()],
        )?;
        check_fence(set)
    }

    fn remove_secret(&self, name: &str) -> Result<(), JournalError> {
        let mut connection = self.url.connect(ANSWER_TIMEOUT)?;
        let _: u8 = connection.query(cmd("HDEL").arg(self.keys.secrets()).arg(name))?;
        Ok(())
    }

    fn leave(&self) {
        let holder = self.holder.lock();
        if !self.drop_lease() {
            return;
        }
        let released = self
            .url
            .connect(ANSWER_TIMEOUT)
            .and_then(|mut connection| release(&mut connection, &self.keys, &holder));
        if let Err(error) = released {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the lease could not be released; it expires by itself");
        }
    }
}
