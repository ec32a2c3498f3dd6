//! The handler of requests for work: it borrows nearly all parts.

use crate::{data::PlacementHandler, effect::Answer, leases::LeaseHandler};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{api::WorkAnswer, storage::Storage};
use sojourn_scheduling::{data::DataPlacement, schedule::Scheduler, waiters::LongPoll};
use sojourn_workgen::Policy;

/// Answers hosts that ask for work, or wait for it.
pub(crate) struct Dispatcher<'a> {
    pub(crate) leases: LeaseHandler<'a>,
    pub(crate) data: &'a mut DataPlacement,
    pub(crate) policy: &'a dyn Policy,
    pub(crate) rng: &'a mut ChaCha8Rng,
    pub(crate) storage: &'a Storage,
}

impl Dispatcher<'_> {
    /// The choice of units.
    pub(crate) fn scheduler(&self) -> Scheduler<'_> {
        self.leases.ledger.scheduler(self.leases.hosts, self.data, self.policy)
    }

    /// Replicas, prefetches and evictions.
    pub(super) fn placement(&mut self) -> PlacementHandler<'_> {
        let LeaseHandler { ledger, hosts } = &mut self.leases;
        PlacementHandler { ledger: ledger.reborrow(), hosts, data: self.data }
    }

    pub(super) fn answer(&mut self, poll: &LongPoll, answer: WorkAnswer) {
        self.leases.ledger.reply(poll.to, Ok(Answer::Work(Box::new(answer))));
    }
}
