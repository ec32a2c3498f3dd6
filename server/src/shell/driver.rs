//! The core's thread: gives each command a time and a random seed, applies it, and passes its effects on. When the
//! journal or the core has failed, it starts again from what the journal holds.

use super::{
    clock::Clock,
    config::ShellConfig,
    counts::ShellCounts,
    error::ShellError,
    faults::Faults,
    group_commit::GroupCommit,
    handle::unavailable,
    live_uploads::LiveUploads,
    message::{Input, Item, Next, ReplySender, refuse},
    planner_thread::{PlannerThread, Task},
    recovery::{Recovered, recover},
    side_effects::SideEffect,
    snapshot,
    writer::Writer,
};
use crate::journal::{Journal, JournalError, OpenJournal};
use sojourn_core::{Command, Core, CoreFault, Effect, Envelope, JournalPosition, ReplyTo};
use sojourn_protocol::time::UnixMillis;
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

/// The clock is looked at this often, at least.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// And this often at most: a deadline that can't be met doesn't keep the thread busy.
const MIN_WAIT: Duration = Duration::from_millis(5);
/// Copying the state for a snapshot stops the core. From this time on, copies are spaced out.
const SLOW_COPY: Duration = Duration::from_millis(100);
/// The pause after a slow copy, in times of the copy: copying takes at most 1 % of the time.
const SLOW_COPY_SPACING: u32 = 100;

pub(super) struct Driver {
    pub(super) journals: Arc<dyn OpenJournal>,
    config: ShellConfig,
    clock: Arc<dyn Clock>,
    inputs: Sender<Input>,
    pub(super) inbox: Receiver<Input>,
    side_effects: UnboundedSender<SideEffect>,
    planner: PlannerThread,
    pub(super) core: Core,
    previous: UnixMillis,
    pub(super) waiting: BTreeMap<ReplyTo, ReplySender>,
    writer: Option<RunningWriter>,
    writers: u64,
    snapshot_at: u64,
    /// No snapshot is made before this time.
    snapshot_after: Instant,
    /// The thread of the last snapshot.
    snapshot: Option<JoinHandle<()>>,
    pub(super) faults: Faults,
    pub(super) counts: ShellCounts,
    /// The last event that was passed to the writer.
    passed: JournalPosition,
}

