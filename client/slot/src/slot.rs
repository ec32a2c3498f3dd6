//! The slot: one unit at a time in, its outcome out.

use crate::{
    child::{Broken, Child, UnitMessages},
    config::{Mode, SlotConfig},
    error::SlotError,
};
use sojourn_protocol::{
    digest::Digest,
    report::{Failure, FailureKind, Outcome},
    trainer::{
        Hello, InstructionSet, Pace, Predict, Predicted, RunUnit, ShardArrived, TrainerLine,
        TrainerRequest, TrainerUpdate,
    },
};
use std::{collections::BTreeMap, future::pending, pin::pin};
use tokio::sync::{
    mpsc::{UnboundedReceiver, unbounded_channel},
    watch,
};

/// The full pace, for units that nobody throttles.
#[must_use]
pub fn full_pace() -> watch::Receiver<Pace> {
    watch::channel(Pace::FULL).1
}

/// The later files of a unit that begins with all of them.
#[must_use]
pub fn no_more_files() -> UnboundedReceiver<ShardArrived> {
    unbounded_channel().1
}

/// A place where one unit runs.
///
/// A slot's futures may be dropped at any point: a trainer at work is then killed, and the next call starts another.
#[derive(Debug)]
pub struct Slot {
    config: SlotConfig,
    /// The idle trainer; while it works it belongs to the future that waits for it.
    child: Option<Child>,
    /// Numeric classes of the trainers so far, by what they pinned: instruction set and threads.
    classes: BTreeMap<(InstructionSet, u32), Digest>,
}

impl Slot {
    /// A slot; no process is started yet.
    #[must_use]
    pub fn new(config: SlotConfig) -> Self {
        Self { config, child: None, classes: BTreeMap::new() }
    }

    /// From now on units that pin no threads get so many, at least 1: the next trainer for one does, and the next
    /// such unit has one started.
    pub fn set_threads(&mut self, threads: u32) {
        self.config.threads = threads.max(1);
    }

    /// From now on units that pin their arithmetic are computed in this instruction set: the next trainer for one is
    /// pinned to it, and the next such unit has one started.
    pub fn set_instructions(&mut self, instructions: InstructionSet) {
        self.config.instructions = instructions;
    }

    /// The trainer's hello, in the mode of units that pin `pinned` threads (`None`: free).
    ///
    /// # Errors
    /// [`SlotError`] where there is no trainer.
    pub async fn hello(&mut self, pinned: Option<u32>) -> Result<Hello, SlotError> {
        let child = self.take(self.mode(pinned)).await?;
        let hello = child.hello.clone();
        self.child = Some(child);
        Ok(hello)
    }

    /// Does a unit, at the pace that is wanted at the time. A trainer that refuses it or dies of it is an
    /// outcome. When `stop` ends first, a hop ends after the batch that it is at.
    ///
    /// # Errors
    /// [`SlotError`] where there is no trainer to try it with.
    pub async fn run(
        &mut self,
        unit: RunUnit,
        on_update: impl FnMut(TrainerUpdate),
        stop: impl Future<Output = ()>,
        pace: watch::Receiver<Pace>,
    ) -> Result<Outcome, SlotError> {
        self.run_with(unit, on_update, stop, pace, no_more_files()).await
    }

    /// The same, of a unit that begins before all its files are there: `files` brings those of
    /// [`RunUnit::coming`].
    ///
    /// # Errors
    /// As [`Slot::run`].
    pub async fn run_with(
        &mut self,
        unit: RunUnit,
        on_update: impl FnMut(TrainerUpdate),
        stop: impl Future<Output = ()>,
        pace: watch::Receiver<Pace>,
        files: UnboundedReceiver<ShardArrived>,
    ) -> Result<Outcome, SlotError> {
        let mode = self.mode(unit.unit.context().pinned_threads);
        let request = TrainerRequest::Run(Box::new(unit));
        let messages = UnitMessages { stop: Some(pin!(stop)), pace, files };
        Ok(match self.ask(mode, &request, on_update, messages).await? {
            TrainerLine::Trained(trained) => Outcome::Trained(trained),
            TrainerLine::Evaluated(evaluated) => Outcome::Evaluated(evaluated),
            TrainerLine::Failed(failure) => Outcome::Failed(failure),
            other => Outcome::Failed(self.strange(&other)),
        })
    }

