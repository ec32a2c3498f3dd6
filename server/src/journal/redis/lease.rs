//! The lease of a journal: the one server that has it may write.
//!
//! Each time the lease is taken, the fencing token grows, and every write shows the token. So a server that was stopped
//! beyond its lease can't change anything when it goes on. [`Lease::held_for`] makes it stop answering too.

use super::{connection::RedisConnection, keys::Keys, url::RedisUrl};
use crate::{boot_time::since_boot, journal::JournalError};
use parking_lot::Mutex;
use redis::Script;
use std::{
    fmt,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

/// A server that asks for the lease.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// Unique, in this process and others.
    pub(super) id: String,
    /// The URL under which it can be reached.
    pub(super) url: String,
    /// How long the lease is valid unless it is renewed.
    pub(super) term: Duration,
}

impl Holder {
    fn term_ms(&self) -> String {
        self.term.as_millis().max(1).to_string()
    }
}

/// The answer to a request for the lease.
#[derive(Debug)]
pub(super) enum Taken {
    /// The lease was granted with this token, at least until the machine has run for so long.
    Ours { token: u64, until: Duration },
    /// Another server has it; its URL.
    Other(String),
}

/// Takes the lease if no other server has it.
pub(super) fn take(
    connection: &mut RedisConnection,
    keys: &Keys,
    holder: &Holder,
) -> Result<Taken, JournalError> {
    let begun = since_boot();
    let script = Script::new(include_str!("take.lua"));
    let (taken, word, _left): (u8, String, i64) = connection.run(
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

/// A lease that its own thread renews, every third of its term, until this is dropped.
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
    url: Arc<RedisUrl>,
    keys: Keys,
    holder: Holder,
    token: u64,
    /// The machine's running time until which the lease is valid, whatever becomes of the connection.
    until: Mutex<Duration>,
}

impl Lease {
    /// Keeps a granted lease.
    pub(super) fn keep(
        url: Arc<RedisUrl>,
        keys: Keys,
        holder: Holder,
        token: u64,
        until: Duration,
    ) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared { url, keys, holder, token, until: Mutex::new(until) });
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

    /// How long no other server can have it, even if it isn't renewed any more. A virtual machine that is paused from outside
    /// may not notice, which makes this too long; the token doesn't depend on a clock.
    pub(super) fn held_for(&self) -> Duration {
        self.shared.until.lock().saturating_sub(since_boot())
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
    /// Renews until it is stopped or another server has the lease.
    fn renew(&self, stopped: &mpsc::Receiver<()>) {
        let script = Script::new(include_str!("renew.lua"));
        let mut connection = None;
        while stopped.recv_timeout(self.holder.term / 3) == Err(mpsc::RecvTimeoutError::Timeout) {
            let begun = since_boot();
            match self.renew_once(&mut connection, &script) {
                Ok(true) => *self.until.lock() = begun + self.holder.term,
                Ok(false) => {
                    tracing::warn!("another server has taken over");
                    *self.until.lock() = begun;
                    return;
                }
                Err(error) => {
                    connection = None;
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "the lease in Redis could not be renewed; trying again");
                }
            }
        }
    }

    fn renew_once(
        &self,
        connection: &mut Option<RedisConnection>,
        script: &Script,
    ) -> Result<bool, JournalError> {
        let connection = match connection {
            Some(connection) => connection,
            none => none.insert(self.url.connect(self.holder.term)?),
        };
        let renewed: u8 = connection.run(
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

/// Releases the lease, so that another server needn't wait for its expiry.
pub(super) fn release(
    connection: &mut RedisConnection,
    keys: &Keys,
    holder: &Holder,
) -> Result<(), JournalError> {
    let script = Script::new(include_str!("release.lua"));
    connection.run(&script, &[&keys.lease()], &[holder.id.as_bytes()])
}
