//! Uploads that are merged into their trial's version.

use crate::world::{LEASE, World, blob_of, checkpoint, hop, is_held, with_first};
use sojourn_assimilator::{
    Contents, Fault, LossError, Losses, Merged, NewVersion, Offer, Outcome, QueueError, Step,
};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint, weights_parameters};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::JobId,
    manifest::Shard,
    position::Position,
    spec::{MergeSpec, OptimizerMerge, RuleSpec},
    unit::{Base, Canary, Evaluation, Flush, Hop, Merge, Unit},
};
use sojourn_rules::{Arrival, Merger, Update};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// A trial that merges, as its core and its hosts know it.
struct Trial {
    spec: MergeSpec,
    /// All its versions, and their bytes.
    versions: Vec<(Base, Vec<u8>)>,
    state: Option<Vec<u8>>,
}

/// A result of it, and what has to be made of that.
struct Arriving {
    hop: Hop,
    upload: Vec<u8>,
    merge: Merge,
    expected: sojourn_rules::Made,
}

impl Trial {
    fn new(rule: RuleSpec, first: Base) -> Self {
        let spec = MergeSpec { rule, optimizer: OptimizerMerge::Average, canary: None };
        let initial = initial_checkpoint(&hop(first).context, 3, Lineage::initial(3)).unwrap();
        Self { spec, versions: vec![(first, initial)], state: None }
    }

    /// A result whose base is so many versions old; what is made of it is the trial's next version.
    fn arrive(&mut self, staleness: usize, seed: u64, flush: Flush) -> Arriving {
        let at = self.versions.len() - 1;
        let ((base, from), (current, now)) = (&self.versions[at - staleness], &self.versions[at]);
        let hop = hop(*base);
        let step = 3 * (at as u64 - staleness as u64);
        let hop = Hop { start: Position { step, ..hop.start }, ..hop };
        let upload = checkpoint(&hop, 3, seed);
        let merge = Merge {
            spec: self.spec,
            current: *current,
            state: self.state.as_deref().map(blob_of),
            staleness: staleness as u64,
            in_flight: 3,
            position: Position { step: 3 * (at as u64 + 1), ..hop.position_at(3) },
            flush,
            canary: None,
        };
        let layout = CheckpointLayout::of(&hop.context).unwrap();
        let update = Update {
            base: from,
            current: now,
            returned: &upload,
            state: self.state.as_deref(),
            version: current.version(),
            arrival: Arrival { staleness: merge.staleness, epoch: 1, in_flight: 3, flush },
            position: merge.position,
        };
        let expected = Merger::new(&self.spec, layout).unwrap().merge(&update).unwrap().made;
        let (version, blob) = (expected.version, blob_of(&expected.checkpoint));
        self.versions.push((Base::Checkpoint { version, blob }, expected.checkpoint.clone()));
        self.state = Some(expected.state.clone());
        Arriving { hop, upload, merge, expected }
    }
}

impl Arriving {
    /// Stores the upload, and puts its assimilation into the queue.
    fn enter(&self, world: &World) {
        world.upload(&self.hop, &self.upload, Some(self.merge.clone()));
    }

    fn made(&self) -> NewVersion {
        NewVersion {
            version: self.expected.version,
            checkpoint: blob_of(&self.expected.checkpoint),
            merged: Some(Merged {
                state: blob_of(&self.expected.state),
                flush: self.merge.flush,
                in_flight: self.merge.in_flight,
            }),
        }
    }

    /// The blobs of the version that is made, in the store's order.
    fn blobs(&self) -> Vec<BlobRef> {
        let NewVersion { checkpoint, merged, .. } = self.made();
        let mut blobs = vec![checkpoint, merged.unwrap().state];
        blobs.sort_unstable();
        blobs
    }
}

#[test]
fn a_merged_version_equals_that_of_the_rules() {
    // Staleness, and whether it is the last for now.
    let course = [
        (0, Flush::ByRule),
        (1, Flush::ByRule),
        (0, Flush::Now),
        (2, Flush::ByRule),
        (0, Flush::ByRule),
    ];
    // In one piece, and each tensor by itself.
    for (rule, split_over) in
        RuleSpec::ALL.into_iter().flat_map(|rule| [(rule, 1 << 20), (rule, 1)])
    {
        let (one, many) = (World::new(), World::new());
        let initial =
            initial_checkpoint(&hop(Base::Initial { seed: 3 }).context, 3, Lineage::initial(3));
        let parameters = weights_parameters(&initial.unwrap()).unwrap();
        let given = Base::InitialWeights { seed: 3, parameters: many.publish(&parameters) };
        for (world, first) in [(&one, Base::Initial { seed: 3 }), (&many, given)] {
            let mut trial = Trial::new(rule, first);
            let keeps = world.assimilator().with_split_over(split_over);
            for (seed, (staleness, flush)) in (10..).zip(course) {
                let arriving = trial.arrive(staleness, seed, flush);
                arriving.enter(world);
                // In one world what was made last is still in memory, in the other all is read.
                let read = world.assimilator().with_split_over(split_over);
                let assimilator = if first == given { &read } else { &keeps };
                assert_eq!(assimilator.step(), Step::Done(Outcome::Assimilated));
                assert_eq!(world.offers.try_recv().unwrap(), Ok((LEASE, arriving.made())));
                assert!(arriving.blobs().iter().all(|blob| world.stored().contains(blob)));
                for (blob, bytes) in [
                    (arriving.made().checkpoint, &arriving.expected.checkpoint),
                    (arriving.made().merged.unwrap().state, &arriving.expected.state),
                ] {
                    let stored = world.runtime.block_on(world.blobs.bytes(blob.sha256));
                    assert_eq!(stored.unwrap(), bytes);
                    assert_eq!(world.path(blob).exists(), split_over > 1, "it isn't in one piece");
                }
            }
        }
    }
}

