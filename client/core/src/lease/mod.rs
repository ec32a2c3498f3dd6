//! One lease of this host: its state, and what it says of itself to the server.
//!
//! ```text
//! Queued -> Fetching -> Ready -> Running <-> Blocked        on the disk from here on
//!   |          |          |         |            |
//!   |          |          |         +------------+--> Stored <-> Uploading -> Reporting -> Acknowledged
//!   +----------+----------+---------+----------------> Releasing                  (from each: Closed)
//! ```
//!
//! `state` has a struct for each state; `transition` has the table of all transitions, and nothing else changes a
//! state. The table's explanation is in `docs/internals/lease-lifecycle.md`.

mod losses;
mod state;
mod transition;

pub(crate) use losses::Losses;
pub use state::{
    Acknowledged, Blocked, Fetching, InSlot, LeaseState, Queued, Ready, Releasing, Reporting,
    Running, Stored, Uploading,
};
pub use transition::{LeaseAction, LeaseEvent, Next, Step};

use crate::{
    delivery::Delivery,
    event::{ResultFacts, StoredResult, TransferView},
    needs::Needs,
    slots::SlotId,
    time::Micros,
};
use sojourn_protocol::{
    api::{Held, HeldState},
    digest::BlobRef,
    ids::LeaseId,
    trainer::Progress,
    unit::{Lease, Unit},
};

/// Heartbeats come no more often than this, whatever a lease says.
const MIN_HEARTBEAT_INTERVAL: Micros = Micros::from_millis(10);

/// The result of an event.
#[derive(Debug, Clone)]
pub struct Transition {
    /// The lease is no longer held.
    pub is_closed: bool,
    /// Actions, in this order.
    pub actions: [Option<LeaseAction>; 2],
}

/// A lease that this host holds.
#[derive(Debug, Clone)]
pub struct HeldLease {
    pub(crate) id: LeaseId,
    /// The index of its device among the host's; none for a device that the host lacks, and for a result that was
    /// found on disk.
    pub(crate) device: Option<usize>,
    pub(crate) heartbeat_interval: Micros,
    /// A hop: told to stop, it ends after its batch with a result that is of use. An evaluation has none.
    pub(crate) may_stop: bool,
    /// The unit was asked to stop before it was in a slot.
    pub(crate) stops_at_start: bool,
    /// The lease of this host whose result its unit begins with, where the server may not have taken that in when it
    /// granted this one. It takes nothing of this one before.
    pub(crate) continues: Option<LeaseId>,
    /// Bytes of the month's budget that are set aside for what it fetches, and for its result.
    pub(crate) reserved_fetch: u64,
    /// See `reserved_fetch`.
    pub(crate) reserved_upload: u64,
    /// The training losses of its unit so far.
    pub(crate) losses: Losses,
    /// The blobs that it needs; none of a finished one.
    pub(crate) needs: Needs,
    pub(crate) state: LeaseState,
}

impl HeldLease {
    /// A lease that was just granted, for the host's device with this index.
    #[must_use]
    pub fn granted(lease: Box<Lease>, device: Option<usize>) -> Self {
        Self {
            id: lease.id,
            device,
            heartbeat_interval: Micros::from(lease.heartbeat_every).max(MIN_HEARTBEAT_INTERVAL),
            may_stop: matches!(lease.unit, Unit::Train(_)),
            stops_at_start: false,
            continues: None,
            reserved_fetch: 0,
            reserved_upload: 0,
            losses: Losses::default(),
            needs: Needs::of(&lease.unit),
            state: LeaseState::Queued(Queued { lease }),
        }
    }

    /// A result that was found on disk: its report is made first. The server may have it all, and only its answer
    /// wasn't heard.
    #[must_use]
    pub fn restored(found: StoredResult) -> Self {
        let StoredResult { lease: id, heartbeat_interval, has_checkpoint } = found;
        let result = ResultFacts { has_checkpoint, continues_from: None };
        let state = Reporting { result, delivery: Delivery::default() };
        Self {
            id,
            device: None,
            heartbeat_interval: heartbeat_interval.max(MIN_HEARTBEAT_INTERVAL),
            may_stop: false,
            stops_at_start: false,
            continues: None,
            reserved_fetch: 0,
            reserved_upload: 0,
            losses: Losses::default(),
            needs: Needs::default(),
            state: LeaseState::Reporting(state),
        }
    }

