//! Owns the agent: passes events to it, and carries out its actions.
//!
//! ```text
//!  executors, limits, control socket ──messages──> driver ──events──> Agent
//!        ^                                           │                  │
//!        └───────────────── tasks ───────────────────┴────<──actions────┘
//! ```

mod carry_out;
mod cpu_shares;
mod log;
mod messages;
mod status;
mod traces;
mod view;

use crate::{
    config::Timing,
    context::Context,
    executors::{deliver::UploadAttempt, run::Stop},
    message::Message,
    storage::{cache::Pin, outbox::Finished},
    trainers::{cpu_share::KeptCpuShare, runner::UnitRunner, watchdog::Watchdog},
};
use sojourn_client_core::{
    Agent, AgentConfig, DeviceSlots, Event, Micros, OwnerEvent, StoredResult, UnitCpuShare,
};
use sojourn_protocol::{digest::Digest, ids::LeaseId, inventory::Inventory, trainer::ShardArrived};
use status::Units;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    task::AbortHandle,
    time::Instant,
};
use traces::UnitTraces;
use view::Transfers;

/// The agent, and what its actions have started.
pub(crate) struct Driver<R> {
    context: Arc<Context<R>>,
    agent: Agent,
    messages: mpsc::UnboundedReceiver<Message>,
    begun: Instant,
    view: Transfers,
    fetches: BTreeMap<Digest, Fetching>,
    /// Blobs that must stay in the cache.
    pins: BTreeMap<Digest, Pin>,
    running: BTreeMap<LeaseId, RunningUnit>,
    results: BTreeMap<LeaseId, Arc<Mutex<UploadAttempt>>>,
    /// Held leases whose units failed, as this host reports.
    failed: BTreeSet<LeaseId>,
    deliveries: BTreeMap<LeaseId, AbortHandle>,
    units: Units,
    traces: UnitTraces,
    /// The inventory of the last answered request.
    sent_inventory: Option<Inventory>,
    serial: u64,
    /// The time limit of calls while the daemon ends.
    call_limit: Option<Duration>,
    given_back: usize,
    out_of_use: usize,
    budget_open: bool,
    /// The reason why this host gets no work, as last given by the server.
    waiting: Option<String>,
    /// The CPU shares of units under a policy.
    cpu_shares: BTreeMap<LeaseId, UnitCpuShare>,
    cpu_shares_are_new: bool,
    /// The units among which the processor was divided last, and whether any was under a policy then.
    shared_by: Vec<LeaseId>,
    has_cpu_shares: bool,
}

#[derive(Debug)]
struct Fetching {
    serial: u64,
    task: AbortHandle,
}

#[derive(Debug)]
struct RunningUnit {
    task: AbortHandle,
    stop: watch::Sender<Stop>,
    here: mpsc::UnboundedSender<ShardArrived>,
    watchdog: Arc<Watchdog>,
    /// Ends once the unit's task has ended.
    ended: oneshot::Receiver<()>,
    upload_bytes: u64,
    /// The device that it is on, and the threads of its trainer.
    device: String,
    threads: u32,
    cpu_share: watch::Sender<KeptCpuShare>,
}

/// The state in which the driver starts.
pub(crate) struct Start {
    /// Results of an earlier run.
    pub(crate) undelivered: Vec<Finished>,
    /// The messages to the driver.
    pub(crate) messages: mpsc::UnboundedReceiver<Message>,
    /// Events that come before all others.
    pub(crate) events: Vec<Event>,
}

