//! Runs units in a slot, one at a time. Tests put a fake in its place.

use sojourn_protocol::{
    inventory::CPU,
    report::Outcome,
    trainer::{Hello, InstructionSet, Pace, RunUnit, ShardArrived, TrainerUpdate},
};
use std::error::Error;
use tokio::sync::{mpsc::UnboundedReceiver, watch};

/// Runs units, one at a time.
///
/// Both futures may be dropped at any point; the runner then stops what it was doing and stays usable.
pub trait UnitRunner: Send + 'static {
    /// The device that it computes on; by default the machine's cores.
    fn device(&self) -> RunnerDevice {
        RunnerDevice { name: CPU.to_owned(), memory: None }
    }

    /// The instruction sets that its trainer can be pinned to, from the slowest to the fastest. None where that is no
    /// choice, as on a GPU.
    fn instructions(&self) -> Vec<InstructionSet> {
        Vec::new()
    }

    /// From now on the trainer of units that pin their arithmetic is pinned to this instruction set.
    fn set_instructions(&mut self, _instructions: InstructionSet) {}

    /// The trainer's handshake. Starts the trainer if need be.
    fn hello(&mut self) -> impl Future<Output = Result<Hello, RunnerError>> + Send;

    /// Does a unit, at the pace that is wanted at the time. A trainer that fails or dies on it is an outcome;
    /// an error means that there was no trainer to try it with. When `stop` ends first, a hop ends early, with
    /// a part. `files` brings those of [`RunUnit::coming`].
    fn run(
        &mut self,
        unit: RunUnit,
        on_update: impl FnMut(TrainerUpdate) + Send,
        stop: impl Future<Output = ()> + Send,
        pace: watch::Receiver<Pace>,
        files: UnboundedReceiver<ShardArrived>,
    ) -> impl Future<Output = Result<Outcome, RunnerError>> + Send;
}

/// The device that a slot computes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerDevice {
    /// `cpu`, or the GPU's name.
    pub name: String,
    /// Bytes of its memory that one unit may take, where that is known.
    pub memory: Option<u64>,
}

/// There is no trainer to run units with.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunnerError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    for_good: bool,
}

impl RunnerError {
    /// An error with a message for people, which should name the trainer's path.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None, for_good: false }
    }

    /// An error that says what `source` says.
    pub fn from_source(source: impl Error + Send + Sync + 'static) -> Self {
        let message = source.to_string();
        // The message is the source's own: go on with what caused that.
        let source = source.source().map(|cause| cause.to_string().into());
        Self { message, source, for_good: false }
    }

    /// The same, as one that no patience mends: the daemon has to end.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { for_good: true, ..self }
    }

    /// Does it end the daemon?
    pub(crate) fn is_for_good(&self) -> bool {
        self.for_good
    }
}
