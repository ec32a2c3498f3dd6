//! The core's thread: stamps commands with time and chance, applies them, passes effects on; and
//! when the journal has failed, starts again from what the journal really holds.

use super::{
    Clock, Errand, ShellConfig,
    error::ShellError,
    gather::Gathering,
    handle::{core_failed, standing_by, unavailable},
    planner::{Planner, Task},
    recover::{Recovered, recover},
    snapshot,
    wanted::WantedUploads,
    writer::{EventsSender, Item, ReplySender, UploadsSender, Writer},
};
use crate::journal::{Journal, JournalError, OpenJournal};
use sojourn_core::{
    Command, Core, CoreFault, Effect, Envelope, FoldError, JournalPosition, ReplyTo,
};
use sojourn_http::Backoff;
use sojourn_protocol::{error::ApiError, ids::JobId, time::UnixMillis};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedSender;

/// The longest wait without a look at the clock.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The shortest, so that a deadline that can't be met doesn't keep the thread busy.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);
/// Ceilings of the first and the longest pause between attempts to open a journal that has failed.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Copying a state for a snapshot holds everything up. Where it takes long, snapshots are so many times as long apart
/// that it holds up a hundredth of all.
const LONG_COPY: Duration = Duration::from_millis(100);
const COPIES_APART: u32 = 100;
/// A core that went on for so long after a fault has got over it.
const FAULT_IS_OVER: Duration = Duration::from_secs(60);
/// Pause between looks at whether the active server is gone.
const STANDBY_PAUSE: Duration = Duration::from_millis(250);

/// What reaches the driver.
#[derive(Debug)]
pub(super) enum Input {
    Command { command: Box<Command>, reply: Option<(ReplyTo, ReplySender)> },
    Events { job: JobId, after: JournalPosition, limit: usize, reply: EventsSender },
    Uploads { reply: UploadsSender },
    Broken { number: u64 },
    Stop,
}

/// Whether the driver goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Run,
    Stop,
}

pub(super) struct Driver {
    journals: Arc<dyn OpenJournal>,
    config: ShellConfig,
    clock: Arc<dyn Clock>,
    inputs: Sender<Input>,
    inbox: Receiver<Input>,
    errands: UnboundedSender<Errand>,
    planner: Planner,
    core: Core,
    previous: UnixMillis,
    waiting: BTreeMap<ReplyTo, ReplySender>,
    writer: Option<RunningWriter>,
    writers: u64,
    snapshot_at: u64,
    /// Nor before that.
    snapshot_after: Instant,
    /// The last snapshot's thread.
    snapshot: Option<JoinHandle<()>>,
    /// When the core had its last fault, and the pause after it.
    last_fault: Option<(Instant, Duration)>,
    /// The last event that was passed to the writer.
    passed: JournalPosition,
}

struct RunningWriter {
    number: u64,
    /// The position up to which all is durable, as the writer says.
    durable: Arc<AtomicU64>,
    items: Sender<Vec<Item>>,
    thread: JoinHandle<()>,
}

impl Driver {
    pub(super) fn recover(
        journals: Arc<dyn OpenJournal>,
        config: ShellConfig,
        clock: Arc<dyn Clock>,
        inputs: Sender<Input>,
        inbox: Receiver<Input>,
        errands: UnboundedSender<Errand>,
    ) -> Result<Self, ShellError> {
        let core = Core::new(config.core);
        let planner = Planner::start(inputs.clone())?;
        let mut driver = Self {
            journals,
            config,
            clock,
            inputs,
            inbox,
            errands,
            planner,
            core,
            previous: UnixMillis::default(),
            waiting: BTreeMap::new(),
            writer: None,
            writers: 0,
            snapshot_at: 0,
            snapshot_after: Instant::now(),
            snapshot: None,
            last_fault: None,
            passed: JournalPosition(0),
        };
        match driver.start_over() {
            // It waits for its turn once it runs.
            Ok(()) | Err(ShellError::Journal(JournalError::Standby { .. })) => Ok(driver),
            Err(error) => Err(error),
        }
    }

    /// Opens the journal and begins with what is in it.
    fn start_over(&mut self) -> Result<(), ShellError> {
        let mut journal = self.journals.open()?;
        let Recovered { core, snapshot, last } = recover(&mut *journal, self.config.core)?;
        self.clock.at_least(last);
        self.previous = self.previous.max(last);
        // From the last one on, however often it is started in between.
        self.snapshot_at = snapshot.0 + self.config.snapshot_every;
        self.core = core;
        let (decided, kept) = (self.passed, self.core.position());
        if decided > kept {
            // An append that failed: nobody was told of what it held.
            tracing::warn!(decided = decided.0, kept = kept.0, "the last events were not kept");
        }
        self.passed = kept;
        self.start_writer(journal, snapshot)?;
        let started = self.step(Command::Started);
        if started.is_err() {
            self.end_writer();
        }
        Ok(started?)
    }

