//! The journal's place in Redis, for one server: it takes the lease, opens the journal, and says whether it may
//! still speak.

use super::{
    Durability, RedisJournal, RedisPlace,
    durability::Configured,
    keys::Keys,
    lease::{Holder, Lease, Taken, release, take},
};
use crate::{
    data_folder::new_token,
    journal::{Journal, JournalError, OpenJournal, reached::Reached},
};
use redis::cmd;
use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The longest wait for an answer of Redis; then it counts as gone.
const ANSWER: Duration = Duration::from_secs(5);

/// How a journal in Redis is used.
#[derive(Debug)]
pub struct RedisSettings {
    /// Where it is.
    pub place: RedisPlace,
    /// When an event counts as durable.
    pub durability: Durability,
    /// How long a server that has died keeps others from taking over.
    pub lease: Duration,
    /// A file of this machine for a note of how far the journal has come.
    pub note: PathBuf,
}

impl RedisSettings {
    /// The lease's usual term: a standby takes over in less than 5 s.
    pub const LEASE: Duration = Duration::from_secs(3);
}

/// A deployment's journal in Redis, which several servers may want.
pub struct RedisJournals {
    place: Arc<RedisPlace>,
    keys: Keys,
    durability: Durability,
    note: PathBuf,
    /// What a power cut could lose, for people.
    standing: String,
    state: Mutex<State>,
}

struct State {
    holder: Holder,
    lease: Option<Arc<Lease>>,
}

impl fmt::Debug for RedisJournals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisJournals").field("place", &self.place).finish_non_exhaustive()
    }
}

impl RedisJournals {
    /// Connects, and holds what was chosen against what Redis says of itself. Nothing is written.
    ///
    /// # Errors
    /// Where Redis can't be reached, or can't keep what was chosen.
    pub fn connect(settings: RedisSettings) -> Result<Self, JournalError> {
        let RedisSettings { place, durability, lease, note } = settings;
        let mut link = place.connect(ANSWER)?;
        let configured = Configured::read(&mut link)?;
        configured.check(durability)?;
        let standing = configured.words(durability);
        let id = new_token().map_err(|error| JournalError::Storage(error.to_string().into()))?;
        let holder = Holder { id, url: String::new(), term: lease };
        let keys = Keys::of(&place.deployment);
        let state = Mutex::new(State { holder, lease: None });
        Ok(Self { place: Arc::new(place), keys, durability, note, standing, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenJournal for RedisJournals {
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        let mut state = self.state();
        // Whoever still writes for an earlier lease of this process is shut out by the next token.
        state.lease = None;
        let mut link = self.place.connect(ANSWER)?;
        let (token, until) = match take(&mut link, &self.keys, &state.holder)? {
            Taken::Ours { token, until } => (token, until),
            Taken::Other(active) => return Err(JournalError::Standby { active }),
        };
        let (place, keys) = (Arc::clone(&self.place), self.keys.clone());
        let lease = Arc::new(Lease::keep(place, keys.clone(), state.holder.clone(), token, until)?);
        state.lease = Some(Arc::clone(&lease));
        drop(state);
        // Redis may have been set up anew, or be another one since a failover.
        Configured::read(&mut link)?.check(self.durability)?;
        let reached = Reached::at(self.note.clone());
        let journal = RedisJournal::open(link, keys, lease, self.durability, reached)?;
        Ok(Box::new(journal))
    }

    fn is_ours(&self) -> bool {
        self.state().lease.as_ref().is_some_and(|lease| lease.holds())
    }

    fn stand_at(&self, url: &str) {
        url.clone_into(&mut self.state().holder.url);
    }

    fn standing(&self) -> Option<&str> {
        Some(&self.standing)
    }

    fn secret(&self, name: &str, mine: &str) -> Result<String, JournalError> {
        let mut link = self.place.connect(ANSWER)?;
        let key = self.keys.secrets();
        let _: u8 = link.ask(cmd("HSETNX").arg(&key).arg(name).arg(mine))?;
        link.ask(cmd("HGET").arg(&key).arg(name))
    }

    fn leave(&self) {
        let mut state = self.state();
        if state.lease.take().is_none() {
            return;
        }
        let released = self
            .place
            .connect(ANSWER)
            .and_then(|mut link| release(&mut link, &self.keys, &state.holder));
        if let Err(error) = released {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the lease could not be given back; it ends by itself");
        }
    }
}