struct RunningWriter {
    number: u64,
    /// All events up to this position are durable; the writer sets it.
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
        side_effects: UnboundedSender<SideEffect>,
        counts: ShellCounts,
    ) -> Result<Self, ShellError> {
        let core = Core::new(config.core);
        let planner = PlannerThread::start(inputs.clone())?;
        let mut driver = Self {
            journals,
            config,
            clock,
            inputs,
            inbox,
            side_effects,
            planner,
            core,
            previous: UnixMillis::default(),
            waiting: BTreeMap::new(),
            writer: None,
            writers: 0,
            snapshot_at: 0,
            snapshot_after: Instant::now(),
            snapshot: None,
            faults: Faults::default(),
            counts,
            passed: JournalPosition(0),
        };
        match driver.start_over() {
            // It waits for the active server to end once it runs.
            Ok(()) | Err(ShellError::Journal(JournalError::Standby { .. })) => Ok(driver),
            Err(error) => {
                driver.journals.leave();
                Err(error)
            }
        }
    }

    /// Opens the journal, recovers the state from it and starts the core.
    pub(super) fn start_over(&mut self) -> Result<(), ShellError> {
        let mut journal = self.journals.open()?;
        let Recovered { core, snapshot, last, accepted } =
            recover(&mut *journal, self.config.core, self.config.accept)?;
        self.clock.at_least(last);
        let active_until = self.previous;
        self.previous = active_until.max(last);
        // Counted from the last snapshot, not from this start.
        self.snapshot_at = snapshot.0 + self.config.snapshot_every;
        self.core = core;
        self.core.was_active_until(active_until);
        let (decided, kept) = (self.passed, self.core.position());
        if decided > kept {
            // An append that failed: nobody was told of what it held.
            tracing::warn!(decided = decided.0, kept = kept.0, "the last events were not kept");
        }
        self.passed = kept;
        self.counts.recovered(kept, accepted.iter().map(|violation| violation.id));
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
            side_effects: self.side_effects.clone(),
            driver: self.inputs.clone(),
            number,
            counts: self.counts.clone(),
            verified: snapshot,
            trim_below: JournalPosition(0),
            group_commit: GroupCommit::default(),
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(ShellError::Thread)?;
        self.writer = Some(RunningWriter { number, durable, items, thread });
        Ok(())
    }

    /// Takes inputs until it is told to stop.
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
        // A dropped reply tells the caller that the server stops.
        self.waiting.clear();
        self.end_snapshot();
        if self.writer.is_some() && !self.core.storage().is_full() {
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
        until.map_or(MAX_WAIT, |millis| Duration::from_millis(millis.0).clamp(MIN_WAIT, MAX_WAIT))
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
                let wanted = LiveUploads::of(&self.core);
                self.pass(vec![Item::Uploads { wanted, reply }]);
            }
            Input::Broken { for_good: true, .. } => return Next::Stop,
            Input::Broken { number, .. } => {
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

    /// Applies one command and passes its effects on.
    ///
    /// # Errors
    /// The core's fault. Nothing of the step has been passed on.
    fn step(&mut self, command: Command) -> Result<(), CoreFault> {
        // Nothing may be decided without a seed. A system that has no random numbers is broken.
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
        self.counts.decided(self.core.position());
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
                // A caller that hung up gets none.
                let reply = self.waiting.remove(&to)?;
                let answer = answer.map(|answer| *answer);
                if self.is_durable(after) {
                    // The caller may have gone.
                    drop(reply.send(answer));
                    return None;
                }
                Item::Reply { after, reply, answer }
            }
            Effect::Assimilate => Item::SideEffect(SideEffect::Assimilate),
            Effect::Plan { job, version, problem, seed, iterations } => {
                self.planner.make(Task { job, version, problem, seed, iterations });
                return None;
            }
            Effect::Delete(blob) => Item::SideEffect(SideEffect::Delete(blob)),
            Effect::DropUpload(lease) => Item::SideEffect(SideEffect::DropUpload(lease)),
        })
    }

    /// Is everything up to this position durable? Then a reply needn't wait for the writer.
    fn is_durable(&self, position: JournalPosition) -> bool {
        let durable = self.writer.as_ref().map(|writer| writer.durable.load(Ordering::Acquire));
        durable.is_some_and(|durable| position.0 <= durable)
    }

    /// Starts a snapshot of the state, unless the one before is still being made. The writer has all its events
    /// already, so they are durable before the snapshot is kept.
    fn begin_snapshot(&mut self) {
        let Some(writer) = &self.writer else { return };
        // The next events need the room more.
        if self.core.storage().is_full() {
            return;
        }
        if self.snapshot.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.snapshot_at = self.core.position().0 + self.config.snapshot_every;
        let begun = Instant::now();
        let state = self.core.state().clone();
        let took = begun.elapsed();
        if took >= SLOW_COPY {
            self.snapshot_after = begun + took * SLOW_COPY_SPACING;
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
            // A writer that has ended drops the items, and the replies in them. It has reported that itself,
            // unless it panicked.
            if writer.items.send(items).is_err() {
                let _ = self.inputs.send(Input::Broken { number: writer.number, for_good: false });
            }
        }
    }

    pub(super) fn end_writer(&mut self) {
        // The snapshot's thread holds a sender of the writer's channel.
        self.end_snapshot();
        if let Some(RunningWriter { items, thread, .. }) = self.writer.take() {
            drop(items);
            if thread.join().is_err() {
                tracing::error!("the journal's thread panicked");
            }
        }
    }
}
