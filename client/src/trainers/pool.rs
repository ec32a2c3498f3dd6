//! The trainers of one device's slots. Which unit is in which slot, the agent says; whoever has a slot's lock uses
//! its trainer. A unit that is stopped holds the lock until it has let go.

use sojourn_protocol::trainer::InstructionSet;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Mutex;

/// The trainers of a device.
#[derive(Debug)]
pub(crate) struct TrainerPool<R> {
    slots: Vec<Arc<Mutex<Trainer<R>>>>,
    /// Slots that aren't out of use.
    usable: AtomicU32,
}

/// A slot's trainer.
#[derive(Debug)]
pub(crate) struct Trainer<R> {
    pub(crate) runner: R,
    /// The instruction sets in which it has said what it is, and that was right, for as long as the daemon runs.
    pub(crate) checked: BTreeSet<InstructionSet>,
}

impl<R> TrainerPool<R> {
    pub(crate) fn new(runners: Vec<R>) -> Self {
        let trainer = |runner| Arc::new(Mutex::new(Trainer { runner, checked: BTreeSet::new() }));
        let slots: Vec<_> = runners.into_iter().map(trainer).collect();
        let usable = AtomicU32::new(u32::try_from(slots.len()).unwrap_or(u32::MAX));
        Self { slots, usable }
    }

    /// The trainer of the slot with this number.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Mutex<Trainer<R>>>> {
        self.slots.get(usize::try_from(number).ok()?).map(Arc::clone)
    }

    /// All trainers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Mutex<Trainer<R>>>> {
        self.slots.iter()
    }

    /// How many slots there are, those included that are out of use.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    /// How many slots aren't out of use.
    pub(crate) fn usable(&self) -> u32 {
        self.usable.load(Ordering::Relaxed)
    }

    /// So many slots aren't out of use now.
    pub(crate) fn set_usable(&self, usable: u32) {
        self.usable.store(usable, Ordering::Relaxed);
    }
}