    fn start_writer(
        &mut self,
        journal: Box<dyn Journal>,
        snapshot: JournalPosition,
    ) -> Result<(), ShellError> {
        self.writers += 1;
        let number = self.writers;
        let (items, receiver) = std::sync::mpsc::channel();
        let durable = Arc::new(AtomicU64::new(journal.tail().0));
        let writer = Writer {
            durable: Arc::clone(&durable),
            journal,
            config: self.config,
            errands: self.errands.clone(),
            driver: self.inputs.clone(),
            number,
            verified: snapshot,
            trim_below: JournalPosition(0),
            gathering: Gathering::default(),
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(ShellError::Thread)?;
        self.writer = Some(RunningWriter { number, durable, items, thread });
        Ok(())
    }

    /// Until it is told to stop.
    pub(super) fn run(mut self) {
        let mut next = if self.writer.is_some() { Next::Run } else { self.recover_journal() };
        while next == Next::Run {
            let input = self.inbox.recv_timeout(self.wait());
            next = match input {
                Ok(Input::Stop) | Err(RecvTimeoutError::Disconnected) => Next::Stop,
                Ok(input) if !self.journals.is_ours() => {
                    refuse(input, &unavailable());
                    self.recover_journal()
                }
                Err(RecvTimeoutError::Timeout) if !self.journals.is_ours() => {
                    self.recover_journal()
                }
                Ok(input) => self.take(input),
                Err(RecvTimeoutError::Timeout) => self.step_or_reload(Command::Tick),
            };
        }
        // Those who wait find their reply dropped.
        self.waiting.clear();
        self.end_snapshot();
        if self.writer.is_some() {
            match snapshot::make(self.core.state(), self.config.core) {
                Ok(snapshot) => self.pass(vec![Item::Snapshot(snapshot)]),
                Err(error) => snapshot::not_kept(&error),
            }
        }
        self.end_writer();
        self.journals.leave();
    }

    fn wait(&self) -> Duration {
        let until = self.core.next_deadline().map(|deadline| deadline - self.clock.now());
        until.map_or(LONGEST_WAIT, |millis| {
            Duration::from_millis(millis.0).clamp(SHORTEST_WAIT, LONGEST_WAIT)
        })
    }

    fn take(&mut self, input: Input) -> Next {
        match input {
            Input::Command { command, reply } => {
                if let Some((to, reply)) = reply {
                    self.waiting.insert(to, reply);
                }
                if let Command::Hangup { to } = &*command {
                    self.waiting.remove(to);
                }
                return self.step_or_reload(*command);
            }
            Input::Events { job, after, limit, reply } => {
                self.pass(vec![Item::Events { job, after, limit, reply }]);
            }
            Input::Uploads { reply } => {
                let wanted = WantedUploads::of(&self.core);
                self.pass(vec![Item::Uploads { wanted, reply }]);
            }
            Input::Broken { number } => {
                if self.writer.as_ref().is_some_and(|writer| writer.number == number) {
                    return self.recover_journal();
                }
            }
            Input::Stop => return Next::Stop,
        }
        Next::Run
    }

    /// Applies one command; where the core has a fault, begins again with what is in the journal.
    fn step_or_reload(&mut self, command: Command) -> Next {
        match self.step(command) {
            Ok(()) => Next::Run,
            Err(fault) => self.reload(&fault),
        }
    }

    /// The core has a fault: nothing of that step is journalled, everyone who waits hears of an internal error, and
    /// the state is read anew from the journal. Faults that come again soon are followed by longer and longer pauses.
    fn reload(&mut self, fault: &CoreFault) -> Next {
        let error = fault as &dyn std::error::Error;
        match fault {
            CoreFault::Fold(FoldError { event, position, .. }) => {
                tracing::error!(error, event, position = position.0, "the core failed; reloading");
            }
            _ => tracing::error!(error, "the core failed; reloading"),
        }
        for reply in std::mem::take(&mut self.waiting).into_values() {
            // Whoever asked may have gone.
            drop(reply.send(Err(core_failed())));
        }
        // What was decided before is appended first.
        self.end_writer();
        let pause = match self.last_fault {
            Some((at, pause)) if at.elapsed() < FAULT_IS_OVER => (pause * 2).min(MAX_PAUSE),
            _ => FIRST_PAUSE,
        };
        self.last_fault = Some((Instant::now(), pause));
        match self.refuse_for(pause, &unavailable()) {
            Next::Stop => Next::Stop,
            Next::Run => self.recover_journal(),
        }
    }

    /// Applies one command and passes its effects on.
    ///
    /// # Errors
    /// The core's fault. Nothing of the step has been passed on.
    fn step(&mut self, command: Command) -> Result<(), CoreFault> {
        // Without chance from the system nothing may be decided; it has none only when it is broken.
        let seed = match getrandom::u64() {
            Ok(seed) => seed,
            Err(error) => {
                tracing::error!(%error, "the system gives no random numbers");
                self.waiting.clear();
                return Ok(());
            }
        };
        self.previous = self.previous.max(self.clock.now());
        let effects = self.core.apply(Envelope { at: self.previous, seed, command })?;
        let mut items = Vec::with_capacity(effects.len());
        for effect in effects {
            items.extend(self.item(effect));
        }
        self.pass(items);
        self.passed = self.core.position();
        if self.core.position().0 >= self.snapshot_at && Instant::now() >= self.snapshot_after {
            self.begin_snapshot();
        }
        Ok(())
    }

    fn item(&mut self, effect: Effect) -> Option<Item> {
        Some(match effect {
            Effect::Persist(record) => Item::Persist(record),
            Effect::Reply { to, after, answer } => {
                // Whoever hung up gets none.
                let reply = self.waiting.remove(&to)?;
                let answer = answer.map(|answer| *answer);
                if self.is_durable(after) {
                    // Whoever asked may have gone.
                    drop(reply.send(answer));
                    return None;
                }
                Item::Reply { after, reply, answer }
            }
            Effect::Assimilate => Item::Errand(Errand::Assimilate),
            Effect::Plan { job, version, problem, seed, iterations } => {
                self.planner.make(Task { job, version, problem, seed, iterations });
                return None;
            }
            Effect::Delete(blob) => Item::Errand(Errand::Delete(blob)),
            Effect::DropUpload(lease) => Item::Errand(Errand::DropUpload(lease)),
        })
    }

    /// Does it last already? Then nothing waits for the writer.
    fn is_durable(&self, position: JournalPosition) -> bool {
        let durable = self.writer.as_ref().map(|writer| writer.durable.load(Ordering::Acquire));
        durable.is_some_and(|durable| position.0 <= durable)
    }

    /// Has a snapshot made of the state as it is, unless the one before is still being made. What is in
    /// it has been passed to the writer, so it is durable before the snapshot is kept.
    fn begin_snapshot(&mut self) {
        let Some(writer) = &self.writer else { return };
        if self.snapshot.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.snapshot_at = self.core.position().0 + self.config.snapshot_every;
        let begun = Instant::now();
        let state = self.core.state().clone();
        let took = begun.elapsed();
        if took >= LONG_COPY {
            self.snapshot_after = begun + took * COPIES_APART;
        }
        match snapshot::send(state, self.config.core, writer.items.clone()) {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => snapshot::not_kept(&ShellError::Thread(error)),
        }
    }

    fn end_snapshot(&mut self) {
        if let Some(thread) = self.snapshot.take()
            && thread.join().is_err()
        {
            tracing::error!("the snapshot's thread panicked");
        }
    }

    fn pass(&self, items: Vec<Item>) {
        if let Some(writer) = self.writer.as_ref().filter(|_| !items.is_empty()) {
            // A writer that has ended drops the items, and with them the replies. It has said so
            // itself, unless it panicked.
            if writer.items.send(items).is_err() {
                let _ = self.inputs.send(Input::Broken { number: writer.number });
            }
        }
    }

    fn end_writer(&mut self) {
        // It holds an end of the writer's channel.
        self.end_snapshot();
        if let Some(RunningWriter { items, thread, .. }) = self.writer.take() {
            drop(items);
            if thread.join().is_err() {
                tracing::error!("the journal's thread panicked");
            }
        }
    }

    /// The journal has failed: what it holds is unknown, so everything since is given up, everyone
    /// who waits is refused, and the state is read anew until that works.
    fn recover_journal(&mut self) -> Next {
        self.waiting.clear();
        self.end_writer();
        let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
        let mut stands_by_for = None;
        loop {
            let (refusal, length) = match self.start_over() {
                Ok(()) => {
                    tracing::info!(position = self.core.position().0, "going on from the journal");
                    return Next::Run;
                }
                Err(ShellError::Journal(JournalError::Standby { active })) => {
                    let refusal = standing_by(&active);
                    if stands_by_for.as_ref() != Some(&active) {
                        tracing::info!(active, "standing by");
                        stands_by_for = Some(active);
                    }
                    (refusal, STANDBY_PAUSE)
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "the journal can't be read; trying again");
                    (unavailable(), backoff.next(None))
                }
            };
            if self.refuse_for(length, &refusal) == Next::Stop {
                return Next::Stop;
            }
        }
    }

    /// Refuses all that comes, for a while.
    fn refuse_for(&self, pause: Duration, refusal: &ApiError) -> Next {
        let end = Instant::now() + pause;
        loop {
            match self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Input::Stop) | Err(RecvTimeoutError::Disconnected) => return Next::Stop,
                Ok(input) => refuse(input, refusal),
                Err(RecvTimeoutError::Timeout) => return Next::Run,
            }
        }
    }
}

fn refuse(input: Input, refusal: &ApiError) {
    match input {
        Input::Command { reply, .. } => {
            drop(reply.map(|(_, reply)| reply.send(Err(refusal.clone()))));
        }
        Input::Events { reply, .. } => drop(reply.send(Err(refusal.clone()))),
        // Whoever asked finds its reply dropped.
        Input::Uploads { .. } | Input::Broken { .. } | Input::Stop => {}
    }
}
