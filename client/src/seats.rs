//! Hands out the machine's slots, first come, first served; a seat that is dropped is free again.

use sojourn_protocol::quantity::SaturatingFrom as _;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The runners of all slots.
#[derive(Debug)]
pub(crate) struct Seats<R> {
    free: Mutex<Vec<Slot<R>>>,
    /// One permit per free runner; fair, so units run in the order in which they became ready.
    permits: Semaphore,
    /// All slots, those in use too.
    count: AtomicU32,
    /// Those that are out of use for a while.
    retired: AtomicU32,
}

#[derive(Debug)]
struct Slot<R> {
    runner: R,
    greeted: bool,
    /// Units in a row that its trainer died of, or stood still at.
    failures: u32,
}

/// A slot in use.
#[derive(Debug)]
pub(crate) struct Seat<'a, R> {
    /// There until the drop.
    slot: Option<Slot<R>>,
    seats: &'a Seats<R>,
    permit: Option<SemaphorePermit<'a>>,
}

impl<R> Seats<R> {
    pub(crate) fn new(runners: Vec<R>) -> Self {
        let slots = runners.into_iter().map(|runner| Slot { runner, greeted: false, failures: 0 });
        let slots: Vec<_> = slots.collect();
        let count = AtomicU32::new(u32::saturating_from(slots.len()));
        let retired = AtomicU32::new(0);
        Self { permits: Semaphore::new(slots.len()), free: Mutex::new(slots), count, retired }
    }

    /// How many slots there are.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// How many are out of use beside them.
    pub(crate) fn retired(&self) -> u32 {
        self.retired.load(Ordering::Relaxed)
    }

    /// Waits for a slot. The last one used comes first: its trainer is warm.
    pub(crate) async fn take(&self) -> Seat<'_, R> {
        loop {
            // Never closed, so an error can't come; going round again would only wait.
            if let Ok(permit) = self.permits.acquire().await
                && let Some(seat) = self.seat(permit)
            {
                return seat;
            }
        }
    }

    /// A slot, where one is free now.
    pub(crate) fn take_free(&self) -> Option<Seat<'_, R>> {
        self.seat(self.permits.try_acquire().ok()?)
    }

    fn seat<'a>(&'a self, permit: SemaphorePermit<'a>) -> Option<Seat<'a, R>> {
        let slot = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        slot.is_some().then_some(Seat { slot, seats: self, permit: Some(permit) })
    }
}

/// A slot that is out of use for a while.
#[derive(Debug)]
pub(crate) struct Retired<R>(Slot<R>);

impl<R> Seats<R> {
    /// Takes a slot out of use.
    pub(crate) fn retire(mut seat: Seat<'_, R>) -> Option<Retired<R>> {
        let slot = seat.slot.take()?;
        seat.seats.count.fetch_sub(1, Ordering::Relaxed);
        seat.seats.retired.fetch_add(1, Ordering::Relaxed);
        // The permit must not come back with the seat: nothing is free for whoever would get it.
        if let Some(permit) = seat.permit.take() {
            permit.forget();
        }
        Some(Retired(slot))
    }

    /// Takes a slot into use again.
    pub(crate) fn restore(&self, retired: Retired<R>) {
        let slot = Slot { failures: 0, ..retired.0 };
        self.free.lock().unwrap_or_else(PoisonError::into_inner).insert(0, slot);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.retired.fetch_sub(1, Ordering::Relaxed);
        self.permits.add_permits(1);
    }
}

impl<R> Drop for Seat<'_, R> {
    fn drop(&mut self) {
        // Before the permit goes: whoever gets that finds the runner.
        let mut free = self.seats.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.extend(self.slot.take());
    }
}

impl<R> Seat<'_, R> {
    /// The slot's runner.
    pub(crate) fn runner(&mut self) -> &mut R {
        &mut self.slot().runner
    }

    /// Has the runner's trainer said what it is, and was that right?
    pub(crate) fn is_greeted(&mut self) -> bool {
        self.slot().greeted
    }

    /// It has, for as long as the daemon runs.
    pub(crate) fn greeted(&mut self) {
        self.slot().greeted = true;
    }

    /// A unit has ended; `badly`: its trainer died of it, or stood still. Says how many have, in a row.
    pub(crate) fn ended(&mut self, badly: bool) -> u32 {
        let slot = self.slot();
        slot.failures = if badly { slot.failures.saturating_add(1) } else { 0 };
        slot.failures
    }

    #[expect(clippy::expect_used, reason = "`Seats::take` fills it and only the drop empties it")]
    fn slot(&mut self) -> &mut Slot<R> {
        self.slot.as_mut().expect("a seat has its slot until it is dropped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_retired_slot_is_nobodys_until_it_is_restored() {
        let seats = Seats::new(vec![1, 2]);
        let mut seat = seats.take().await;
        assert_eq!(
            (seat.ended(true), seat.ended(true), seat.ended(false), seat.ended(true)),
            (1, 2, 0, 1)
        );
        let retired = Seats::retire(seat).unwrap();
        assert_eq!((seats.count(), seats.retired()), (1, 1));
        let other = seats.take().await;
        assert!(seats.take_free().is_none());
        drop(other);
        seats.restore(retired);
        assert_eq!((seats.count(), seats.retired()), (2, 0));
        let mut both = [seats.take().await, seats.take().await];
        let mut runners = both.each_mut().map(|seat| *seat.runner());
        runners.sort_unstable();
        assert_eq!(runners, [1, 2]);
        assert_eq!(both[1].ended(true) + both[0].ended(true), 2, "its failures are forgotten");
    }
}