/// A merge is made again after a crash has left files in the store, or after its answer wasn't heard.
#[test]
fn a_repeated_merge_gives_the_same_version() {
    for rule in RuleSpec::ALL {
        let mut trial = Trial::new(rule, Base::Initial { seed: 3 });
        let first = trial.arrive(0, 10, Flush::ByRule);
        let second = trial.arrive(1, 11, Flush::Now);
        let files = [&second.expected.checkpoint, &second.expected.state];
        for left in [&files[..0], &files[..1], &files[1..], &files[..]] {
            let mut world = World::new();
            let before = [&first.expected.checkpoint, &first.expected.state];
            before.into_iter().chain(left.iter().copied()).for_each(|file| {
                world.publish(file);
            });
            let mut all = [first.blobs(), second.blobs()].concat();
            all.sort_unstable();
            let mut step = |answer| {
                world.queue.answer = answer;
                second.enter(&world);
                let step = world.assimilator().step();
                assert_eq!(world.offers.try_recv().unwrap(), Ok((LEASE, second.made())));
                assert_eq!(world.stored(), all);
                step
            };
            assert_eq!(step(Err(QueueError("gone".to_owned()))), Step::Failed);
            assert_eq!(step(Ok(Offer::Taken)), Step::Done(Outcome::Assimilated));
            assert_eq!(step(Ok(Offer::Stale)), Step::Done(Outcome::Stale));
        }
    }
}

#[test]
fn an_impossible_update_is_rejected_and_not_stored() {
    let world = World::new();
    let mut trial = Trial::new(RuleSpec::DELTA, Base::Initial { seed: 3 });
    let arriving = trial.arrive(0, 10, Flush::ByRule);
    let merge = || Some(arriving.merge.clone());
    let vast = with_first(arriving.upload.clone(), f32::MAX);
    world.upload(&arriving.hop, &vast, merge());
    assert!(world.rejected(Fault::Host).starts_with("the change has the norm"));
    world.upload(&arriving.hop, &vast, merge());
    let by_ranges = world.assimilator().with_split_over(1).step();
    let Step::Done(Outcome::Rejected(reason)) = by_ranges else { panic!("{by_ranges:?}") };
    assert!(reason.starts_with("the change has the norm"), "{reason}");
    assert_eq!(world.offers.try_recv().unwrap(), Err((Fault::Host, reason)));
    assert_eq!(world.stored(), []);
    let nan = with_first(arriving.upload.clone(), f32::NAN);
    world.upload(&arriving.hop, &nan, merge());
    assert!(world.rejected(Fault::Host).contains("non-finite"));
    world.upload(&arriving.hop, b"no safetensors at all", merge());
    assert!(world.rejected(Fault::Host).starts_with("the checkpoint can't be read"));
}

/// Losses by the digests of checkpoints, and what was asked for.
#[derive(Debug, Clone, Default)]
struct Known {
    losses: Arc<Mutex<BTreeMap<Digest, f64>>>,
    asked: Arc<Mutex<Vec<Digest>>>,
}

