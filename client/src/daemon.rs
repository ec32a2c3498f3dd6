//! The life of the daemon: it checks its configuration, enrols, works until it is asked to stop, and gives its leases back.

use crate::{
    api::Api,
    config::ClientConfig,
    contact::Contact,
    context::{Context, ServerAccess, Storage, Trainers},
    control::{self, ControlSocket, UnusedName},
    driver::{Driver, Start},
    error::ClientError,
    forgotten::{Attempt, SetAside},
    identity::{Identity, enrolled_name},
    limits::{self, Commands, DataUsage, DiskWatch, LimitEnforcement, Owner},
    log::{self, LogChoice},
    message::Message,
    preemption::{Notice, Service, Watch},
    storage::{
        cache::Cache,
        folder::{Folder, survive_file_limits},
        measurements::Measurements,
        outbox::{Finished, Outbox},
        stores::Stores,
    },
    trainers::{
        devices::Devices,
        last_failure::LastFailure,
        runner::{RunnerError, UnitRunner},
        usage::Usages,
    },
    transfer::{Bandwidth, Fetcher},
};
use futures::future::{FusedFuture as _, FutureExt as _};
use sojourn_client_core::{Event, OwnerEvent};
use sojourn_http::{Authorities, Backoff};
use sojourn_protocol::error::error_chain;
use std::{io, path::PathBuf, pin::pin, sync::Arc};
use tokio::{
    sync::{Semaphore, mpsc},
    task::spawn_blocking,
};

/// Runs a daemon with runners of the caller's making, one for each slot, until `shutdown` ends.
///
/// # Errors
/// As [`crate::run`].
pub async fn run_with<R: UnitRunner>(
    config: ClientConfig,
    mut make_runner: impl FnMut(u32) -> Result<R, RunnerError>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    let mut shutdown = pin!(shutdown.fuse());
    let none = LimitEnforcement::none;
    let first = Attempt::First;
    let ended = run_by(config.clone(), first, none(), &mut make_runner, shutdown.as_mut()).await;
    match SetAside::after(&ended, &config)? {
        None => ended,
        Some(aside) if shutdown.is_terminated() => aside.settle(ended),
        Some(aside) => {
            aside.settle(run_by(config, Attempt::Again, none(), make_runner, shutdown).await)
        }
    }
}