    /// Puts rows through a model. A trainer that refuses or dies of it is an inner error.
    ///
    /// # Errors
    /// [`SlotError`] where there is no trainer to try it with.
    pub async fn predict(
        &mut self,
        request: Predict,
    ) -> Result<Result<Predicted, Failure>, SlotError> {
        let mode = self.mode(request.context.pinned_threads);
        let request = TrainerRequest::Predict(Box::new(request));
        let stop = Some(pin!(pending()));
        let messages = UnitMessages { stop, pace: full_pace(), files: no_more_files() };
        Ok(match self.ask(mode, &request, |_| {}, messages).await? {
            TrainerLine::Predicted(predicted) => Ok(predicted),
            TrainerLine::Failed(failure) => Err(failure),
            other => Err(self.strange(&other)),
        })
    }

    /// Sends a request and waits for the line that ends it; one that the trainer dies of has failed.
    async fn ask(
        &mut self,
        mode: Mode,
        request: &TrainerRequest,
        mut on_update: impl FnMut(TrainerUpdate),
        mut messages: UnitMessages<'_, impl Future<Output = ()>>,
    ) -> Result<TrainerLine, SlotError> {
        let mut child = self.take(mode).await?;
        let now = *messages.pace.borrow_and_update();
        if child.is_dead() || child.begin(request, now).await.is_err() {
            // It died while it was idle: nothing that this request did.
            child = self.start(mode).await?;
            if child.begin(request, now).await.is_err() {
                return Ok(TrainerLine::Failed(child.end(Broken::Ended).await));
            }
        }
        let answer = loop {
            match child.line_or(&mut messages).await {
                Ok(TrainerLine::Update(update)) => on_update(update),
                Ok(TrainerLine::Hello(_)) => {
                    let invalid = Broken::InvalidLine("hello again".into());
                    return Ok(TrainerLine::Failed(child.end(invalid).await));
                }
                Ok(TrainerLine::Failed(said)) => break TrainerLine::Failed(child.failure(said)),
                Ok(answer) => break answer,
                Err(broken) => return Ok(TrainerLine::Failed(child.end(broken).await)),
            }
        };
        self.child = Some(child);
        Ok(answer)
    }

    /// The failure of a trainer that answers another question; it isn't asked again.
    fn strange(&mut self, answer: &TrainerLine) -> Failure {
        self.child = None;
        let message = format!("the trainer answered another question: {answer:?}");
        Failure { kind: FailureKind::Died, message }
    }

    fn mode(&self, pinned: Option<u32>) -> Mode {
        match pinned {
            Some(threads) => Mode::Pinned { threads, instructions: self.config.instructions },
            None => Mode::Free { threads: self.config.threads },
        }
    }

    /// The idle trainer of this mode, or a new one.
    async fn take(&mut self, mode: Mode) -> Result<Child, SlotError> {
        match self.child.take() {
            Some(child) if child.mode == mode => Ok(child),
            // Dropped first, so that two of them are never in memory.
            Some(other) => {
                drop(other);
                self.start(mode).await
            }
            None => self.start(mode).await,
        }
    }

    /// A new trainer, whose arithmetic is that of those before it: what they made is known by their class,
    /// and the program may have been built anew meanwhile.
    async fn start(&mut self, mode: Mode) -> Result<Child, SlotError> {
        let Mode::Pinned { threads, instructions } = mode else {
            // Units that pin no threads promise no reproducible bytes.
            return Child::start(&self.config, mode).await;
        };
        let known = self.classes.range((instructions, 0)..=(instructions, u32::MAX)).next();
        if let Some((&(_, known), _)) = known
            && !self.classes.contains_key(&(instructions, threads))
        {
            // The first with so many threads can't be compared: one with others vouches for the program.
            drop(self.start_pinned(known, instructions).await?);
        }
        self.start_pinned(threads, instructions).await
    }

    async fn start_pinned(
        &mut self,
        threads: u32,
        instructions: InstructionSet,
    ) -> Result<Child, SlotError> {
        let child = Child::start(&self.config, Mode::Pinned { threads, instructions }).await?;
        let found = child.hello.numeric_class;
        let was = *self.classes.entry((instructions, threads)).or_insert(found);
        if found != was {
            return Err(SlotError::Class { trainer: self.config.trainer.clone(), was, found });
        }
        Ok(child)
    }
}
