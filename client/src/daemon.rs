//! The daemon's life: check everything, become a host, work until told to stop, give back what is held.

use crate::{
    ahead::Ahead,
    api::Api,
    cache::Cache,
    config::ClientConfig,
    contact::Contact,
    control::{self, Door, Units},
    delivery::{self, First},
    devices::Devices,
    error::ClientError,
    failure::LastFailure,
    farewell::{farewell, wind_down},
    folder::{Folder, survive_file_limits},
    heartbeat,
    host::{Host, Leaving},
    identity::Identity,
    limits::{self, Means, Owner, Volume},
    log::{self, LogChoice},
    measured::Measurements,
    notice::{Notice, Service, Watch},
    outbox::{Finished, Outbox},
    rest::Rest,
    runner::{RunnerError, UnitRunner},
    table::Table,
    transfer::{Fetcher, Lines},
    work,
};
use sojourn_http::{Authorities, Backoff};
use sojourn_protocol::error::error_chain;
use std::{io, path::PathBuf, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::spawn_blocking,
    time::timeout,
};

/// How long work waits at most for results of an earlier run to be delivered.
const HEAD_START: Duration = Duration::from_secs(10);

/// Runs a daemon with runners of the caller's making, one for each slot, until `shutdown` ends.
///
/// # Errors
/// As [`crate::run`].
pub async fn run_with<R: UnitRunner>(
    config: ClientConfig,
    make_runner: impl FnMut(u32) -> Result<R, RunnerError>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    run_by(config, Means::none(), make_runner, shutdown).await
}

/// The same with trainers that are kept to the limits by such means.
pub(crate) async fn run_by<R: UnitRunner>(
    config: ClientConfig,
    means: Means,
    make_runner: impl FnMut(u32) -> Result<R, RunnerError>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    let servers = config.validate()?;
    let authorities = config.ca.as_deref().map(Authorities::read).transpose()?;
    let api = Api::new(servers, authorities.as_ref(), config.timing)?;
    let folder = Folder::open(&config.data)?;
    survive_file_limits();
    match config.log {
        LogChoice::Daily => log::open(&folder.log()),
        LogChoice::Off => log::close(),
    }
    let mut notices = watch_of(&config)?;
    let mut shutdown = pin!(shutdown);
    let (fatal, mut failed) = mpsc::unbounded_channel();
    // Before the first unit: on a machine that is going already it would only be given back.
    let begin = async {
        let look = async { Ok(notices.look().await) };
        tokio::try_join!(set_up(config, means, api, folder, make_runner, fatal), look)
    };
    let ((host, undelivered), standing) = tokio::select! {
        () = &mut shutdown => return Ok(()),
        begun = begin => begun.inspect_err(say)?,
    };
    let _stopper = StopOnDrop(Arc::clone(&host));
    match Door::open(&host.folder.control()) {
        Ok(door) => drop(host.spawn(control::serve(Arc::clone(&host), door))),
        Err(error) => {
            let file = host.folder.control();
            tracing::warn!(%error, ?file, "`sojourn client ctl` can't reach this client");
        }
    }
    let warmed = Arc::clone(&host);
    host.spawn(async move { warm_up(&warmed).await });
    let (ahead, mut delivered) = mpsc::channel(1);
    for finished in undelivered {
        let lease = finished.report.lease;
        host.table.restore(lease, finished.heartbeat_every);
        let (courier, first) = (Arc::clone(&host), First::Report { ahead: ahead.clone() });
        let task = host.spawn(async move { delivery::deliver(&courier, finished, first).await });
        host.table.worked_by(lease, task);
    }
    drop(ahead);
    let ask = async {
        // Results first, where the server takes them: the next unit may be what follows from one of them.
        timeout(HEAD_START, delivered.recv()).await.ok();
        work::ask(Arc::clone(&host)).await
    };
    let mut beats = pin!(heartbeat::beat(Arc::clone(&host)));
    let mut kept = pin!(async {
        tokio::join!(limits::keep(&host), limits::watch(&host), limits::book(&host)).0
    });
    let mut gone = pin!(host.folder.gone(host.timing.poll));
    let standing = async {
        match standing {
            Some(notice) => {
                tracing::warn!("a notice stands already as the client starts: it takes no work");
                notice
            }
            None => std::future::pending().await,
        }
    };
    let mut noticed = tokio::select! {
        biased;
        () = &mut shutdown => Noticed::Over(Ok(())),
        notice = standing => Noticed::Goes(notice),
        // The host keeps the sender: there is always an error to wait for.
        Some(error) = failed.recv() => Noticed::Over(Err(error)),
        never = ask => match never {},
        never = &mut beats => match never {},
        never = &mut kept => match never {},
        gone = &mut gone => Noticed::Over(Err(gone)),
        () = host.owner.drained() => Noticed::Drains,
        notice = notices.next() => Noticed::Goes(notice),
    };
    let mut notice = None;
    let ended = loop {
        match noticed {
            Noticed::Goes(newer) => notice = Some(newer),
            Noticed::Drains => {}
            Noticed::Over(ended) => break ended,
        }
        noticed = tokio::select! {
            () = &mut shutdown => Noticed::Over(Ok(())),
            Some(error) = failed.recv() => Noticed::Over(Err(error)),
            never = &mut beats => match never {},
            never = &mut kept => match never {},
            gone = &mut gone => Noticed::Over(Err(gone)),
            // It may say more than before: when.
            newer = notices.next() => Noticed::Goes(newer),
            () = wind_down(&host, notice.as_ref()) => Noticed::Over(Ok(())),
        };
    };
    if matches!(ended, Err(ClientError::FolderGone { .. })) {
        // There is no place any more for what is trained.
        host.leave(Leaving::Now);
    }
    // Where only this machine has changed, the server is still the one it was.
    if matches!(ended, Ok(()) | Err(ClientError::Unlike(_) | ClientError::FolderGone { .. })) {
        farewell(&host, notice.as_ref()).await;
    }
    host.stop_tasks().await;
    ended.inspect_err(say)
}