impl Losses for Known {
    fn loss(&self, evaluation: Evaluation, files: &[Contents<'_>]) -> Result<f64, LossError> {
        assert!(files.iter().all(|file| file.blob == blob_of(file.bytes)));
        let of = evaluation.checkpoint;
        let named: Vec<BlobRef> = files.iter().map(|file| file.blob).collect();
        assert_eq!(named, Unit::Evaluate(evaluation).blobs());
        self.asked.lock().unwrap().push(of.sha256);
        let loss = self.losses.lock().unwrap().get(&of.sha256).copied();
        loss.ok_or_else(|| LossError::Failed("out of memory".into()))
    }
}

#[test]
fn a_result_with_a_far_higher_loss_is_rejected() {
    let world = World::new();
    let known = Known::default();
    let assimilator = world.assimilator().with_losses(known.clone());
    let mut trial = Trial::new(RuleSpec::DELTA, Base::Initial { seed: 3 });
    let shard = Shard { blob: world.publish(b"held-out rows"), rows: 3 };
    let mut arriving = trial.arrive(0, 10, Flush::ByRule);
    arriving.merge.canary = Some(Canary { shard, most: 2.0 });
    let current = blob_of(&trial.versions[0].1).sha256;
    let result = blob_of(&arriving.upload).sha256;
    let losses = |of_current: f64, of_result: Option<f64>| -> BTreeMap<Digest, f64> {
        let of_result = of_result.map(|loss| (result, loss));
        of_result.into_iter().chain([(current, of_current)]).collect()
    };

    // A trainer that can't say it is no fault of the result.
    *known.losses.lock().unwrap() = losses(0.5, None);
    arriving.enter(&world);
    assert_eq!(assimilator.step(), Step::Failed);
    assert!(world.offers.try_recv().is_err());

    *known.losses.lock().unwrap() = losses(0.5, Some(1.01));
    arriving.enter(&world);
    let Step::Done(Outcome::Rejected(reason)) = assimilator.step() else { panic!() };
    assert!(reason.starts_with("its loss on held-out rows is 1.01, more than 2 times"), "{reason}");
    assert_eq!(world.offers.try_recv().unwrap(), Err((Fault::Host, reason)));

    *known.losses.lock().unwrap() = losses(0.5, Some(1.0));
    arriving.enter(&world);
    assert_eq!(assimilator.step(), Step::Done(Outcome::Assimilated));
    assert_eq!(world.offers.try_recv().unwrap(), Ok((LEASE, arriving.made())));
    let asked = known.asked.lock().unwrap().clone();
    assert_eq!(asked, [current, result, result, result], "the current version's once");

    // Another job may begin from the same version, and has other rows.
    arriving.hop.job = JobId(2);
    arriving.enter(&world);
    assert_eq!(assimilator.step(), Step::Done(Outcome::Assimilated));
    assert_eq!(known.asked.lock().unwrap()[4..], [current, result]);

    // And without a trainer nothing is merged that was to be looked at.
    arriving.enter(&world);
    assert_eq!(world.assimilator().step(), Step::Failed);
}

/// A result is merged with three blobs; each may be gone, and each may be damaged.
#[test]
fn a_blob_lost_by_the_store_is_the_servers_fault() {
    let mut trial = Trial::new(RuleSpec::FEDBUFF, Base::Initial { seed: 3 });
    let before = [10, 11].map(|seed| trial.arrive(0, seed, Flush::ByRule).expected);
    let arriving = trial.arrive(1, 12, Flush::ByRule);
    let needed = [&before[0].checkpoint, &before[1].checkpoint, &before[1].state];
    for (at, damaged) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)] {
        let world = World::new();
        let blobs = needed.map(|file| world.publish(file));
        let path = world.path(blobs[at]);
        if damaged {
            std::fs::write(path, b"another").unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        arriving.enter(&world);
        let reason = world.rejected(Fault::Server);
        assert!(reason.contains(&blobs[at].sha256.to_string()), "{reason}");
        assert_eq!(*world.queue.lost.lock().unwrap(), [blobs[at].sha256]);

        // Once it is back, the same upload is merged.
        world.publish(needed[at]);
        arriving.enter(&world);
        assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
        assert_eq!(world.offers.try_recv().unwrap(), Ok((LEASE, arriving.made())));
    }
}

/// A state of another version, say, is nothing that the host has done; nor is anything lost.
#[test]
fn a_state_of_another_version_is_no_hosts_fault() {
    let world = World::new();
    let mut trial = Trial::new(RuleSpec::FEDBUFF, Base::Initial { seed: 3 });
    let before = [10, 11].map(|seed| trial.arrive(0, seed, Flush::ByRule).expected);
    let arriving = trial.arrive(0, 12, Flush::ByRule);
    world.publish(&before[1].checkpoint);
    let state = Some(world.publish(&before[0].state));
    world.upload(&arriving.hop, &arriving.upload, Some(Merge { state, ..arriving.merge }));
    assert_eq!(world.assimilator().step(), Step::Failed);
    assert!(world.offers.try_recv().is_err());
    assert!(world.queue.lost.lock().unwrap().is_empty());
}

#[test]
fn both_blobs_are_held_until_the_offer_is_answered() {
    let world = World::new();
    let mut trial = Trial::new(RuleSpec::FEDBUFF, Base::Initial { seed: 3 });
    let arriving = trial.arrive(0, 10, Flush::ByRule);
    arriving.enter(&world);
    assert_eq!(world.assimilator().step(), Step::Done(Outcome::Assimilated));
    assert_eq!(*world.queue.held.lock().unwrap(), [true, true]);
    assert!(!arriving.blobs().iter().any(|blob| is_held(&world.blobs, blob.sha256)));
}