/// As [`run_with`], with this enforcement of the limits.
pub(crate) async fn run_by<R: UnitRunner>(
    config: ClientConfig,
    attempt: Attempt,
    enforcement: LimitEnforcement,
    make_runner: impl FnMut(u32) -> Result<R, RunnerError>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    let servers = config.validate()?;
    let authorities = config.ca.as_deref().map(Authorities::read).transpose()?;
    let api = Api::new(servers, authorities.as_ref(), config.timing)?;
    let folder = Folder::open(&config.data)?;
    attempt.begin(&folder)?;
    survive_file_limits();
    match config.log {
        LogChoice::Daily => log::open(&folder.log()),
        LogChoice::Off => log::close(),
    }
    let mut notices = watch_of(&config)?;
    let mut shutdown = pin!(shutdown);
    let (fatal, mut failed) = mpsc::unbounded_channel();
    // Preemption notices are checked before the first unit, which would only be given back.
    let begin = async {
        let look = async { Ok(notices.look().await) };
        tokio::try_join!(set_up(config, enforcement, api, folder, make_runner, fatal), look)
    };
    let (begun, standing) = tokio::select! {
        () = &mut shutdown => return Ok(()),
        begun = begin => begun.inspect_err(log_end)?,
    };
    let Begun { context, undelivered, messages } = begun;
    let _stopper = StopOnDrop(Arc::clone(&context));
    match ControlSocket::open(&context.storage.folder.control()) {
        Ok(socket) => drop(context.spawn(control::serve(Arc::clone(&context), socket))),
        Err(error) => {
            let file = context.storage.folder.control();
            tracing::warn!(%error, ?file, "`sojourn client ctl` can't reach this client");
        }
    }
    let warmed = Arc::clone(&context);
    context.spawn(async move { warm_up(&warmed).await });
    // Nothing runs until the owner's limits have been checked.
    let mut events = vec![
        Event::Owner(OwnerEvent::Compute(false)),
        Event::Owner(context.storage.usage.budget()),
    ];
    if context.storage.disk.is_low() {
        tracing::warn!("the disk has less room left than is kept free: no unit is begun");
        events.push(Event::Owner(OwnerEvent::DiskLow(true)));
    }
    if let Some(notice) = &standing {
        tracing::warn!("the machine has a preemption notice at the start; taking no work");
        events.push(preempted(notice));
    }
    let mut driver = Driver::new(Arc::clone(&context), Start { undelivered, messages, events });
    let mut driven = pin!(driver.run());
    let mut kept = pin!(async {
        let (enforce, watch) = (limits::enforce(&context), limits::watch(&context));
        tokio::join!(enforce, watch, limits::watch_disk(&context), limits::count(&context)).0
    });
    let mut gone = pin!(context.storage.folder.gone(context.timing.poll));
    let (mut ended, mut is_stopping, mut is_draining) = (Ok(()), false, false);
    loop {
        tokio::select! {
            biased;
            () = &mut driven => break,
            () = &mut shutdown, if !is_stopping => {
                is_stopping = true;
                tracing::info!("stopping; sending what is trained");
                context.tell(Event::Shutdown);
            }
            // The context keeps the sender: there is always an error to wait for.
            Some(error) = failed.recv(), if ended.is_ok() => {
                is_stopping = true;
                // If only this machine has changed, results can still be sent.
                let has_time = matches!(error, ClientError::Unlike(_));
                ended = Err(error);
                if !has_time {
                    break;
                }
                context.tell(Event::Shutdown);
            }
            error = &mut gone, if ended.is_ok() => {
                is_stopping = true;
                ended = Err(error);
                // Results can't be stored any more.
                context.tell(Event::DiskGone);
            }
            () = context.owner.drained(), if !is_draining => {
                is_draining = true;
                tracing::info!("draining, as the owner asked");
                context.tell(Event::Owner(OwnerEvent::Drain));
            }
            // A later notice may add the time.
            notice = notices.next(), if !is_stopping => context.tell(preempted(&notice)),
            never = &mut kept => match never {},
        }
    }
    context.stop_tasks().await;
    if is_draining && ended.is_ok() {
        context.owner.drain_ended();
    }
    ended.inspect_err(log_end)
}

/// Logs a preemption notice, and gives the agent's event.
fn preempted(notice: &Notice) -> Event {
    let (what, left) = (notice.what.as_str(), notice.left());
    match left.map(|left| left.as_secs()) {
        Some(seconds) => {
            tracing::warn!(what, seconds, "this machine is going to be preempted; draining");
        }
        None => tracing::warn!(
            what,
            "this machine may soon be preempted; finishing running units, and taking no new ones"
        ),
    }
    Event::Preempted(left.map(Into::into))
}

/// Logs why the daemon ends.
fn log_end(error: &ClientError) {
    let error = error_chain(error);
    tracing::error!(target: sojourn_http::trace::ENDED, error, "the client has ended");
}

/// Ends the tasks of a daemon whose own future is dropped: tasks and context hold each other.
struct StopOnDrop<R>(Arc<Context<R>>);

impl<R> Drop for StopOnDrop<R> {
    fn drop(&mut self) {
        self.0.abort_tasks();
    }
}

/// The watch over the cloud's notices.
fn watch_of(config: &ClientConfig) -> Result<Watch, ClientError> {
    let service = config.metadata_url()?.map(Service::new).transpose();
    Ok(Watch::new(service.map_err(ClientError::Http)?, config.timing.poll))
}

/// The state of a daemon that has started.
struct Begun<R> {
    context: Arc<Context<R>>,
    /// Undelivered results of an earlier run.
    undelivered: Vec<Finished>,
    messages: mpsc::UnboundedReceiver<Message>,
}

