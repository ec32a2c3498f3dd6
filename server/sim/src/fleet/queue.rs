//! Events that are to happen, in the order of virtual time.
//!
//! At one instant results come in first, then machines come and go, then results are assimilated, and only
//! then is anybody given something: units that end together are all known before the next are handed out.

use super::training::Merged;
use crate::call::Call;
use sojourn_client_core as client;
use sojourn_core::AssimilationUnit;
use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Something that happens to a host, to one that has started so many times.
#[derive(Debug)]
pub(crate) enum Event {
    /// A unit ends in a slot.
    Ends { host: u32, boot: u32, slot: u32, serial: u32 },
    /// A download is through.
    Fetched { host: u32, boot: u32, serial: u32 },
    /// An upload is through.
    Sent { host: u32, boot: u32, serial: u32 },
    /// A call reaches the server.
    Call(HostCall),
    /// An answer reaches its host.
    Heard { host: u32, boot: u32, event: Box<client::Event> },
    /// A host's network is there again.
    Reconnected { host: u32, boot: u32 },
    /// Something is due on a host.
    Tick { host: u32, boot: u32 },
    /// A machine is there.
    Comes { host: u32 },
    /// A host hears that it will be taken away, in so many microseconds.
    Preempted { host: u32, boot: u32, left: u64 },
    /// A machine is gone.
    Goes { host: u32, boot: u32 },
    /// The buyer of machines is asked.
    Machines,
    /// A job is submitted.
    Submit { job: u32 },
    /// Assimilators look for results.
    Assimilate,
    /// One is done with a result.
    Assimilated(Box<Assimilated>),
}

/// A call of a host that has started so many times.
#[derive(Debug)]
pub(crate) struct HostCall {
    pub(crate) host: u32,
    pub(crate) boot: u32,
    pub(crate) call: Call,
}

/// A result that an assimilator is done with.
#[derive(Debug)]
pub(crate) struct Assimilated {
    pub(crate) unit: Box<AssimilationUnit>,
    /// The merged version, or the refusal, where the result was to be merged.
    pub(crate) merged: Option<Merged>,
}

impl Event {
    const fn rank(&self) -> u8 {
        match self {
            Event::Ends { .. }
            | Event::Fetched { .. }
            | Event::Sent { .. }
            | Event::Heard { .. }
            | Event::Reconnected { .. }
            | Event::Call(HostCall { call: Call::Report(_) | Call::Release(_), .. }) => 0,
            Event::Comes { .. }
            | Event::Preempted { .. }
            | Event::Goes { .. }
            | Event::Machines => 1,
            Event::Assimilate | Event::Assimilated(_) => 2,
            Event::Call(HostCall { call: Call::Ask(_) | Call::Locate(_), .. }) => 3,
            Event::Call(HostCall { call: Call::Beat, .. }) | Event::Tick { .. } => 4,
            // Whoever is there has asked by then.
            Event::Submit { .. } => 5,
        }
    }
}

#[derive(Debug)]
struct Entry {
    key: (u64, u8, u64),
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// The queue. Of events alike in time and kind, the one that was added first comes first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

impl Queue {
    pub(crate) fn add(&mut self, at: u64, event: Event) {
        self.added += 1;
        self.entries.push(Reverse(Entry { key: (at, event.rank(), self.added), event }));
    }

    /// A host is there until then, and hears of it so long before.
    pub(crate) fn leave(&mut self, host: u32, boot: u32, from: u64, to: u64, notice: Option<u64>) {
        self.add(to, Event::Goes { host, boot });
        if let Some(notice) = notice {
            let at = to.saturating_sub(notice).max(from);
            self.add(at, Event::Preempted { host, boot, left: to - at });
        }
    }

    /// When the next one is.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.key.0)
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.entries.pop().map(|Reverse(entry)| (entry.key.0, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_before_asks_of_the_same_instant() {
        let mut queue = Queue::default();
        let call = Call::Ask(client::AskId(1));
        let ask = |host| Event::Call(HostCall { host, boot: 0, call: call.clone() });
        queue.add(5, ask(1));
        queue.add(5, Event::Assimilate);
        queue.add(5, ask(0));
        queue.add(5, Event::Ends { host: 2, boot: 0, slot: 0, serial: 0 });
        queue.add(4, Event::Tick { host: 3, boot: 0 });
        let order: Vec<String> =
            std::iter::from_fn(|| queue.pop()).map(|(_, event)| format!("{event:?}")).collect();
        let begins =
            ["Tick", "Ends", "Assimilate", "Call(HostCall { host: 1", "Call(HostCall { host: 0"];
        assert!(
            order.iter().zip(begins).all(|(event, begin)| event.starts_with(begin)),
            "{order:?}"
        );
    }
}
