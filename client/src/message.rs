//! The messages to the driver: what executors, limits and the control socket tell it.

use crate::{
    control::{Resting, UnitStatus},
    storage::{cache::Pin, outbox::Finished},
    transfer::FetchError,
};
use sojourn_client_core::{AskId, Event};
use sojourn_http::CallError;
use sojourn_protocol::{
    api::{HeartbeatAnswer, WorkAnswer},
    digest::{BlobRef, Digest},
    inventory::Inventory,
    trace::TraceContext,
};
use tokio::sync::oneshot;

/// A message to the driver.
#[derive(Debug)]
pub(crate) enum Message {
    /// Something for the agent alone.
    Event(Event),
    /// A request for work has ended; it said this inventory, and was of this trace.
    Work {
        ask: AskId,
        inventory: Option<Inventory>,
        trace: Option<TraceContext>,
        result: Result<WorkAnswer, CallError>,
    },
    /// A heartbeat has ended.
    Heartbeat(Result<HeartbeatAnswer, CallError>),
    /// A blob is on the disk, or can't be had.
    Fetched { blob: Digest, serial: u64, result: Result<Pin, FetchError> },
    /// A unit has ended, and its result, or the part of it, is on the disk.
    UnitEnded(Box<EndedUnit>),
    /// The quota of all trainers was set, and with it those of single slots were lifted.
    CapsLifted,
    /// Somebody asks how things are.
    Status(oneshot::Sender<AgentStatus>),
}

/// The result of a unit that has ended.
#[derive(Debug)]
pub(crate) struct EndedUnit {
    pub(crate) finished: Finished,
    /// The result's checkpoint, where the unit came to its end and the trial can go on from it here.
    pub(crate) continues_from: Option<BlobRef>,
    /// The base that it was trained from, if that is a blob.
    pub(crate) base: Option<BlobRef>,
}

/// The agent's state at the moment.
#[derive(Debug, Default)]
pub(crate) struct AgentStatus {
    pub(crate) units: Vec<UnitStatus>,
    /// Slots that are out of use.
    pub(crate) out_of_use: u32,
    /// Why no work is asked for.
    pub(crate) resting: Option<Resting>,
    /// Why the server gives it nothing, as that has said.
    pub(crate) waiting: Option<String>,
    /// Nothing new may be begun with the month's bytes.
    pub(crate) is_budget_closed: bool,
}
