//! Every lease that this host holds and how far it is: the one place that says so. No I/O; what must
//! follow from a change (files to remove) is the caller's.
//!
//! ```text
//!                                  Awaiting
//!                                     ||
//! Waiting -> Fetching -> Waiting -> Running -> Finished -> Reporting -> Reported -> (over)
//!    |          |           |          |          |
//!    +----------+-----------+----------+----------+--> Returning -> (over)
//! drop, from the server: -> (over)
//! ```

mod entry;

use entry::{Entry, Stage};
use sojourn_protocol::{
    api::Held, digest::BlobRef, ids::LeaseId, inventory::Demand, quantity::SaturatingFrom as _,
    time::Millis, trainer::Progress,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};
use tokio::{sync::watch, task::AbortHandle};

/// How many leases are remembered as over. Ids are never used again; only answers that were under way
/// when a lease ended can name it once more.
const REMEMBERED: usize = 4096;

/// The leases of this host.
#[derive(Debug)]
pub(crate) struct Table {
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<LeaseId, Entry>,
    over: BTreeSet<LeaseId>,
}

/// What a lease that the server sends is to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    New,
    /// Held already.
    Held,
    /// Had already, and over.
    Over,
}

/// What was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// Nothing: not held, or its report is out and will be answered.
    Nothing,
    /// A unit, perhaps running.
    Unit,
    /// A finished result.
    Result,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), changes: watch::Sender::new(()) }
    }

    /// Hears of every change but progress.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Something else has changed that those who follow the leases must know.
    pub(crate) fn look_again(&self) {
        self.changes.send_replace(());
    }

    /// A lease has come.
    pub(crate) fn take(&self, lease: LeaseId, device: &str, heartbeat_every: Millis) -> Taken {
        self.change(|state| {
            if state.entries.contains_key(&lease) {
                return (Taken::Held, false);
            }
            if state.over.contains(&lease) {
                return (Taken::Over, false);
            }
            let device = device.to_owned();
            let entry = Entry { device, ..Entry::new(Stage::Waiting, heartbeat_every) };
            state.entries.insert(lease, entry);
            (Taken::New, true)
        })
    }

    /// A finished result was found on disk.
    pub(crate) fn restore(&self, lease: LeaseId, heartbeat_every: Millis) {
        self.change(|state| {
            let entry = Entry::new(Stage::Finished, heartbeat_every);
            state.entries.insert(lease, entry);
            ((), true)
        });
    }

    /// The task that works on a lease, to be aborted with it: at once where it is over already.
    pub(crate) fn worked_by(&self, lease: LeaseId, task: AbortHandle) {
        match self.lock().entries.get_mut(&lease) {
            Some(entry) => entry.task = Some(task),
            None => task.abort(),
        }
    }

    /// The blobs that the unit begins with are on their way; `fetched` counts the bytes of each of its blobs.
    pub(crate) fn fetching(&self, lease: LeaseId, fetched: Vec<Arc<AtomicU64>>) {
        if let Some(entry) = self.lock().entries.get_mut(&lease)
            && entry.stage == Stage::Waiting
        {
            (entry.stage, entry.fetched) = (Stage::Fetching, fetched);
        }
    }

    /// The blobs that the unit begins with are here; it waits for a slot.
    pub(crate) fn fetched(&self, lease: LeaseId) {
        if let Some(entry) = self.lock().entries.get_mut(&lease)
            && entry.stage == Stage::Fetching
        {
            entry.stage = Stage::Waiting;
        }
    }

    /// The unit is in a slot and has come so far.
    pub(crate) fn running(&self, lease: LeaseId, progress: Progress) {
        if let Some(entry) = self.lock().entries.get_mut(&lease)
            && (entry.stage == Stage::Waiting || entry.stage.is_in_slot())
        {
            entry.stage = Stage::Running(progress);
        }
    }

    /// The unit, which is in a slot, waits there for a shard; or goes on.
    pub(crate) fn awaits(&self, lease: LeaseId, awaits: bool) {
        if let Some(entry) = self.lock().entries.get_mut(&lease)
            && let Stage::Running(progress) | Stage::Awaiting(progress) = entry.stage
        {
            entry.stage = if awaits { Stage::Awaiting(progress) } else { Stage::Running(progress) };
        }
    }

    /// The unit's result is on its way; `sent` counts its bytes.
    pub(crate) fn sending(&self, lease: LeaseId, sent: Arc<AtomicU64>) {
        if let Some(entry) = self.lock().entries.get_mut(&lease) {
            entry.sent = Some(sent);
        }
    }

    /// The unit, which runs, may be asked to end early.
    pub(crate) fn ends_early(&self, lease: LeaseId) {
        if let Some(entry) = self.lock().entries.get_mut(&lease) {
            entry.ends_early = true;
        }
    }

    /// The unit, which was asked to end early, came to nothing.
    pub(crate) fn has_no_part(&self, lease: LeaseId) {
        self.change(|state| {
            if let Some(entry) = state.entries.get_mut(&lease) {
                entry.ends_early = false;
            }
            ((), true)
        });
    }

    /// The result is on disk, with the checkpoint that the trial may go on from
    /// here. False where the lease is over: the result is
    /// then nobody's.
    #[must_use]
    pub(crate) fn finished(&self, lease: LeaseId, made: Option<BlobRef>) -> bool {
        if let Some(entry) = self.lock().entries.get_mut(&lease) {
            entry.made = made;
        }
        self.advance(lease, Stage::Finished)
    }

    /// The report is about to be made.
    pub(crate) fn reporting(&self, lease: LeaseId) {
        self.advance(lease, Stage::Reporting);
    }

    /// The report was not answered.
    pub(crate) fn not_reported(&self, lease: LeaseId) {
        self.advance(lease, Stage::Finished);
    }

    /// The report is acknowledged.
    pub(crate) fn reported(&self, lease: LeaseId) {
        self.advance(lease, Stage::Reported);
    }

    /// The lease is about to be given back. False where it is over.
    #[must_use]
    pub(crate) fn returning(&self, lease: LeaseId) -> bool {
        self.advance(lease, Stage::Returning)
    }

    /// The lease is over, says the task that works on it.
    pub(crate) fn over(&self, lease: LeaseId) {
        self.change(|state| ((), state.end(lease).is_some()));
    }

    /// The server says that the report has ended. False where that is known.
    pub(crate) fn ended(&self, lease: LeaseId) -> bool {
        self.change(|state| match state.end(lease) {
            Some(entry) => {
                entry.abort();
                (true, true)
            }
            None => (false, false),
        })
    }

    /// The server says to drop a lease. `told_as_reported`: it knew that the report was acknowledged, so
    /// it means the report's end, and not the lease of a request that the report overtook.
    pub(crate) fn dropped(&self, lease: LeaseId, told_as_reported: bool) -> Dropped {
        self.change(|state| {
            let dropped = match state.entries.get(&lease).map(|entry| entry.stage) {
                None | Some(Stage::Reporting) => Dropped::Nothing,
                Some(Stage::Reported) if !told_as_reported => Dropped::Nothing,
                Some(Stage::Reported | Stage::Finished) => Dropped::Result,
                Some(
                    Stage::Waiting
                    | Stage::Fetching
                    | Stage::Running(_)
                    | Stage::Awaiting(_)
                    | Stage::Returning,
                ) => Dropped::Unit,
            };
            if dropped == Dropped::Nothing {
                return (dropped, false);
            }
            if let Some(entry) = state.end(lease) {
                entry.abort();
            }
            (dropped, true)
        })
    }

    /// Stops everything that isn't finished, but for what runs and ends early by itself; says which leases
    /// that were.
    pub(crate) fn stop_others(&self) -> Vec<LeaseId> {
        self.stop(|entry| !entry.is_ending())
    }

    /// Stops everything that hasn't begun to run, and says which leases that were.
    pub(crate) fn stop_unstarted(&self) -> Vec<LeaseId> {
        self.stop(|entry| !entry.stage.is_in_slot())
    }

    /// Stops everything that isn't finished, and says which leases that were.
    pub(crate) fn stop_all(&self) -> Vec<LeaseId> {
        self.stop(|_| true)
    }

    fn stop(&self, which: impl Fn(&Entry) -> bool) -> Vec<LeaseId> {
        self.change(|state| {
            let unfinished: Vec<LeaseId> = state
                .entries
                .iter()
                .filter(|(_, entry)| entry.stage.is_work() || entry.stage == Stage::Returning)
                .filter(|(_, entry)| which(entry))
                .map(|(lease, _)| *lease)
                .collect();
            for lease in &unfinished {
                if let Some(entry) = state.end(*lease) {
                    entry.abort();
                }
            }
            (unfinished, true)
        })
    }

    /// Results that the server hasn't acknowledged.
    pub(crate) fn undelivered(&self) -> usize {
        let state = self.lock();
        let stages = state.entries.values().map(|entry| entry.stage);
        stages.filter(|stage| matches!(stage, Stage::Finished | Stage::Reporting)).count()
    }

    /// Is there anything that runs, or a result on its way?
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.entries.values().any(|entry| match entry.stage {
            Stage::Running(_) | Stage::Awaiting(_) | Stage::Finished | Stage::Reporting => true,
            Stage::Waiting | Stage::Fetching | Stage::Reported | Stage::Returning => false,
        })
    }

    /// Units that run and end early by themselves.
    pub(crate) fn ending(&self) -> usize {
        self.lock().entries.values().filter(|entry| entry.is_ending()).count()
    }

    /// What the server is told of held leases.
    pub(crate) fn holding(&self) -> Vec<Held> {
        let state = self.lock();
        let held = state.entries.iter().filter_map(|(lease, entry)| entry.held(*lease));
        held.collect()
    }

    /// Acknowledged reports whose end isn't known.
    pub(crate) fn awaiting_end(&self) -> Vec<LeaseId> {
        let state = self.lock();
        let entries = state.entries.iter();
        entries
            .filter(|(_, entry)| entry.stage == Stage::Reported)
            .map(|(lease, _)| *lease)
            .collect()
    }

    /// What to ask for, with so many slots of each device: one unit ahead for each slot.
    pub(crate) fn demand(&self, slots: &[(&str, u32)]) -> Vec<Demand> {
        let state = self.lock();
        let demand = slots.iter().map(|(device, slots)| {
            let mine = |entry: &&Entry| entry.stage.is_work() && entry.device == *device;
            let units = state.entries.values().filter(mine).count();
            let units = u32::saturating_from(units);
            Demand {
                device: (*device).to_owned(),
                slots: *slots,
                idle: slots.saturating_sub(units),
                wanted: slots.saturating_mul(2).saturating_sub(units),
            }
        });
        demand.collect()
    }

    /// The server wants the unit to end early. False where that is known, or the lease over.
    pub(crate) fn stop_early(&self, lease: LeaseId) -> bool {
        self.change(|state| match state.entries.get_mut(&lease) {
            Some(entry) if !entry.stop => {
                entry.stop = true;
                (true, true)
            }
            _ => (false, false),
        })
    }

    /// Ends when the server wants the unit to end early.
    pub(crate) async fn stopped_early(&self, lease: LeaseId) {
        let mut changes = self.subscribe();
        while !self.lock().entries.get(&lease).is_some_and(|entry| entry.stop) {
            // The sender lives as long as `self`.
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// How often to send heartbeats; `None` while there is nothing to keep.
    pub(crate) fn heartbeat_every(&self) -> Option<Duration> {
        let state = self.lock();
        let held = state.entries.values().filter(|entry| entry.stage != Stage::Reported);
        held.map(|entry| entry.heartbeat_every).min()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> (T, bool)) -> T {
        let (answer, changed) = change(&mut self.lock());
        if changed {
            self.changes.send_replace(());
        }
        answer
    }

    fn advance(&self, lease: LeaseId, stage: Stage) -> bool {
        self.change(|state| match state.entries.get_mut(&lease) {
            Some(entry) => {
                entry.stage = stage;
                (true, true)
            }
            None => (false, false),
        })
    }
}

impl State {
    fn end(&mut self, lease: LeaseId) -> Option<Entry> {
        let entry = self.entries.remove(&lease)?;
        self.over.insert(lease);
        while self.over.len() > REMEMBERED {
            self.over.pop_first();
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