async fn set_up<R: UnitRunner>(
    config: ClientConfig,
    enforcement: LimitEnforcement,
    api: Api,
    folder: Folder,
    make_runner: impl FnMut(u32) -> Result<R, RunnerError>,
    fatal: mpsc::UnboundedSender<ClientError>,
) -> Result<Begun<R>, ClientError> {
    let slots = config.slots.unwrap_or(1);
    let runners: Vec<R> =
        (0..slots).map(make_runner).collect::<Result<_, _>>().map_err(ClientError::Trainer)?;
    if runners.is_empty() {
        return Err(ClientError::NoSlots);
    }
    let devices = Devices::find(runners).await.map_err(ClientError::Trainer)?;

    let commands = Commands::open(folder.owner());
    let owner = Owner::new(config.allowance, commands, config.rates, config.cache_bytes);
    let limit = owner.cache_bytes();
    let keeps = config.cache_for;
    let cache = blocking(folder.cache(), move |root| Cache::open(root, limit, keeps)).await?;
    let (outbox, undelivered) = blocking(folder.outbox(), Outbox::open).await?;
    if !undelivered.is_empty() {
        tracing::info!(results = undelivered.len(), "finished results are left to deliver");
    }

    let (timing, sends_log) = (config.timing, config.send_log);
    let contact = Arc::new(Contact::new());
    let identity = Identity::load_or_enrol(
        &folder,
        &config.name,
        config.token.as_deref(),
        &api,
        &contact,
        &mut Backoff::new(timing.longest_pause),
    )
    .await?;
    let unused_name = enrolled_name(&folder, &config.name)
        .map(|enrolled| UnusedName { given: config.name.clone(), enrolled });
    let known = Arc::clone(api.known_stores());
    let stores = blocking(folder.stores(), move |path| Stores::open(path, known)).await?;
    let server = config.server;
    let on = devices.names();
    tracing::info!(host = %identity.host, slots, devices = on, %server, "client started");
    let api = api.with_token(identity.token);
    let usage = Arc::new(DataUsage::open(folder.volume()));
    usage.set(limits::this_month(owner.zone_name().as_ref()), owner.limits().monthly);
    let bandwidth = Arc::new(Bandwidth::new(config.rates, &usage));
    let fetcher = Fetcher::new(
        api.clone(),
        Arc::clone(&cache),
        Arc::clone(&contact),
        Arc::clone(&bandwidth),
        timing.longest_pause,
    );
    let (send, messages) = mpsc::unbounded_channel();
    let measurements = Measurements::open(folder.measured());
    let disk = DiskWatch::default();
    disk.look(folder.root(), &owner);
    let context = Context {
        timing,
        sends_log,
        server: ServerAccess {
            host: identity.host,
            unused_name,
            url: server,
            api,
            contact,
            fetcher,
            bandwidth,
        },
        storage: Storage { folder, cache, outbox, measurements, disk, usage, stores },
        trainers: Trainers {
            devices,
            enforcement,
            last_failure: LastFailure::default(),
            usages: Usages::default(),
        },
        owner,
        messages: send,
        fatal,
        tasks: parking_lot::Mutex::default(),
    };
    Ok(Begun { context: Arc::new(context), undelivered, messages })
}

/// Trainers that are started at once.
const MAX_STARTING_TRAINERS: usize = 4;

/// Starts the trainers of all slots before their first units, to save time. A trainer that can't start fails its unit later;
/// one with different arithmetic ends the daemon.
async fn warm_up<R: UnitRunner>(context: &Context<R>) {
    // A few at a time: each takes a core for a while.
    let turns = &Semaphore::new(MAX_STARTING_TRAINERS);
    let devices = context.trainers.devices.iter();
    let trainers = devices.flat_map(|device| device.trainers.iter().map(move |t| (device, t)));
    let checks: Vec<_> = trainers
        .map(|(device, trainer)| async move {
            let mut trainer = trainer.lock().await;
            let _turn = turns.acquire().await;
            device.check_fastest(&mut trainer).await
        })
        .collect();
    for checked in futures::future::join_all(checks).await {
        if let Err(error) = checked
            && error.is_for_good()
        {
            context.end(ClientError::Unlike(error));
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
