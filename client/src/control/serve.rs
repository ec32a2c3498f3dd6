//! The daemon's side: a socket of mode 0600, and an answer to each line.

use super::{
    SOCKET_FILE,
    messages::{Answer, Ask, CacheState, LimitsState, Paused, Status},
};
use crate::{
    context::Context,
    limits::Change,
    log,
    message::{AgentStatus, Message},
};
use sojourn_files::if_exists;
use sojourn_protocol::{
    error::error_chain, quantity::SaturatingFrom as _, time::UnixMillis, trainer::Pace,
};
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, oneshot},
    time::timeout,
};

/// The longest line that is read.
const MAX_LINE: u64 = 64 << 10;
/// Calls that are served at once.
const MAX_CALLS: usize = 16;
/// How long the answer to the end of a pause waits for what follows from it.
const RESUME_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a caller may take over a line.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The open socket; dropping it removes its file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Opens the socket in a data folder that this daemon has the lock of. The folder is closed to others first:
    /// between its making and the change of its mode, a socket can be had by anybody whom the folder lets in.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            close(folder)?;
        }
        // A killed daemon has left it: the lock says that nobody listens.
        if_exists(fs::remove_file(path))?;
        let listener = UnixListener::bind(path)?;
        let socket = Self { listener, path: path.to_owned() };
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(socket)
    }
}

impl Drop for ControlSocket {
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
pub(crate) async fn serve<R: Send + 'static>(context: Arc<Context<R>>, socket: ControlSocket) {
    let turns = Arc::new(Semaphore::new(MAX_CALLS));
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        match socket.listener.accept().await {
            Ok((stream, _)) => {
                let context_of_call = Arc::clone(&context);
                context.spawn(async move {
                    // The caller may have hung up.
                    let _ = timeout(CALL_TIMEOUT, answer_all(&context_of_call, stream)).await;
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

async fn answer_all<R>(context: &Context<R>, stream: UnixStream) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        (&mut lines).take(MAX_LINE).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(ask) => answer(context, ask).await,
            Err(error) => Answer::Refused(format!("the question can't be understood: {error}")),
        };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        to.write_all(&text).await?;
    }
}

async fn answer<R>(context: &Context<R>, ask: Ask) -> Answer {
    match ask {
        Ask::Status => status(context).await,
        Ask::Pause(pause) => {
            let kept = context.owner.pause(pause.seconds.map(Duration::from_secs));
            kept_status(context, kept, "paused, but the next start of the client forgets it").await
        }
        Ask::Resume => {
            let kept = context.owner.resume();
            // It may take a look at the machine to know whether a limit wants another pause.
            let _ = timeout(RESUME_TIMEOUT, context.owner.resumed()).await;
            kept_status(
                context,
                kept,
                "the pause is over, but the next start of the client pauses again",
            )
            .await
        }
        Ask::Drain => {
            let kept = context.owner.drain();
            kept_status(
                context,
                kept,
                "draining, but a client that is killed meanwhile takes work again",
            )
            .await
        }
        Ask::Limits => limits(context),
        Ask::SetLimits(texts) => {
            let changes: Result<Vec<Change>, String> = texts
                .iter()
                .map(|text| text.parse().map_err(|why| format!("`{text}`: {why}")))
                .collect();
            let changed = changes.and_then(|changes| {
                context.owner.change(&changes).map_err(|error| error_chain(&error))
            });
            match changed {
                Ok(_) => limits(context),
                Err(why) => Answer::Refused(why),
            }
        }
        Ask::Cache => Answer::Cache(cache(context)),
        Ask::ClearCache => {
            let bytes = context.storage.cache.clear();
            tracing::info!(bytes, "the cache is cleared, as the owner says");
            Answer::Cache(cache(context))
        }
        Ask::AcceptStore(store) => match context.storage.stores.accept(&store) {
            Ok(()) => {
                tracing::info!(store, "the owner accepts a store");
                status(context).await
            }
            Err(why) => Answer::Refused(why),
        },
        Ask::Log(part) => Answer::Log(log::end(part)),
    }
}

/// The status after a command of the owner; what has become of the command where it couldn't be kept on the disk.
async fn kept_status<R>(context: &Context<R>, kept: io::Result<()>, otherwise: &str) -> Answer {
    match kept {
        Ok(()) => status(context).await,
        Err(error) => {
            Answer::Refused(format!("{otherwise}: `owner.json` can't be written: {error}"))
        }
    }
}

async fn status<R>(context: &Context<R>) -> Answer {
    let agent = agent_status(context).await;
    let owner = &context.owner;
    let trainers = &context.trainers;
    let devices = &trainers.devices;
    // A pause that the owner has just asked for holds in a moment.
    let reason = owner.manual_pause().map(|pause| pause.reason).or_else(|| owner.reason());
    let paused = reason.map(|reason| {
        let until = owner.pause_ends(&reason);
        Paused {
            why: reason.to_string(),
            until,
            until_local: until.map(|until| owner.shown(until)),
            seconds_left: until.map(seconds_until),
            reason,
            given_back: owner.is_suspended(),
        }
    });
    let ratio = if paused.is_some() { Pace::PAUSED } else { *owner.pace(devices.kind()).borrow() };
    let pace = ratio.get().min(trainers.enforcement.ratio(&owner.limits()));
    Answer::Status(Box::new(Status {
        host: context.server.host.to_string(),
        unused_name: context.server.unused_name.clone(),
        server: context.server.url.clone(),
        server_away: context.server.contact.is_away(),
        device: devices.names(),
        slots: devices.slots().iter().map(|(_, slots)| slots).sum(),
        out_of_use: agent.out_of_use,
        pace,
        paused,
        resting: agent.resting,
        waiting: agent.waiting,
        last_failure: trainers.last_failure.get(),
        draining: owner.drains(),
        units: agent.units,
        transfers: context.server.bandwidth.transfers(),
        limits: owner.given_limits(),
        unknown: owner.unknowns().all(),
        keepers: trainers.enforcement.keepers(),
        month: context.storage.usage.now(agent.is_budget_closed),
        disk: context.storage.disk.seen(),
        cache: cache(context),
        stores: context.storage.stores.known(),
        refused_store: context.storage.stores.refused(),
    }))
}

/// Seconds up to a time.
fn seconds_until(time: UnixMillis) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    time.0.saturating_sub(u64::saturating_from(now.as_millis())).div_ceil(1000)
}

/// The agent's state at the moment; empty while the daemon is ending.
async fn agent_status<R>(context: &Context<R>) -> AgentStatus {
    let (to, status) = oneshot::channel();
    context.send(Message::Status(to));
    status.await.unwrap_or_default()
}

fn limits<R>(context: &Context<R>) -> Answer {
    Answer::Limits(Box::new(LimitsState {
        limits: context.owner.given_limits(),
        file: context.owner.file(),
    }))
}

fn cache<R>(context: &Context<R>) -> CacheState {
    let cache = &context.storage.cache;
    CacheState { used: cache.used(), limit: cache.limit(), shards: cache.data().len() }
}
