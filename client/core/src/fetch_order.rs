//! Which blob is fetched when. Blobs that units begin with come at once. Of a unit's later shards one is fetched at a
//! time, in the order of its hops. Shards that no unit needs yet are fetched one at a time, only into free room, and
//! only while no unit waits for a blob, and only where the month's bytes that no unit has set aside suffice for them. A later
//! shard isn't fetched where it would take the disk past what the owner lends.

use crate::{
    action::{Action, BlobClass, Priority},
    event::TransferView,
    needs::{Need, Rest},
};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::collections::{BTreeMap, VecDeque};

/// The blobs that this host's units need, and those that it fetches ahead.
#[derive(Debug, Clone, Default)]
pub(crate) struct FetchOrder {
    needed: BTreeMap<Digest, Needed>,
    /// Blobs to fetch ahead, with the number of the answer that named each.
    ahead: VecDeque<(u32, BlobRef)>,
    fetching_ahead: Option<(u32, BlobRef)>,
    answers: u32,
}

#[derive(Debug, Clone, Copy)]
struct Needed {
    /// Leases that need it.
    leases: u32,
    bytes: u64,
    state: BlobState,
    /// The blob was here, so that it has to be let go.
    is_pinned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobState {
    NotAsked,
    /// Asked for, while it was on the disk or not.
    Asked {
        was_missing: bool,
    },
    Here,
}

impl FetchOrder {
    /// A lease needs the blob from now on.
    pub(crate) fn hold(&mut self, blob: &BlobRef) {
        let BlobRef { sha256, bytes } = *blob;
        let new = Needed { leases: 0, bytes, state: BlobState::NotAsked, is_pinned: false };
        self.needed.entry(sha256).or_insert(new).leases += 1;
    }

    /// Bytes of the blobs that are here for leases, or on their way.
    fn bytes(&self) -> u64 {
        let asked = self.needed.values().filter(|needed| needed.state != BlobState::NotAsked);
        asked.map(|needed| needed.bytes).fold(0, u64::saturating_add)
    }

    /// Is a blob that a lease holds here, or on its way?
    pub(crate) fn is_asked(&self, blob: &Digest) -> bool {
        self.needed.get(blob).is_some_and(|needed| needed.state != BlobState::NotAsked)
    }

    /// A lease needs the blob no more.
    pub(crate) fn let_go(&mut self, blob: &Digest, out: &mut Vec<Action>) {
        let Some(needed) = self.needed.get_mut(blob) else { return };
        needed.leases -= 1;
        if needed.leases > 0 {
            return;
        }
        if matches!(needed.state, BlobState::Asked { .. }) {
            out.push(Action::CancelFetch(*blob));
        }
        if needed.is_pinned {
            out.push(Action::Unpin(*blob));
        }
        self.needed.remove(blob);
    }

    /// Is it on the disk, and stays there?
    pub(crate) fn is_here(&self, blob: &Digest) -> bool {
        self.needed.get(blob).is_some_and(|needed| needed.state == BlobState::Here)
    }

    /// Asks for a blob that a lease holds, where nobody has.
    pub(crate) fn ask(
        &mut self,
        need: Need,
        priority: Priority,
        view: &impl TransferView,
        out: &mut Vec<Action>,
    ) {
        let was_missing = !view.has(&need.blob.sha256);
        let Some(needed) = self.needed.get_mut(&need.blob.sha256) else { return };
        match needed.state {
            BlobState::Asked { .. } => return,
            BlobState::Here if !was_missing => return,
            // Somebody may have deleted what was here.
            BlobState::NotAsked | BlobState::Here => {}
        }
        needed.state = BlobState::Asked { was_missing };
        if was_missing && let Some(ahead) = self.fetching_ahead.take() {
            out.push(Action::CancelFetch(ahead.1.sha256));
            self.ahead.push_front(ahead);
        }
        out.push(Action::Fetch(need.blob, need.class, priority));
    }

