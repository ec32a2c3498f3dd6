//! The daemon's side: a socket of mode 0600, and an answer to each line.

use super::{
    SOCKET_FILE,
    words::{Answer, Ask, CacheState, LimitsState, Paused, Resting, Status},
};
use crate::{host::Host, limits::Change, log, runner::UnitRunner};
use sojourn_protocol::{error::error_chain, trainer::Pace};
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::timeout,
};

/// The longest line that is read.
const LONGEST_LINE: u64 = 64 << 10;
/// Calls that are served at once.
const AT_ONCE: usize = 16;
/// How long the answer to the end of a pause waits for what follows from it.
const LOOK: Duration = Duration::from_secs(2);
/// How long a caller may take over a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// The open socket; closed, it is gone from the folder.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens the socket in a data folder that this daemon has the lock of. The folder is closed to others first:
    /// between its making and the change of its mode, a socket can be had by anybody whom the folder lets in.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            close(folder)?;
        }
        // What a killed daemon has left: the lock says that nobody listens.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let door = Self { listener, path: path.to_owned() };
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(door)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // At worst the next daemon does it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes sure that nobody but the owner can enter.
fn close(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(folder, Permissions::from_mode(mode & 0o700))
}

/// Answers for as long as the daemon runs.
pub(crate) async fn serve<R: UnitRunner>(host: Arc<Host<R>>, door: Door) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        match door.listener.accept().await {
            Ok((stream, _)) => {
                let host_of_call = Arc::clone(&host);
                host.spawn(async move {
                    // Who hangs up has heard enough.
                    let _ = timeout(PATIENCE, answer_all(&host_of_call, stream)).await;
                    drop(turn);
                });
            }
            // Too many open files, perhaps.
            Err(error) => {
                tracing::debug!(%error, file = SOCKET_FILE, "a call isn't taken");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn answer_all<R: UnitRunner>(host: &Host<R>, stream: UnixStream) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(ask) => answer(host, ask).await,
            Err(error) => Answer::Refused(format!("the question can't be understood: {error}")),
        };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        to.write_all(&text).await?;
    }
}

async fn answer<R: UnitRunner>(host: &Host<R>, ask: Ask) -> Answer {
    match ask {
        Ask::Status => status(host),
        Ask::Pause(pause) => {
            host.owner.pause(pause.seconds.map(Duration::from_secs));
            status(host)
        }
        Ask::Resume => {
            host.owner.resume();
            // It may take a look at the machine to know whether a limit wants another pause.
            let _ = timeout(LOOK, host.owner.resumed()).await;
            status(host)
        }
        Ask::Drain => {
            host.owner.drain();
            status(host)
        }
        Ask::Limits => limits(host),
        Ask::SetLimits(texts) => {
            let changes: Result<Vec<Change>, String> = texts
                .iter()
                .map(|text| text.parse().map_err(|why| format!("`{text}`: {why}")))
                .collect();
            let changed = changes.and_then(|changes| {
                host.owner.change(&changes).map_err(|error| error_chain(&error))
            });
            match changed {
                Ok(_) => limits(host),
                Err(why) => Answer::Refused(why),
            }
        }
        Ask::Cache => Answer::Cache(cache(host)),
        Ask::ClearCache => {
            let bytes = host.cache.clear();
            tracing::info!(bytes, "the cache is cleared, as the owner says");
            Answer::Cache(cache(host))
        }
        Ask::Log(part) => Answer::Log(log::end(part)),
    }
}

fn status<R>(host: &Host<R>) -> Answer {
    let owner = &host.owner;
    // What the owner has just said holds in a moment.
    let reason = owner.by_hand().map(|_| crate::limits::Reason::Owner).or_else(|| owner.reason());
    let paused = reason.map(|reason| Paused {
        why: reason.to_string(),
        reason,
        seconds_left: owner.pause_left().map(|left| left.as_secs()),
        given_back: owner.is_suspended(),
    });
    let share =
        if paused.is_some() { Pace::PAUSED } else { *owner.pace(host.devices.kind()).borrow() };
    let pace = share.get().min(host.means.share(&owner.limits()));
    Answer::Status(Box::new(Status {
        host: host.id.to_string(),
        server: host.server.clone(),
        server_away: host.contact.is_away(),
        device: host.devices.names(),
        slots: host.devices.slots().iter().map(|(_, slots)| slots).sum(),
        out_of_use: host.devices.iter().map(|device| device.seats.retired()).sum(),
        pace,
        paused,
        resting: host
            .rest
            .left()
            .map(|(left, reason)| Resting { reason, seconds_left: left.as_secs() }),
        last_failure: host.last_failure.get(),
        draining: owner.drains(),
        units: host.table.holding().into_iter().map(|held| host.units.status(held)).collect(),
        transfers: host.lines.transfers(),
        limits: owner.limits(),
        keepers: host.means.keepers(),
        month: host.volume.now(),
        cache: cache(host),
    }))
}

fn limits<R>(host: &Host<R>) -> Answer {
    Answer::Limits(Box::new(LimitsState { limits: host.owner.limits(), file: host.owner.file() }))
}

fn cache<R>(host: &Host<R>) -> CacheState {
    let cache = &host.cache;
    CacheState { used: cache.used(), limit: cache.limit(), shards: cache.data().len() }
}