/// Has the log say why the daemon ends.
fn say(error: &ClientError) {
    let error = error_chain(error);
    tracing::error!(target: log::ENDED, error, "the client has ended");
}

/// What the daemon hears.
enum Noticed {
    /// The machine is going to be taken away.
    Goes(Notice),
    /// The owner wants it to end once what runs has ended.
    Drains,
    /// The daemon ends.
    Over(Result<(), ClientError>),
}

/// Ends the tasks of a daemon whose own future is dropped: they hold the host, and the host holds them.
struct StopOnDrop<R: UnitRunner>(Arc<Host<R>>);

impl<R: UnitRunner> Drop for StopOnDrop<R> {
    fn drop(&mut self) {
        self.0.abort_tasks();
    }
}

/// The watch over the cloud's notices.
fn watch_of(config: &ClientConfig) -> Result<Watch, ClientError> {
    let service = config.metadata_url()?.map(Service::new).transpose();
    Ok(Watch::new(service.map_err(ClientError::Http)?, config.timing.poll))
}

async fn set_up<R: UnitRunner>(
    config: ClientConfig,
    means: Means,
    api: Api,
    folder: Folder,
    make_runner: impl FnMut(u32) -> Result<R, RunnerError>,
    fatal: mpsc::UnboundedSender<ClientError>,
) -> Result<(Arc<Host<R>>, Vec<Finished>), ClientError> {
    let slots = config.slots.unwrap_or(1);
    let runners: Vec<R> =
        (0..slots).map(make_runner).collect::<Result<_, _>>().map_err(ClientError::Trainer)?;
    if runners.is_empty() {
        return Err(ClientError::NoSlots);
    }
    let devices = Devices::find(runners).await.map_err(ClientError::Trainer)?;

    let owner = Owner::new(config.allowance, config.rates, config.cache_bytes);
    let limit = owner.cache_bytes();
    let cache = blocking(folder.cache(), move |root| Cache::open(root, limit)).await?;
    let (outbox, undelivered) = blocking(folder.outbox(), Outbox::open).await?;
    if !undelivered.is_empty() {
        tracing::info!(results = undelivered.len(), "finished results are left to deliver");
    }

    let timing = config.timing;
    let contact = Arc::new(Contact::new());
    let identity = Identity::load_or_enrol(
        &folder.identity(),
        &config.name,
        config.token.as_deref(),
        &api,
        &contact,
        &mut Backoff::new(timing.longest_pause),
    )
    .await?;
    let server = config.server;
    let on = devices.names();
    tracing::info!(host = %identity.host, slots, devices = on, %server, "client started");
    let api = api.with_token(identity.token);
    let volume = Arc::new(Volume::open(folder.volume()));
    volume.set(limits::this_month(), owner.limits().monthly);
    let lines = Arc::new(Lines::new(config.rates, &volume));
    let fetcher = Fetcher::new(
        api.clone(),
        Arc::clone(&cache),
        Arc::clone(&contact),
        Arc::clone(&lines),
        timing.longest_pause,
    );
    let host = Host {
        id: identity.host,
        server,
        timing,
        measurements: Measurements::open(folder.measured()),
        folder,
        api,
        contact,
        table: Table::new(),
        units: Units::default(),
        cache,
        fetcher,
        ahead: Ahead::default(),
        lines,
        volume,
        outbox,
        devices,
        rest: Rest::new(timing.rest),
        last_failure: LastFailure::default(),
        owner,
        means,
        leaving: watch::Sender::new(Leaving::No),
        fatal,
        tasks: std::sync::Mutex::default(),
    };
    Ok((Arc::new(host), undelivered))
}

/// Trainers that are started at once.
const TRAINERS_AT_ONCE: usize = 4;

/// Starts the trainers of all slots that are free, which takes each a moment, rather than with their first
/// units. One that can't start says so with its unit; one that calculates otherwise ends the daemon.
async fn warm_up<R: UnitRunner>(host: &Host<R>) {
    let free = host.devices.iter().flat_map(|device| {
        let seats: Vec<_> = std::iter::from_fn(|| device.seats.take_free()).collect();
        seats.into_iter().map(move |seat| (device, seat))
    });
    // A few at a time: each takes a core for a while.
    let turns = &Semaphore::new(TRAINERS_AT_ONCE);
    let greetings: Vec<_> = free
        .map(|(device, mut seat)| async move {
            let _turn = turns.acquire().await;
            device.greet(&mut seat).await
        })
        .collect();
    for greeted in futures::future::join_all(greetings).await {
        if let Err(error) = greeted
            && error.is_for_good()
        {
            host.end(ClientError::Unlike(error));
        }
    }
}

/// Opens a part of the data folder, off the async threads.
async fn blocking<T: Send + 'static>(
    path: PathBuf,
    open: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> Result<T, ClientError> {
    let root = path.clone();
    let opened = spawn_blocking(move || open(root)).await.map_err(io::Error::other);
    opened.and_then(|opened| opened).map_err(|source| ClientError::Folder { path, source })
}