    /// Asks for the next of a unit's later shards that isn't here. Where the disk that is lent has no room for it beside
    /// what leases need, no more of them come.
    pub(crate) fn ask_next(
        &mut self,
        rest: &mut VecDeque<Need>,
        view: &impl TransferView,
        out: &mut Vec<Action>,
    ) -> Rest {
        while let Some(need) = rest.pop_front() {
            if self.is_here(&need.blob.sha256) {
                continue;
            }
            let is_asked = self.is_asked(&need.blob.sha256);
            if !is_asked && self.bytes().saturating_add(need.blob.bytes) > view.capacity_for_units()
            {
                return Rest::Over;
            }
            self.ask(need, Priority::Later, view, out);
            return Rest::Coming(need.blob.sha256, std::mem::take(rest));
        }
        Rest::Over
    }

    /// A blob has come. False where no lease needs it.
    pub(crate) fn ready(&mut self, blob: &Digest, out: &mut Vec<Action>) -> bool {
        if let Some(needed) = self.needed.get_mut(blob) {
            (needed.state, needed.is_pinned) = (BlobState::Here, true);
            return true;
        }
        self.fetching_ahead = self.fetching_ahead.filter(|(_, ahead)| ahead.sha256 != *blob);
        out.push(Action::Unpin(*blob));
        false
    }

    /// A blob can't be had. False where no lease needs it.
    pub(crate) fn failed(&mut self, blob: &Digest) -> bool {
        if let Some(needed) = self.needed.get_mut(blob) {
            needed.state = BlobState::NotAsked;
            return true;
        }
        // Blobs that the same answer named after it would hardly fare better. A unit that needs one says why.
        if let Some((answer, _)) = self.fetching_ahead.take_if(|(_, ahead)| ahead.sha256 == *blob) {
            self.ahead.retain(|(other, _)| *other != answer);
        }
        false
    }

    /// The server wants these to be fetched ahead. False where it said so before, or none of them can be. `budget`: bytes
    /// that may be fetched so.
    pub(crate) fn fetch_ahead(
        &mut self,
        blobs: Vec<BlobRef>,
        budget: u64,
        view: &impl TransferView,
    ) -> bool {
        self.answers = self.answers.wrapping_add(1);
        let is_new = blobs.iter().any(|blob| {
            let mut ahead = self.ahead.iter().chain(&self.fetching_ahead);
            let is_known = self.needed.contains_key(&blob.sha256)
                || ahead.any(|(_, known)| known.sha256 == blob.sha256);
            !is_known && can_come(blob, budget, view)
        });
        self.ahead.extend(blobs.into_iter().map(|blob| (self.answers, blob)));
        is_new
    }

    /// Nothing is fetched ahead any more.
    pub(crate) fn stop_ahead(&mut self, out: &mut Vec<Action>) {
        self.ahead.clear();
        if let Some((_, blob)) = self.fetching_ahead.take() {
            out.push(Action::CancelFetch(blob.sha256));
        }
    }

    /// Bytes that have yet to come of the blob that is fetched ahead.
    pub(crate) fn rest_ahead(&self, view: &impl TransferView) -> u64 {
        let rest =
            |(_, blob): &(u32, BlobRef)| blob.bytes.saturating_sub(view.fetched(&blob.sha256));
        self.fetching_ahead.as_ref().map_or(0, rest)
    }

    /// Fetches the next blob ahead, where no unit waits for one. `budget`: bytes that may be fetched so.
    pub(crate) fn advance(&mut self, budget: u64, view: &impl TransferView, out: &mut Vec<Action>) {
        if self.fetching_ahead.is_some() || self.ahead.is_empty() {
            return;
        }
        let waits =
            |needed: &Needed| matches!(needed.state, BlobState::Asked { was_missing: true });
        if self.needed.values().any(waits) {
            return;
        }
        while let Some(ahead) = self.ahead.pop_front() {
            let blob = ahead.1;
            if !self.needed.contains_key(&blob.sha256) && can_come(&blob, budget, view) {
                out.push(Action::Fetch(blob, BlobClass::Data, Priority::Prefetch));
                self.fetching_ahead = Some(ahead);
                return;
            }
        }
    }
}

/// May a blob be fetched ahead: isn't it here, and is there room for it, on the disk and among these bytes of the month?
fn can_come(blob: &BlobRef, budget: u64, view: &impl TransferView) -> bool {
    !view.has(&blob.sha256) && view.has_room(blob.bytes) && blob.bytes <= budget
}
