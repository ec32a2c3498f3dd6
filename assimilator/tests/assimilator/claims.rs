//! Units are renewed while they are worked at, offered again where what was published is gone, and done by as many
//! threads as there is work for.

use crate::world::{LEASE, Remembers, World, checkpoint, hop};
use sojourn_assimilator::{
    Assimilator, Fault, NewVersion, Offer, Outcome, Queue, QueueError, SourceError, Step, Unit,
    UploadSource, Work, Workers,
};
use sojourn_blobs::{HashedBytes, Uploads};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ClaimId, LeaseId},
    time::Millis,
    unit::Base,
};
use std::{
    fmt,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// Uploads that are read when something has happened.
struct Waits<W> {
    uploads: Uploads,
    until: W,
}

impl<W> fmt::Debug for Waits<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waits")
    }
}

impl<W: Fn() + Send + Sync + 'static> UploadSource for Waits<W> {
    fn read(&self, lease: LeaseId, checkpoint: BlobRef) -> Result<HashedBytes, SourceError> {
        (self.until)();
        UploadSource::read(&self.uploads, lease, checkpoint)
    }
}

#[test]
fn a_claim_is_renewed_while_its_unit_is_assimilated() {
    let mut world = World::new();
    world.queue.term = Millis(3);
    let renewed = Arc::clone(&world.queue.renewed);
    let until = move || {
        while renewed.lock().unwrap().len() < 3 {
            thread::yield_now();
        }
    };
    let hop = hop(Base::Initial { seed: 3 });
    world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    let uploads = Waits { uploads: world.uploads.clone(), until };
    let (queue, blobs) = (world.queue.clone(), world.blobs.clone());
    let assimilator = Assimilator::new(queue, uploads, blobs, world.runtime.handle().clone());
    assert_eq!(assimilator.step(), Step::Done(Outcome::Assimilated));
    let renewed = world.queue.renewed.lock().unwrap().clone();
    assert!(renewed.iter().all(|one| *one == (LEASE, ClaimId(8))), "{renewed:?}");
}

#[test]
fn a_version_deleted_before_its_offer_is_published_and_offered_again() {
    let world = World::new();
    world.queue.first_answers.lock().unwrap().extend([Offer::Unpublished; 2]);
    let first = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&first, &checkpoint(&first, 3, 4), None);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    assert_eq!(world.offers.try_iter().count(), 3);
    assert_eq!(world.stored(), [blob]);
    assert_eq!(*world.queue.held.lock().unwrap(), [true; 3]);

    // A store that keeps nothing: not for ever.
    world.queue.first_answers.lock().unwrap().extend([Offer::Unpublished; 9]);
    world.unit(&first, blob, None);
    assert_eq!(world.assimilator().step(), Step::Failed);
}

#[test]
fn small_results_are_assimilated_at_once_beside_one_thread() {
    const AT_ONCE: usize = 4;
    let world = World::new();
    let all = Arc::new(Barrier::new(AT_ONCE));
    let meet = Arc::clone(&all);
    let until = move || {
        meet.wait();
    };
    let uploads = Waits { uploads: world.uploads.clone(), until };
    let (queue, blobs) = (world.queue.clone(), world.blobs.clone());
    let assimilator = Assimilator::new(queue, uploads, blobs, world.runtime.handle().clone())
        .with_small_results(AT_ONCE);
    let hop = hop(Base::Initial { seed: 3 });
    for _ in 0..AT_ONCE {
        // Each is read only while the others are, too.
        world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    }
    let workers = Workers::start(1..=1, assimilator).unwrap();
    for _ in 0..AT_ONCE {
        assert!(world.offers.recv().unwrap().is_ok());
    }
    assert_eq!(workers.running(), 1);
    workers.stop();
    assert!(world.queue.held.lock().unwrap().iter().all(|held| *held));
}

#[test]
fn one_small_result_is_followed_by_the_next_without_a_thread() {
    let world = World::new();
    let queue = OnlyOnce { queue: world.queue.clone(), taken: AtomicBool::new(false) };
    let (uploads, blobs) = (world.uploads.clone(), world.blobs.clone());
    let assimilator = Assimilator::new(queue, uploads, blobs, world.runtime.handle().clone())
        .with_small_results(1);
    let hop = hop(Base::Initial { seed: 3 });
    for _ in 0..3 {
        world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    }
    let workers = Workers::start(1..=1, assimilator).unwrap();
    for _ in 0..3 {
        assert!(world.offers.recv().unwrap().is_ok());
    }
    workers.stop();
}

/// A queue that gives a thread one unit.
struct OnlyOnce {
    queue: Remembers,
    taken: AtomicBool,
}

impl Queue for OnlyOnce {
    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError> {
        let is_first = !self.taken.swap(true, Ordering::SeqCst);
        if is_first { self.queue.take(losses) } else { Ok(None) }
    }

    fn take_small(&self, max_bytes: u64) -> Result<Option<Box<Unit>>, QueueError> {
        self.queue.take_small(max_bytes)
    }

    fn renew(&self, lease: LeaseId, claim: ClaimId) -> Result<Offer, QueueError> {
        self.queue.renew(lease, claim)
    }

    fn assimilated(&self, lease: LeaseId, made: NewVersion) -> Result<Offer, QueueError> {
        self.queue.assimilated(lease, made)
    }

    fn lost(&self, lease: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        self.queue.lost(lease, blob)
    }

    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        self.queue.rejected(lease, fault, reason)
    }
}

#[test]
fn a_small_result_that_fails_has_a_thread_pause_and_is_done_again() {
    let world = World::new();
    let assimilator = world.assimilator().with_small_results(1);
    let hop = hop(Base::Initial { seed: 3 });
    world.queue.first_answers.lock().unwrap().extend([Offer::Unpublished; 3]);
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    let workers = Workers::start(1..=1, assimilator).unwrap();
    // Three offers of one unit fail. The queue hands it out again.
    for _ in 0..3 {
        world.offers.recv().unwrap().unwrap();
    }
    world.unit(&hop, blob, None);
    workers.notify();
    assert!(world.offers.recv().unwrap().is_ok());
    workers.stop();
    assert_eq!(world.stored(), [blob]);
}

#[test]
fn a_second_unit_starts_a_second_thread() {
    let world = World::new();
    let both = Arc::new(Barrier::new(2));
    let meet = Arc::clone(&both);
    let until = move || {
        meet.wait();
    };
    let uploads = Waits { uploads: world.uploads.clone(), until };
    let (queue, blobs) = (world.queue.clone(), world.blobs.clone());
    let assimilator = Assimilator::new(queue, uploads, blobs, world.runtime.handle().clone());
    let workers = Workers::start(0..=2, assimilator).unwrap();
    assert_eq!(workers.running(), 0);
    let hop = hop(Base::Initial { seed: 3 });
    for _ in 0..2 {
        // Each is read only while the other is, too.
        world.upload(&hop, &checkpoint(&hop, 3, 4), None);
        workers.notify();
    }
    for _ in 0..2 {
        assert!(world.offers.recv().unwrap().is_ok());
    }
    assert_eq!(workers.running(), 2);
}
