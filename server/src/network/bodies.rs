//! How much memory the bodies of requests may take: of all requests together, and of those with one token.
//!
//! A body is counted as it comes, not as it is announced: whoever holds memory has sent as many bytes.

use crate::traffic::{Refusal, Traffic};
use parking_lot::Mutex;
use sojourn_protocol::{digest::Digest, quantity::to_u64};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// Most bytes of bodies that are held in memory at one time: of requests that are read whole before they are understood.
/// Uploads aren't among them, which go to the disk as they come.
pub(crate) const MAX_BODY_BYTES_IN_FLIGHT: u64 = 256 << 20;
/// And of one token: four of the largest bodies that there may be.
pub(crate) const MAX_BODY_BYTES_PER_TOKEN: u64 = 64 << 20;

#[derive(Debug, Default)]
struct Held {
    all: u64,
    /// Tokens without a body in memory aren't in it.
    by_token: BTreeMap<Digest, u64>,
}

/// The bytes of bodies in memory.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    held: Mutex<Held>,
    traffic: Arc<Traffic>,
}

impl BodyBudget {
    pub(crate) fn new(traffic: Arc<Traffic>) -> Self {
        Self { held: Mutex::default(), traffic }
    }

    /// The share of one body, which has nothing yet.
    pub(crate) fn share(self: &Arc<Self>, token: Digest) -> BodyShare {
        BodyShare { budget: Arc::clone(self), token, bytes: 0 }
    }

    fn take(&self, token: Digest, more: u64) -> bool {
        let mut held = self.held.lock();
        let all = held.all.saturating_add(more);
        let own = held.by_token.get(&token).copied().unwrap_or_default().saturating_add(more);
        if all > MAX_BODY_BYTES_IN_FLIGHT || own > MAX_BODY_BYTES_PER_TOKEN {
            return false;
        }
        held.all = all;
        held.by_token.insert(token, own);
        self.traffic.body_held(more);
        true
    }

    fn give_back(&self, token: Digest, bytes: u64) {
        let mut held = self.held.lock();
        held.all = held.all.saturating_sub(bytes);
        self.traffic.body_released(bytes);
        if let Entry::Occupied(mut own) = held.by_token.entry(token) {
            *own.get_mut() = own.get().saturating_sub(bytes);
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

/// The bytes of one body, until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyShare {
    budget: Arc<BodyBudget>,
    token: Digest,
    bytes: u64,
}

impl BodyShare {
    /// Counts bytes that came; false where there is no room for them.
    pub(crate) fn take(&mut self, more: usize) -> bool {
        let more = to_u64(more);
        let is_taken = self.budget.take(self.token, more);
        if is_taken {
            self.bytes += more;
        } else {
            self.budget.traffic.refused(Refusal::Bodies);
        }
        is_taken
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(self.token, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 16 << 20;

    #[test]
    fn one_token_takes_a_part_of_the_memory_and_all_of_them_no_more_than_there_is() {
        let traffic = Arc::<Traffic>::default();
        let budget = Arc::new(BodyBudget::new(Arc::clone(&traffic)));
        let token = |name: u8| Digest::of(&[name]);
        let mut shares = Vec::new();
        let mut taken = 0;
        for name in 0..10 {
            for _ in 0..10 {
                let mut share = budget.share(token(name));
                taken += u64::from(share.take(PIECE));
                shares.push(share);
            }
            let most = 4 * (u64::from(name) + 1);
            assert_eq!(taken, most.min(16), "after {name}");
        }
        assert_eq!(traffic.totals().refused.bodies, 100 - 16);
        // One body's memory comes back with it, and nothing is kept of a token.
        drop(shares);
        let held = budget.held.lock();
        assert_eq!((held.all, held.by_token.len()), (0, 0));
    }
}
