//! How much memory the bodies of requests may take: of all requests together, of machines, and of those with one token.
//!
//! A body is counted as it comes, not as it is announced: whoever holds memory has sent as many bytes. The first
//! [`SMALL_BODY_BYTES`] of each body are counted apart from the rest: heartbeats and reports don't wait for memory that large
//! bodies hold.

use crate::traffic::{Refusal, Traffic};
use parking_lot::Mutex;
use sojourn_protocol::{digest::Digest, quantity::to_u64};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// The first bytes of each body, which are counted apart. Of most bodies these are all.
pub(crate) const SMALL_BODY_BYTES: u64 = 64 << 10;
/// Of these, most bytes that are held in memory at one time. What is more counts among the rest.
const SMALL: Limits = Limits { all: 128 << 20, machines: 128 << 20, token: 1 << 20 };
/// Of the rest, most bytes that are held in memory at one time: of requests that are read whole before they are understood. Uploads
/// aren't among them, which go to the disk as they come. One token may have four of the largest bodies that there may be. Whatever
/// hosts and assimilators send, users have a quarter.
const LARGE: Limits = Limits { all: 256 << 20, machines: 192 << 20, token: 64 << 20 };

/// Most bytes in memory.
#[derive(Debug, Clone, Copy)]
struct Limits {
    all: u64,
    /// Of everybody who isn't a user.
    machines: u64,
    token: u64,
}

/// The sender of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sender {
    /// The hash of the token.
    pub(crate) token: Digest,
    /// Whether a person sends it. Hosts, assimilators and machines that enrol are many, and are owned by many.
    pub(crate) is_user: bool,
}

#[derive(Debug)]
struct Held {
    limits: Limits,
    all: u64,
    machines: u64,
    /// Tokens without a body in memory aren't in it.
    by_token: BTreeMap<Digest, u64>,
}

impl Held {
    const fn within(limits: Limits) -> Self {
        Self { limits, all: 0, machines: 0, by_token: BTreeMap::new() }
    }

    fn take(&mut self, sender: Sender, more: u64) -> bool {
        let all = self.all.saturating_add(more);
        let machines = self.machines.saturating_add(if sender.is_user { 0 } else { more });
        let own = self.by_token.get(&sender.token).copied().unwrap_or_default();
        let own = own.saturating_add(more);
        let Limits { all: most, machines: most_of_machines, token: most_of_token } = self.limits;
        if all > most || machines > most_of_machines || own > most_of_token {
            return false;
        }
        (self.all, self.machines) = (all, machines);
        if more > 0 {
            self.by_token.insert(sender.token, own);
        }
        true
    }

    fn give_back(&mut self, sender: Sender, bytes: u64) {
        self.all = self.all.saturating_sub(bytes);
        if !sender.is_user {
            self.machines = self.machines.saturating_sub(bytes);
        }
        if let Entry::Occupied(mut own) = self.by_token.entry(sender.token) {
            *own.get_mut() = own.get().saturating_sub(bytes);
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

#[derive(Debug)]
struct Pools {
    small: Held,
    large: Held,
}

/// The bytes of bodies in memory.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    pools: Mutex<Pools>,
    traffic: Arc<Traffic>,
}

impl BodyBudget {
    pub(crate) fn new(traffic: Arc<Traffic>) -> Self {
        let pools = Pools { small: Held::within(SMALL), large: Held::within(LARGE) };
        Self { pools: Mutex::new(pools), traffic }
    }

    /// The memory of one body, which has nothing yet.
    pub(crate) fn body(self: &Arc<Self>, sender: Sender) -> BodyMemory {
        BodyMemory { budget: Arc::clone(self), sender, small: 0, large: 0 }
    }
}

/// The bytes of one body, until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    budget: Arc<BodyBudget>,
    sender: Sender,
    /// The bytes that are counted among the small ones.
    small: u64,
    /// And among the rest.
    large: u64,
}

impl BodyMemory {
    /// Counts bytes that came; false where there is no room for them.
    pub(crate) fn take(&mut self, more: usize) -> bool {
        let more = to_u64(more);
        let is_taken = self.count(more);
        if is_taken {
            self.budget.traffic.body_held(more);
        } else {
            self.budget.traffic.refused(Refusal::Bodies);
        }
        is_taken
    }

