//! Units are renewed while they are worked at, offered again where what was published is gone, and done by as many
//! threads as there is work for.

use crate::world::{LEASE, World, checkpoint, hop};
use sojourn_assimilator::{Assimilator, Offer, Outcome, SourceError, Step, UploadSource, Workers};
use sojourn_blobs::{HashedBytes, Uploads};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{ClaimId, LeaseId},
    time::Millis,
    unit::Base,
};
use std::{
    fmt,
    sync::{Arc, Barrier},
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
