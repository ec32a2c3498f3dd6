//! `sojourn-autoscaler run`: rounds until a signal.

use super::{account, failure, read, show};
use crate::{
    boot,
    config::Config,
    driver::{Driver, Options, Outside, Round, UNKNOWN_LEADER, World},
    metrics::Metrics,
    server::{HttpServer, Server},
};
use sojourn_clouds::Providers;
use sojourn_fleet::cloud::Cloud;
use sojourn_http::Backoff;
use sojourn_programs::{exit::Failure, log::FormArgs, metrics::listen, output::line, signals};
use sojourn_protocol::{error::error_chain, quantity::SaturatingFrom as _, time::UnixMillis};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tracing::{info, warn};

/// The pause after a round that failed, at first, and while a machine that was to end goes on.
const SOON: Duration = Duration::from_secs(5);
/// The longest pause on top of the interval after rounds that failed.
const MAX_PAUSE: Duration = Duration::from_secs(120);
/// How long handing the lease back may take at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The fleet's file.
    file: PathBuf,
    /// Change nothing: print what would be done, and why. Another process may lead the fleet meanwhile.
    #[arg(long)]
    dry_run: bool,
    /// End after the first plan that may buy: the second, since a fleet is looked at twice before.
    #[arg(long)]
    once: bool,
    /// Print each plan as a line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) log: FormArgs,
}

/// The time of this process, and its chance.
pub(super) const OUTSIDE: Outside = Outside { now, seed };

/// The wall clock at the start, and what has passed since: it never goes back.
fn now() -> UnixMillis {
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    let (start, wall) = START.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), u64::saturating_from(wall.as_millis()))
    });
    UnixMillis(wall.saturating_add(u64::saturating_from(start.elapsed().as_millis())))
}

/// A number from the system's randomness; where there is none, from the time.
fn seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| now().0 ^ u64::from(std::process::id()).rotate_left(32))
}

pub(super) async fn run(args: &Args, providers: Providers<'_>) -> Result<(), Failure> {
    let config = read(&args.file, providers)?;
    let server = HttpServer::new(&config).map_err(|error| Failure::call(error_chain(&error)))?;
    let stop = signals::requested();
    tokio::pin!(stop);
    let connected = tokio::select! {
        () = &mut stop => return Ok(()),
        connected = connect(&config, &server, args.once, providers) => connected?,
    };
    let metrics = Arc::new(Metrics::default());
    // Beside a process that runs on, the address is taken.
    let address = config.metrics.filter(|_| !args.dry_run && !args.once);
    let serving = match address {
        None => None,
        Some(address) => {
            let metrics = metrics.clone();
            let listening = listen(address, move || metrics.text(now())).await;
            let (bound, serve) = listening.map_err(|error| {
                Failure::call(format!(
                    "`metrics = \"{address}\"`: {error}. Give another address, or none"
                ))
            })?;
            info!(address = %bound, "metrics are served");
            Some(tokio::spawn(serve))
        }
    };
    let options = Options {
        fleet: config.fleet.clone(),
        holder: format!("{}-{:016x}", std::process::id(), seed()),
        settings: config.settings.clone(),
        prices: config.prices,
        dry_run: args.dry_run,
    };
    info!(fleet = config.fleet, server = config.server, dry_run = args.dry_run, "started");
    let mut driver = Driver::new(server, connected, options, OUTSIDE, metrics);
    let interval = Duration::from_millis(config.settings.times.interval.0);
    let result = rounds(&mut driver, args, interval, &mut stop).await;
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, driver.shut_down()).await.is_err() {
        warn!("the lease couldn't be given back in time; it ends by itself");
    }
    if let Some(serving) = serving {
        serving.abort();
    }
    info!("ended");
    result
}

/// The cloud of the file. The server has to say its programs first: it is waited for, unless `once`.
pub(super) async fn connect(
    config: &Config,
    server: &HttpServer,
    once: bool,
    providers: Providers<'_>,
) -> Result<Arc<dyn Cloud>, Failure> {
    let interval = Duration::from_millis(config.settings.times.interval.0);
    let mut backoff = Backoff::from(Duration::from_secs(1), interval);
    let programs = loop {
        match server.programs().await {
            Ok(programs) => break programs,
            Err(error) if once || !error.is_away() => return Err(error.into()),
            Err(error) => {
                warn!(error = %error_chain(&error), "the server isn't there yet");
                tokio::time::sleep(backoff.next(error.retry_after())).await;
            }
        }
    };
    let values = boot::values(&config.machine, config.settings.times.enrol, &programs);
    let values = values.map_err(|error| Failure::call(error_chain(&error)))?;
    account(config, providers)?.connect(&values).await.map_err(failure)
}

/// Rounds until a signal, or `once`.
async fn rounds<S: Server, C: Cloud, W: World>(
    driver: &mut Driver<S, C, W>,
    args: &Args,
    interval: Duration,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Result<(), Failure> {
    let mut backoff = Backoff::from(SOON.min(interval), MAX_PAUSE);
    let mut plans = 0_u32;
    loop {
        // A round isn't broken off: an order may be on its way. Every call in it ends by itself.
        let pause = match driver.round().await {
            Round::Planned(plan) => {
                backoff.reset();
                plans += 1;
                if args.json {
                    line(&show::json(&plan, now(), args.dry_run).to_string())?;
                } else if args.dry_run {
                    show::text(&plan).iter().try_for_each(|text| line(text))?;
                }
                if args.once && plans >= 2 {
                    return Ok(());
                }
                if driver.is_urgent() { SOON.min(interval) } else { interval }
            }
            Round::Standby { leader } => {
                backoff.reset();
                if args.once {
                    return Err(Failure::work(match leader {
                        Some(leader) => format!("`{leader}` leads this fleet"),
                        None => UNKNOWN_LEADER.to_owned(),
                    }));
                }
                interval.min(Duration::from_secs(10))
            }
            Round::Failed if args.once => {
                return Err(Failure::work("no plan could be made; the log says why"));
            }
            Round::Failed => backoff.next(None),
        };
        tokio::select! {
            () = &mut *stop => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
    }
}