    /// Takes an event; none where the event isn't for its state, which then stays.
    #[must_use]
    pub fn step(&mut self, event: LeaseEvent) -> Option<Transition> {
        // The placeholder lives until the end of this function.
        let state =
            std::mem::replace(&mut self.state, LeaseState::Acknowledged(Acknowledged::default()));
        let step = state.step(event);
        let is_closed = match step.next {
            Next::Ignored(state) => {
                self.state = state;
                return None;
            }
            Next::State(state) => {
                self.state = state;
                false
            }
            Next::Closed => true,
        };
        Some(Transition { is_closed, actions: step.actions })
    }

    /// The lease's number.
    #[must_use]
    pub const fn id(&self) -> LeaseId {
        self.id
    }

    /// How far it is.
    #[must_use]
    pub const fn state(&self) -> &LeaseState {
        &self.state
    }

    /// Is it a unit that is being done, or will be?
    #[must_use]
    pub const fn is_work(&self) -> bool {
        matches!(
            self.state,
            LeaseState::Queued(_)
                | LeaseState::Fetching(_)
                | LeaseState::Ready(_)
                | LeaseState::Running(_)
                | LeaseState::Blocked(_)
        )
    }

    /// Is its unit in a slot?
    #[must_use]
    pub const fn is_in_slot(&self) -> bool {
        self.in_slot().is_some()
    }

    /// The slot in which its unit is; none once that is free for the next unit.
    #[must_use]
    pub fn slot(&self) -> Option<SlotId> {
        self.in_slot().and_then(|unit| unit.slot)
    }

    /// Does its unit wait for a shard, in a slot?
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        matches!(self.state, LeaseState::Blocked(_))
    }

    /// Has it a result that the server hasn't acknowledged?
    #[must_use]
    pub const fn is_undelivered(&self) -> bool {
        matches!(
            self.state,
            LeaseState::Stored(_) | LeaseState::Uploading(_) | LeaseState::Reporting(_)
        )
    }

    /// Is it in a slot, and ends early by itself when it is asked to?
    #[must_use]
    pub const fn is_stoppable(&self) -> bool {
        self.may_stop && self.is_in_slot()
    }

    pub(crate) const fn in_slot(&self) -> Option<&InSlot> {
        match &self.state {
            LeaseState::Running(Running { unit }) | LeaseState::Blocked(Blocked { unit, .. }) => {
                Some(unit)
            }
            _ => None,
        }
    }

    pub(crate) const fn in_slot_mut(&mut self) -> Option<&mut InSlot> {
        match &mut self.state {
            LeaseState::Running(Running { unit }) | LeaseState::Blocked(Blocked { unit, .. }) => {
                Some(unit)
            }
            _ => None,
        }
    }

    /// How often its lease asks for a heartbeat.
    #[must_use]
    pub const fn heartbeat_interval(&self) -> Micros {
        self.heartbeat_interval
    }

    /// The lease's state as the server is told; none for an acknowledged one.
    #[must_use]
    pub fn held(&self, view: &impl TransferView) -> Option<Held> {
        let state = match &self.state {
            LeaseState::Queued(_) | LeaseState::Ready(_) | LeaseState::Releasing(_) => {
                HeldState::Waiting
            }
            LeaseState::Fetching(_) => HeldState::Fetching { fetched: self.needs.fetched(view) },
            LeaseState::Running(Running { unit }) => {
                let Progress { done, of } = unit.progress;
                HeldState::Running { done, of }
            }
            LeaseState::Blocked(Blocked { unit, .. }) => {
                let Progress { done, of } = unit.progress;
                HeldState::Awaiting { done, of, fetched: self.needs.fetched(view) }
            }
            LeaseState::Stored(_) | LeaseState::Reporting(_) => HeldState::Finished,
            LeaseState::Uploading(_) => HeldState::Sending { sent: view.sent(self.id) },
            LeaseState::Acknowledged(_) => return None,
        };
        let (result, losses) = (self.continues_from(), self.losses.sum());
        Some(Held { result, losses, ..Held::new(self.id, state) })
    }

    /// The checkpoint that the trial can go on from here, once the unit has ended.
    pub(crate) const fn continues_from(&self) -> Option<BlobRef> {
        match &self.state {
            LeaseState::Stored(Stored { result, .. })
            | LeaseState::Uploading(Uploading { result, .. })
            | LeaseState::Reporting(Reporting { result, .. })
            | LeaseState::Acknowledged(Acknowledged { result }) => result.continues_from,
            _ => None,
        }
    }
}
