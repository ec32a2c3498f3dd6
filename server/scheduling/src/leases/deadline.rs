//! When each live lease runs out, and how far its unit is.

use super::bounds::LeaseBounds;
use sojourn_protocol::{digest::BlobRef, ids::LeaseId, time::UnixMillis};
use std::collections::{BTreeMap, BTreeSet};

/// When a live lease runs out, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The lease runs out when its host isn't heard of until then.
    pub renew_by: UnixMillis,
    /// The lease runs out when it makes no progress until then.
    pub due: UnixMillis,
    /// The bounds by which the lease runs out, whatever its host reports, and by which a report is believed.
    pub bounds: LeaseBounds,
    /// The host has reported that it runs in a slot.
    pub started: bool,
    /// When the host first reported that it runs; before that, when it was granted.
    pub since: UnixMillis,
    /// Batches that were done by then.
    pub first: u32,
    /// When the host first reported that it is trained.
    pub finished_at: Option<UnixMillis>,
    /// The checkpoint that is being uploaded, as the host reported it.
    pub produced: Option<BlobRef>,
    /// Since when its host has it: since it was granted, or given provisionally.
    pub sent_at: UnixMillis,
    /// Bytes of its blobs that the host has fetched, as reported.
    pub fetched: u64,
    /// Batches done, as the host reported.
    pub done: u32,
    /// Of how many.
    pub of: u32,
    /// When the batches done were reported.
    pub done_at: UnixMillis,
    /// The most bytes of its result that the host reported as uploaded.
    pub uploaded: u64,
    /// When it reported so many for the first time.
    pub uploaded_at: UnixMillis,
    /// Whether it is to end early.
    pub stop: StopRequest,
}

/// Whether a hop is to end after its current batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// The hop goes on.
    None,
    /// The hop is to end, and its host is to hear so at once.
    Wanted,
    /// The hop is to end, and its host has been told.
    Sent,
}

impl Deadline {
    /// Microseconds that so many batches took, as far as it went since the host first reported it; `None` where it
    /// made no progress.
    pub fn pace(&self) -> Option<(u64, u32)> {
        let gained = self.done.checked_sub(self.first).filter(|gained| *gained > 0)?;
        let so_far = (self.done_at - self.since).0.saturating_mul(1000);
        (self.started && so_far > 0).then_some((so_far, gained))
    }

    /// Is it to end early?
    pub fn is_to_stop(&self) -> bool {
        self.stop != StopRequest::None
    }

    /// Has its host reported that it is trained?
    pub fn is_finished(&self) -> bool {
        self.finished_at.is_some()
    }

    /// Does it occupy a slot, as far as its host has reported?
    pub fn is_running(&self) -> bool {
        self.started && !self.is_finished()
    }

    /// The lease's host has fetched so many bytes of its blobs. Where these are more than before, it gets time until then, at
    /// least. No more is believed than the blobs have.
    pub fn fetched_more(&mut self, fetched: u64, until: UnixMillis) {
        let fetched = fetched.min(self.bounds.allowance.bytes);
        if fetched > self.fetched {
            self.fetched = fetched;
            self.due = self.due.max(until);
        }
    }

    /// When it runs out.
    #[must_use]
    pub fn ends(&self) -> UnixMillis {
        self.renew_by.min(self.due).min(self.bounds.ends_by)
    }
}

/// The deadlines of all live leases (L2).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deadlines {
    by_lease: BTreeMap<LeaseId, Deadline>,
    by_time: BTreeSet<(UnixMillis, LeaseId)>,
}

impl Deadlines {
    /// Sets when a lease runs out.
    pub fn set(&mut self, lease: LeaseId, deadline: Deadline) {
        match self.by_lease.insert(lease, deadline).map(|before| before.ends()) {
            Some(ends) if ends == deadline.ends() => return,
            Some(ends) => {
                self.by_time.remove(&(ends, lease));
            }
            None => {}
        }
        self.by_time.insert((deadline.ends(), lease));
    }

    /// Forgets a lease that is live no more.
    pub fn clear(&mut self, lease: LeaseId) {
        if let Some(deadline) = self.by_lease.remove(&lease) {
            self.by_time.remove(&(deadline.ends(), lease));
        }
    }

    /// A lease's deadline.
    pub fn get(&self, lease: LeaseId) -> Option<&Deadline> {
        self.by_lease.get(&lease)
    }

    /// Has a live lease end early, or go on.
    pub fn set_stop(&mut self, lease: LeaseId, stop: StopRequest) {
        if let Some(deadline) = self.by_lease.get_mut(&lease) {
            deadline.stop = stop;
        }
    }

    /// All of them, by lease.
    pub fn all(&self) -> impl Iterator<Item = (LeaseId, &Deadline)> {
        self.by_lease.iter().map(|(lease, deadline)| (*lease, deadline))
    }

    /// When the first lease runs out.
    pub fn next_end(&self) -> Option<UnixMillis> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The lease that runs out first, and when.
    pub fn first(&self) -> Option<(UnixMillis, LeaseId)> {
        self.by_time.first().copied()
    }

    /// Is the index by time what the deadlines say?
    pub fn is_indexed(&self) -> bool {
        let by_time: BTreeSet<_> =
            self.by_lease.iter().map(|(lease, deadline)| (deadline.ends(), *lease)).collect();
        by_time == self.by_time
    }
}