impl<R: UnitRunner> Driver<R> {
    pub(crate) fn new(context: Arc<Context<R>>, start: Start) -> Self {
        let begun = Instant::now();
        let config = Arc::new(agent_config(&context));
        let restored = start.undelivered.iter().map(|finished| StoredResult {
            lease: finished.report.lease,
            heartbeat_interval: finished.heartbeat_every.into(),
            has_checkpoint: finished.checkpoint.is_some(),
        });
        let agent = Agent::new(config, seed(), restored.collect());
        let of_devices = Arc::clone(&context);
        let memory = move |device: &str| of_devices.memory(device);
        let view = Transfers::new(Arc::clone(&context.storage.cache), Box::new(memory));
        let mut driver = Self {
            context,
            agent,
            messages: start.messages,
            begun,
            view,
            fetches: BTreeMap::new(),
            pins: BTreeMap::new(),
            running: BTreeMap::new(),
            results: BTreeMap::new(),
            failed: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            units: Units::default(),
            traces: UnitTraces::default(),
            sent_inventory: None,
            serial: 0,
            call_limit: None,
            given_back: 0,
            out_of_use: 0,
            budget_open: true,
            waiting: None,
            cpu_shares: BTreeMap::new(),
            cpu_shares_are_new: false,
            shared_by: Vec::new(),
            has_cpu_shares: false,
        };
        for finished in start.undelivered {
            driver.traces.found(finished.report.lease);
            driver.hold_result(finished, None);
        }
        for event in start.events {
            driver.tell(event);
        }
        let actions = driver.agent.start(driver.now(), &driver.view);
        driver.carry_out(actions);
        driver
    }

    /// Runs until the agent has ended.
    pub(crate) async fn run(&mut self) {
        loop {
            let deadline = self.agent.next_deadline();
            let deadline = deadline.map(|at| self.begun + Duration::from_micros(at.0));
            let due = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let has_ended = tokio::select! {
                Some(message) = self.messages.recv() => self.take(message),
                () = due => self.tell(Event::Tick),
            };
            if has_ended {
                let (given_back, kept) = (self.given_back, self.agent.undelivered());
                tracing::info!(given_back, kept, "client stopped");
                return;
            }
        }
    }

    fn now(&self) -> Micros {
        Micros(u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Passes an event to the agent, and carries out its actions. True once the agent has ended.
    fn tell(&mut self, event: Event) -> bool {
        let is_progress = matches!(event, Event::Progress(..) | Event::Usage(..));
        let is_end = matches!(
            event,
            Event::Shutdown
                | Event::DiskGone
                | Event::Preempted(_)
                | Event::Owner(OwnerEvent::Drain)
        );
        if is_end {
            self.call_limit = Some(self.context.timing.farewell);
        }
        let is_answer = matches!(event, Event::Work(..) | Event::Heartbeat(_));
        let was_leaving = is_end || self.agent.is_leaving();
        let actions = self.agent.handle(self.now(), event, &self.view);
        if !was_leaving && self.agent.is_leaving() {
            self.call_limit = Some(self.context.timing.farewell);
            match is_answer {
                true => tracing::warn!("this machine is given back, as the server says; draining"),
                false => {
                    tracing::info!("no unit has run for the time of `--exit-when-idle`; ending")
                }
            }
        }
        if actions.is_empty() && is_progress {
            return false;
        }
        let has_ended = self.carry_out(actions);
        self.keep_cpu_shares();
        self.update();
        has_ended
    }
}

fn agent_config<R: UnitRunner>(context: &Context<R>) -> AgentConfig {
    let Timing { wait, farewell, longest_pause, rest, exit_when_idle, .. } = context.timing;
    let devices = context
        .trainers
        .devices
        .iter()
        .map(|device| DeviceSlots { name: device.name.clone(), slots: device.trainers.count() });
    let micros = |time: Duration| Micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    AgentConfig {
        ask_wait: micros(wait),
        max_retry_pause: micros(longest_pause),
        min_cooldown: micros(rest),
        shutdown_time: micros(farewell),
        exit_when_idle: exit_when_idle.map(micros),
        ..AgentConfig::new(devices.collect())
    }
}

/// A random seed, so that hosts don't retry all at once.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    RandomState::new().build_hasher().finish()
}
