//! Who may write: one server at a time has the lease, and with each taking comes a higher fencing token, which
//! every write shows. A server that was stopped over its lease thus can't change anything when it goes on, whatever it
//! believes; that it also stops answering is what [`Lease::holds`] is for.

use super::{keys::Keys, link::Link, place::RedisPlace};
use crate::journal::JournalError;
use redis::Script;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Who wants the lease.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// Nobody else's, in this process or another.
    pub(super) id: String,
    /// Where it can be reached.
    pub(super) url: String,
    /// How long the lease lasts unless it is renewed.
    pub(super) term: Duration,
}

impl Holder {
    fn term_ms(&self) -> String {
        self.term.as_millis().max(1).to_string()
    }
}

/// How a try to take the lease ended.
#[derive(Debug)]
pub(super) enum Taken {
    /// It was taken; until when it lasts at least, and the token.
    Ours { token: u64, until: Instant },
    /// Another server has it; its URL.
    Other(String),
}

/// Takes the lease where nobody else has it.
pub(super) fn take(link: &mut Link, keys: &Keys, holder: &Holder) -> Result<Taken, JournalError> {
    let begun = Instant::now();
    let script = Script::new(include_str!("take.lua"));
    let (taken, word, _left): (u8, String, i64) = link.run(
        &script,
        &[&keys.lease(), &keys.meta()],
        &[holder.id.as_bytes(), holder.url.as_bytes(), holder.term_ms().as_bytes()],
    )?;
    if taken == 0 {
        let url = word.split_once(' ').map_or("", |(_, url)| url);
        return Ok(Taken::Other(url.to_owned()));
    }
    let token = word.parse().map_err(|_| {
        JournalError::Unreadable(format!("the fencing token `{word}` is no number").into())
    })?;
    Ok(Taken::Ours { token, until: begun + holder.term })
}

/// A lease that a thread of its own renews, each third of its term, until this is dropped.
pub(super) struct Lease {
    shared: Arc<Shared>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("token", &self.shared.token).finish_non_exhaustive()
    }
}

struct Shared {
    place: Arc<RedisPlace>,
    keys: Keys,
    holder: Holder,
    token: u64,
    /// It lasts until then, whatever becomes of the connection.
    until: Mutex<Instant>,
}

impl Lease {
    /// Keeps what was taken.
    pub(super) fn keep(
        place: Arc<RedisPlace>,
        keys: Keys,
        holder: Holder,
        token: u64,
        until: Instant,
    ) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared { place, keys, holder, token, until: Mutex::new(until) });
        let (stop, stopped) = mpsc::channel();
        let renewed = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || renewed.renew(&stopped))
            .map_err(|error| JournalError::Storage(Box::new(error)))?;
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The fencing token.
    pub(super) fn token(&self) -> u64 {
        self.shared.token
    }

    /// Whether nobody else can have it now. A clock that stands still while the machine sleeps makes
    /// this say yes for too long; the token doesn't depend on it.
    pub(super) fn holds(&self) -> bool {
        Instant::now() < *self.shared.until()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the lease's thread panicked");
        }
    }
}

impl Shared {
    fn until(&self) -> MutexGuard<'_, Instant> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until it is to stop, or another has the lease.
    fn renew(&self, stopped: &mpsc::Receiver<()>) {
        let script = Script::new(include_str!("renew.lua"));
        let mut link = None;
        while stopped.recv_timeout(self.holder.term / 3) == Err(mpsc::RecvTimeoutError::Timeout) {
            let begun = Instant::now();
            match self.renew_once(&mut link, &script) {
                Ok(true) => *self.until() = begun + self.holder.term,
                Ok(false) => {
                    tracing::warn!("another server has taken over");
                    *self.until() = begun;
                    return;
                }
                Err(error) => {
                    link = None;
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "the lease in Redis could not be renewed; trying again");
                }
            }
        }
    }

    fn renew_once(&self, link: &mut Option<Link>, script: &Script) -> Result<bool, JournalError> {
        let link = match link {
            Some(link) => link,
            none => none.insert(self.place.connect(self.holder.term)?),
        };
        let renewed: u8 = link.run(
            script,
            &[&self.keys.lease(), &self.keys.meta()],
            &[
                self.holder.id.as_bytes(),
                self.holder.url.as_bytes(),
                self.holder.term_ms().as_bytes(),
                self.token.to_string().as_bytes(),
            ],
        )?;
        Ok(renewed == 1)
    }
}

/// Gives the lease back, so that another needn't wait for its end.
pub(super) fn release(link: &mut Link, keys: &Keys, holder: &Holder) -> Result<(), JournalError> {
    let script = Script::new(include_str!("release.lua"));
    link.run(&script, &[&keys.lease()], &[holder.id.as_bytes()])
}