    fn count(&mut self, more: u64) -> bool {
        let mut pools = self.budget.pools.lock();
        let first = more.min(SMALL_BODY_BYTES.saturating_sub(self.small));
        let first = if pools.small.take(self.sender, first) { first } else { 0 };
        let rest = more.saturating_sub(first);
        if !pools.large.take(self.sender, rest) {
            pools.small.give_back(self.sender, first);
            return false;
        }
        self.small = self.small.saturating_add(first);
        self.large = self.large.saturating_add(rest);
        true
    }
}

impl Drop for BodyMemory {
    fn drop(&mut self) {
        let mut pools = self.budget.pools.lock();
        pools.small.give_back(self.sender, self.small);
        pools.large.give_back(self.sender, self.large);
        self.budget.traffic.body_released(self.small.saturating_add(self.large));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 16 << 20;

    fn sender(name: u8, is_user: bool) -> Sender {
        Sender { token: Digest::of(&[name]), is_user }
    }

    #[test]
    fn one_token_takes_a_part_of_the_memory_and_all_of_them_no_more_than_there_is() {
        let traffic = Arc::<Traffic>::default();
        let budget = Arc::new(BodyBudget::new(Arc::clone(&traffic)));
        let mut bodies = Vec::new();
        let mut taken = 0;
        for name in 0..10 {
            for _ in 0..10 {
                let mut body = budget.body(sender(name, true));
                taken += u64::from(body.take(PIECE));
                bodies.push(body);
            }
            let most = 4 * (u64::from(name) + 1);
            assert_eq!(taken, most.min(16), "after {name}");
        }
        assert_eq!(traffic.totals().refused.bodies, 100 - 16);
        // One body's memory comes back with it, and nothing is kept of a token.
        drop(bodies);
        let pools = budget.pools.lock();
        for held in [&pools.small, &pools.large] {
            assert_eq!((held.all, held.machines, held.by_token.len()), (0, 0, 0));
        }
        assert_eq!(traffic.totals().body_bytes, 0);
    }

    #[test]
    fn machines_leave_memory_for_users_and_for_small_bodies() {
        let budget = Arc::new(BodyBudget::new(Arc::default()));
        let mut bodies = Vec::new();
        let mut take = |name, is_user, bytes| {
            let mut body = budget.body(sender(name, is_user));
            let is_taken = body.take(bytes);
            bodies.push(body);
            is_taken
        };
        let large = (0..40).filter(|number| take(number % 10, false, PIECE)).count();
        assert_eq!(large, 12);
        assert!(take(20, true, PIECE), "a user's");
        assert!(!take(21, false, PIECE));
        let small = usize::try_from(SMALL_BODY_BYTES).unwrap();
        for _ in 0..8 {
            assert!(take(21, false, small), "a heartbeat's");
        }
        // One token's small bodies are no more than its part, and the little that the large ones have left.
        let left = 12;
        let more = (0..100).filter(|_| take(21, false, small)).count();
        assert_eq!(8 + more, 16 + left);
        assert!(take(22, false, small));
    }

    #[test]
    fn a_body_that_comes_in_pieces_has_one_small_part() {
        let budget = Arc::new(BodyBudget::new(Arc::default()));
        let mut body = budget.body(sender(1, false));
        for _ in 0..1_000 {
            assert!(body.take(1_000));
        }
        assert_eq!((body.small, body.large), (SMALL_BODY_BYTES, 1_000_000 - SMALL_BODY_BYTES));
    }
}
