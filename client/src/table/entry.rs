//! One lease of this host: how far it is.

use sojourn_protocol::{
    api::{Held, HeldState},
    digest::BlobRef,
    ids::LeaseId,
    time::Millis,
    trainer::Progress,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::AbortHandle;

/// Heartbeats come no more often than this, whatever a lease says.
const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(10);

/// How far a lease is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Waiting,
    Fetching,
    Running(Progress),
    /// Running, but for a shard that it waits for.
    Awaiting(Progress),
    /// On disk; on its way to the server.
    Finished,
    /// Its report is being made, and will be answered.
    Reporting,
    /// Acknowledged.
    Reported,
    /// Being given back. The server is still told that it is held, so that it isn't sent again.
    Returning,
}

impl Stage {
    /// Is it a unit that is being done, or will be?
    pub(super) fn is_work(self) -> bool {
        matches!(self, Self::Waiting | Self::Fetching) || self.is_in_slot()
    }

    pub(super) fn is_in_slot(self) -> bool {
        matches!(self, Self::Running(_) | Self::Awaiting(_))
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stage: Stage,
    /// The device that its unit is for; none of a result that was found on disk.
    pub(super) device: String,
    /// Bytes of each of its blobs that are here; counted by those who fetch them.
    pub(super) fetched: Vec<Arc<AtomicU64>>,
    /// Bytes of its result that are on their way or there; counted by who sends them.
    pub(super) sent: Option<Arc<AtomicU64>>,
    /// The checkpoint that its unit has made, where its trial can go on from that here.
    pub(super) made: Option<BlobRef>,
    pub(super) heartbeat_every: Duration,
    /// Asked to, it ends early and leaves a part that is of use.
    pub(super) ends_early: bool,
    /// The server asks it to.
    pub(super) stop: bool,
    pub(super) task: Option<AbortHandle>,
}

impl Entry {
    pub(super) fn new(stage: Stage, heartbeat_every: Millis) -> Self {
        let heartbeat_every = Duration::from_millis(heartbeat_every.0).max(SHORTEST_HEARTBEAT);
        Self {
            stage,
            device: String::new(),
            fetched: Vec::new(),
            sent: None,
            made: None,
            heartbeat_every,
            ends_early: false,
            stop: false,
            task: None,
        }
    }

    /// It runs, and ends early by itself.
    pub(super) fn is_ending(&self) -> bool {
        self.ends_early && self.stage.is_in_slot()
    }

    /// Bytes of its blobs that are here.
    fn fetched(&self) -> u64 {
        let counts = self.fetched.iter().map(|count| count.load(Ordering::Relaxed));
        counts.fold(0, u64::saturating_add)
    }

    pub(super) fn abort(self) {
        if let Some(task) = self.task {
            task.abort();
        }
    }

    /// What the server is told of it.
    pub(super) fn held(&self, lease: LeaseId) -> Option<Held> {
        let state = match self.stage {
            Stage::Waiting | Stage::Returning => HeldState::Waiting,
            Stage::Fetching => HeldState::Fetching { fetched: self.fetched() },
            Stage::Running(Progress { done, of }) => HeldState::Running { done, of },
            Stage::Awaiting(Progress { done, of }) => {
                HeldState::Awaiting { done, of, fetched: self.fetched() }
            }
            Stage::Finished => match &self.sent {
                Some(sent) => HeldState::Sending { sent: sent.load(Ordering::Relaxed) },
                None => HeldState::Finished,
            },
            Stage::Reporting => HeldState::Finished,
            Stage::Reported => return None,
        };
        let made = self.made.filter(|_| state.is_finished());
        Some(Held { made, ..Held::new(lease, state) })
    }
}
