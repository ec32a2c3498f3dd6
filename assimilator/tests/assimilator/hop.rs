//! Uploads that replace their trial's version.

use crate::world::{LEASE, World, checkpoint, hop, is_held, with_first};
use sojourn_assimilator::{Fault, NewVersion, Offer, Outcome, QueueError, Step, Workers};
use sojourn_blobs::UploadName;
use sojourn_protocol::{
    digest::BlobRef,
    ids::{TrialId, Version},
    unit::{Base, Hop},
};
use std::sync::atomic::Ordering;

const fn made(version: u32, checkpoint: BlobRef) -> NewVersion {
    NewVersion { version: Version(version), checkpoint, merged: None }
}

#[test]
fn a_valid_upload_becomes_a_blob_and_the_next_version() {
    let world = World::new();
    let first = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&first, &checkpoint(&first, 3, 4), None);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    assert_eq!(world.assimilator().step(), Step::Nothing);
    assert_eq!(world.offers.try_recv().unwrap(), Ok((LEASE, made(1, blob))));
    assert_eq!(world.stored(), [blob]);

    // On a stored base, by a thread that is woken.
    let workers = Workers::start(1..=1, world.assimilator()).unwrap();
    let second = hop(Base::Checkpoint { version: Version(1), blob });
    let next = world.upload(&second, &checkpoint(&second, 3, 5), None);
    workers.notify();
    assert_eq!(world.offers.recv().unwrap(), Ok((LEASE, made(2, next))));
    drop(workers);
}

#[test]
fn a_crash_before_or_after_the_offer_is_harmless() {
    let mut world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    world.queue.answer = Err(QueueError("gone".to_owned()));
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    assert_eq!(world.assimilator().step(), Step::Failed);
    // Published, but the offer got no answer: all of it again.
    world.queue.answer = Ok(Offer::Taken);
    world.unit(&hop, blob, None);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    // The offer had been taken, and the answer was lost.
    world.queue.answer = Ok(Offer::Stale);
    world.unit(&hop, blob, None);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Stale));
    assert_eq!(world.stored(), [blob]);
}

#[test]
fn an_invalid_upload_is_rejected_with_the_reason_and_not_stored() {
    let first = hop(Base::Initial { seed: 3 });
    let world = World::new();
    world.upload(&first, b"no safetensors at all", None);
    assert!(world.rejected(Fault::Host).starts_with("the checkpoint can't be read"));

    let world = World::new();
    world.upload(&first, &checkpoint(&first, 2, 4), None);
    let reason = world.rejected(Fault::Host);
    assert!(reason.contains("is 3, expected 2") || reason.contains("batch"), "{reason}");

    let world = World::new();
    let other = Hop { trial: TrialId(1), ..first.clone() };
    world.upload(&first, &checkpoint(&other, 3, 4), None);
    assert_eq!(world.rejected(Fault::Host), "a checkpoint of trial 1, expected trial 0");

    let world = World::new();
    world.upload(&first, &with_first(checkpoint(&first, 3, 4), f32::NAN), None);
    assert!(world.rejected(Fault::Host).contains("non-finite"));
}

#[test]
fn a_lost_upload_is_the_servers_fault() {
    let world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    let path = world.uploads.complete(UploadName::Lease(LEASE), blob).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(world.rejected(Fault::Server).starts_with("the server lost the upload"));

    world.uploads.remove(UploadName::Lease(LEASE)).unwrap();
    world.unit(&hop, blob, None);
    assert!(world.rejected(Fault::Server).starts_with("the server lost the upload"));
}

#[test]
fn a_worker_tries_again_after_an_error_without_notification() {
    let world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    world.queue.fails.store(2, Ordering::SeqCst);
    let workers = Workers::start(1..=1, world.assimilator()).unwrap();
    assert_eq!(world.offers.recv().unwrap(), Ok((LEASE, made(1, blob))));
    drop(workers);
}

#[test]
fn a_blob_is_held_until_its_offer_is_answered() {
    let world = World::new();
    let hop = hop(Base::Initial { seed: 3 });
    let blob = world.upload(&hop, &checkpoint(&hop, 3, 4), None);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    // Whoever wanted to delete that very blob while the offer was made had to wait.
    assert_eq!(*world.queue.held.lock().unwrap(), [true]);
    assert!(!is_held(&world.blobs, blob.sha256));
}
