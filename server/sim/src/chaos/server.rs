//! The server of a world: the core, a journal that syncs now and then, and replies that wait for it.

use sojourn_core::{
    Answer, Command, Core, CoreConfig, Effect, Envelope, JournalPosition, Record, ReplyTo,
};
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, error_chain},
    time::UnixMillis,
};
use sojourn_workgen::plan::{Iterations, Planner as _, Rollout};

/// Forward simulations of one plan, at the most: worlds are many.
const PLANNING: u64 = 4;

/// A reply that has left.
pub(crate) type Reply = (ReplyTo, Result<Box<Answer>, ApiError>);

/// A server that can die.
#[derive(Debug)]
pub(crate) struct Server {
    config: CoreConfig,
    core: Option<Core>,
    durable: Vec<Record>,
    unsynced: Vec<Record>,
    waiting: Vec<(JournalPosition, Reply)>,
    deletes: Vec<Digest>,
    /// Plans that are made.
    plans: Vec<Command>,
    /// Everything that was put in since the last start, for D1.
    inputs: Vec<Envelope>,
    outputs: Vec<Vec<Effect>>,
    started_with: usize,
}

impl Server {
    pub(crate) fn new(config: CoreConfig) -> Self {
        Self {
            config,
            core: Some(Core::new(config)),
            durable: Vec::new(),
            unsynced: Vec::new(),
            waiting: Vec::new(),
            deletes: Vec::new(),
            plans: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            started_with: 0,
        }
    }

    pub(crate) fn core(&self) -> Option<&Core> {
        self.core.as_ref()
    }

    /// Records that a power cut would leave.
    pub(crate) fn durable(&self) -> &[Record] {
        &self.durable
    }

    /// Has the core take a command in, and keeps what it wants done.
    ///
    /// # Errors
    /// The core's fault: no world has one.
    pub(crate) fn apply(
        &mut self,
        at: UnixMillis,
        seed: u64,
        command: Command,
    ) -> Result<(), String> {
        let Some(core) = &mut self.core else { return Ok(()) };
        let envelope = Envelope { at, seed, command };
        self.inputs.push(envelope.clone());
        let effects = core.apply(envelope).map_err(|fault| error_chain(&fault))?;
        self.outputs.push(effects.clone());
        for effect in effects {
            match effect {
                Effect::Persist(record) => self.unsynced.push(record),
                Effect::Reply { to, after, answer } => self.waiting.push((after, (to, answer))),
                Effect::Delete(blob) => self.deletes.push(blob),
                Effect::Plan { job, version, problem, seed, iterations } => {
                    let mut budget = Iterations::new(iterations.min(PLANNING));
                    let schedule = Rollout.plan(&problem, seed, &mut budget).map(Box::new);
                    self.plans.push(Command::PlanReady { job, version, schedule });
                }
                // Assimilators of a world look by themselves; uploads are not kept.
                Effect::Assimilate | Effect::DropUpload(_) => {}
            }
        }
        Ok(())
    }

    /// Plans that were made meanwhile.
    pub(crate) fn plans(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.plans)
    }

    /// Syncs the journal; says which replies may leave and which blobs are to be deleted.
    pub(crate) fn sync(&mut self) -> (Vec<Reply>, Vec<Digest>) {
        self.durable.append(&mut self.unsynced);
        let last = self.durable.last().map_or(JournalPosition(0), |record| record.position);
        let (ready, waiting) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(after, _)| *after <= last);
        self.waiting = waiting;
        let ready: Vec<(JournalPosition, Reply)> = ready;
        (ready.into_iter().map(|(_, reply)| reply).collect(), std::mem::take(&mut self.deletes))
    }

    /// Dies with all that wasn't synced.
    pub(crate) fn crash(&mut self) {
        self.core = None;
        self.unsynced.clear();
        self.waiting.clear();
        self.deletes.clear();
        self.plans.clear();
    }

    /// Starts again from a snapshot of some earlier moment and the journal.
    ///
    /// # Errors
    /// What recovery got wrong.
    pub(crate) fn start(&mut self, at: UnixMillis, seed: u64) -> Result<(), String> {
        let mut whole = Core::new(self.config);
        let middle = self.durable.len() / 2;
        let mut snapshot = None;
        for (n, record) in self.durable.iter().enumerate() {
            if n == middle {
                snapshot = Some(whole.snapshot().map_err(|error| error_chain(&error))?);
            }
            whole.fold(record).map_err(|error| error_chain(&error))?;
        }
        let core = match snapshot {
            None => whole,
            Some(bytes) => {
                let mut core =
                    Core::from_snapshot(&bytes, self.config).map_err(|error| error.to_string())?;
                for record in self.durable.iter().skip(middle) {
                    core.fold(record).map_err(|error| error_chain(&error))?;
                }
                if core.state() != whole.state() {
                    return Err("snapshot and journal disagree with the journal alone".into());
                }
                core
            }
        };
        self.core = Some(core);
        self.started_with = self.durable.len();
        self.inputs.clear();
        self.outputs.clear();
        self.apply(at, seed, Command::Started)
    }

    /// D1: the same envelopes give the same effects and the same state.
    ///
    /// # Errors
    /// What differed.
    pub(crate) fn check_determinism(&self) -> Result<(), String> {
        let Some(core) = &self.core else { return Ok(()) };
        let mut again = Core::new(self.config);
        for record in self.durable.iter().take(self.started_with) {
            again.fold(record).map_err(|error| error_chain(&error))?;
        }
        for (input, output) in self.inputs.iter().zip(&self.outputs) {
            if again.apply(input.clone()).as_ref() != Ok(output) {
                return Err(format!("D1: other effects for {input:?}"));
            }
        }
        (again.state() == core.state()).then_some(()).ok_or_else(|| "D1: another state".into())
    }
}
