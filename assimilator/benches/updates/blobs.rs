//! From blobs in memory to blobs in the store.

use crate::{
    line, median, size, timed,
    trial::{context, is_network},
};
use sojourn_blobs::{BlobStore, HashedBytes};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, ShardId, Version},
    position::Position,
    spec::{MergeSpec, RuleSpec},
    unit::Flush,
};
use sojourn_rules::{Arrival, Made, Merger, Spare, Update};
use std::{fs::File, io::Write as _, path::Path};
use tokio::runtime::Handle;

/// Prints what a merge by this rule takes.
pub(crate) fn blob_to_blob(rule: RuleSpec, folder: &Path, runtime: &Handle) {
    let context = context();
    let layout = CheckpointLayout::of(&context).unwrap();
    assert!(is_network(layout.parameter_count()));
    let spec = MergeSpec { rule, ..MergeSpec::default() };
    let merger = Merger::new(&spec, layout).unwrap();
    let [base, current, returned] =
        [1, 2, 3].map(|seed| initial_checkpoint(&context, seed, Lineage::initial(seed)).unwrap());
    let position = Position { epoch: Epoch(0), shard: ShardId(0), batch: 1, step: 1 };
    let arrival = Arrival { staleness: 2, epoch: 1, in_flight: 8, flush: Flush::ByRule };
    let update = |state, version| Update {
        base: &base,
        current: &current,
        returned: &returned,
        state,
        version,
        arrival,
        position,
    };
    let first = merger.merge(&update(None, Version(0))).unwrap().made;
    let next = update(Some(&first.state), first.version);
    // As the assimilator does it: in the memory of a version before.
    let mut spare = Spare::default();
    let merge = |spare: Spare| merger.merge_over(&next, spare).unwrap().made;
    let blobs = BlobStore::open(&folder.join("blobs")).unwrap();

    let mut spent = [const { Vec::new() }; 4];
    for _ in 0..size::of(15, 1) {
        let [merging, storing, hashing, writing] = &mut spent;
        spare = timed(merging, || merge(spare)).into();
        let files = timed(storing, || store(&blobs, merge(spare), runtime));
        for file in &files {
            runtime.block_on(blobs.delete(file.blob().sha256)).unwrap();
        }
        let memory = |file: HashedBytes| file.into_bytes().try_into_mut().unwrap().into();
        let [checkpoint, state] = files.map(memory);
        spare = Spare { checkpoint, state };
        timed(hashing, || {
            rayon::join(|| Digest::of(&first.checkpoint), || Digest::of(&first.state))
        });
        timed(writing, || write(folder, &first));
        remove(folder);
    }
    let [merging, storing, hashing, writing] = spent.map(median).map(|seconds| 1e3 * seconds);
    let name = |what: &str| format!("merge, {}, {what}", rule.name());
    line(&name("blob to blob"), merging, "ms", hashing);
    line(&name("blob to blob, SHA-256, fsync"), storing, "ms", writing);
}

/// Both named and in the store, as the assimilator does it.
fn store(blobs: &BlobStore, made: Made, runtime: &Handle) -> [HashedBytes; 2] {
    let prepare = |bytes: Vec<u8>| blobs.prepare(bytes.into());
    let both = async { tokio::join!(prepare(made.checkpoint), prepare(made.state)) };
    let (checkpoint, state) = runtime.block_on(both);
    let files = [checkpoint.unwrap(), state.unwrap()];
    let [checkpoint, state] = files.each_ref().map(|file| blobs.publish_prepared(file));
    let (checkpoint, state) = runtime.block_on(async { tokio::join!(checkpoint, state) });
    checkpoint.and(state).unwrap();
    files.map(|file| file.named().clone())
}

const NAMES: [&str; 2] = ["checkpoint", "state"];

/// Both on the disk, side by side.
fn write(folder: &Path, made: &Made) {
    let files = [&made.checkpoint, &made.state];
    std::thread::scope(|threads| {
        for (name, bytes) in NAMES.into_iter().zip(files) {
            threads.spawn(move || {
                let mut file = File::create(folder.join(name)).unwrap();
                file.write_all(bytes).unwrap();
                file.sync_all().unwrap();
            });
        }
    });
}

fn remove(folder: &Path) {
    NAMES.iter().for_each(|name| std::fs::remove_file(folder.join(name)).unwrap());
}
