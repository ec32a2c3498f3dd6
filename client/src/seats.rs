//! Hands out the machine's slots, first come, first served; a seat that is dropped is free again.

use std::sync::{Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The runners of all slots.
#[derive(Debug)]
pub(crate) struct Seats<R> {
    free: Mutex<Vec<Slot<R>>>,
    /// One permit per free runner; fair, so units run in the order in which they became ready.
    permits: Semaphore,
}

#[derive(Debug)]
struct Slot<R> {
    runner: R,
    greeted: bool,
}

/// A slot in use.
#[derive(Debug)]
pub(crate) struct Seat<'a, R> {
    /// There until the drop.
    slot: Option<Slot<R>>,
    seats: &'a Seats<R>,
    _permit: SemaphorePermit<'a>,
}

impl<R> Seats<R> {
    pub(crate) fn new(runners: Vec<R>) -> Self {
        let slots = runners.into_iter().map(|runner| Slot { runner, greeted: false });
        let slots: Vec<_> = slots.collect();
        Self { permits: Semaphore::new(slots.len()), free: Mutex::new(slots) }
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
        slot.is_some().then_some(Seat { slot, seats: self, _permit: permit })
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

    #[expect(clippy::expect_used, reason = "`Seats::take` fills it and only the drop empties it")]
    fn slot(&mut self) -> &mut Slot<R> {
        self.slot.as_mut().expect("a seat has its slot until it is dropped")
    }
}
