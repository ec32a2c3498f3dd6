//! Merges from blobs to blobs, with digests, and with files that are synced.

use crate::{line, medians};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, ShardId, Version},
    manifest::Scaling,
    position::Position,
    spec::{
        Architecture, Loss, MergeSpec, Optimizer, OptimizerName, Resnet, RuleSpec, TrainingConfig,
        TrialConfig,
    },
    unit::{Flush, TrialContext},
};
use sojourn_rules::{Arrival, Made, Merger, Spare, Update};
use std::{fs::File, hint::black_box, io::Write as _, path::Path};

/// The paper's network without optimiser state: a checkpoint of 20 MB.
fn context() -> TrialContext {
    let resnet = Resnet { depth: 164, width: Resnet::WIDTH };
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 32, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::Resnet(resnet), training },
        shape: vec![3, 32, 32],
        outputs: 10,
        scaling: Scaling::None,
        total_steps: 1,
        pinned_threads: None,
    }
}

/// Prints what a merge by this rule takes.
pub(crate) fn blob_to_blob(rule: RuleSpec) {
    let context = context();
    let layout = CheckpointLayout::of(&context).unwrap();
    assert_eq!(layout.parameter_count(), crate::COUNT as u64);
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
    // As whoever merges all day does it: in the memory of a version before.
    let mut spare = Spare::default();
    let merge = |spare: &mut Spare| merger.merge_over(&next, std::mem::take(spare)).unwrap().made;
    let folder = tempfile::tempdir().unwrap();
    let [merging, naming, storing, hashing, writing] = medians(|turn| match turn {
        0 => spare = merge(&mut spare).into(),
        1 => {
            let made = merge(&mut spare);
            black_box(digests(&made));
            spare = made.into();
        }
        2 => {
            let made = merge(&mut spare);
            std::thread::scope(|threads| {
                // Written under another name while it is hashed, as a store may do.
                threads.spawn(|| write(folder.path(), &made));
                black_box(digests(&made));
            });
            spare = made.into();
        }
        3 => {
            black_box(digests(&first));
        }
        _ => write(folder.path(), &first),
    });
    let print = |what: &str, spent: f64, beside: f64| {
        line(&format!("merge, {}, {what}", rule.name()), 1e3 * spent, "ms", 1e3 * beside);
    };
    print("blob to blob", merging, hashing);
    print("blob to blob and SHA-256", naming, hashing);
    print("blob to blob, SHA-256, fsync", storing, writing);
}

fn digests(made: &Made) -> (Digest, Digest) {
    rayon::join(|| Digest::of(&made.checkpoint), || Digest::of(&made.state))
}

/// Both to disk, side by side, each under its own name in the end.
fn write(folder: &Path, made: &Made) {
    let write = |name: &str, bytes: &[u8]| {
        let part = folder.join("part").with_extension(name);
        let mut file = File::create(&part).unwrap();
        file.write_all(bytes).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(part, folder.join(name)).unwrap();
    };
    std::thread::scope(|threads| {
        threads.spawn(|| write("checkpoint", &made.checkpoint));
        write("state", &made.state);
    });
}
