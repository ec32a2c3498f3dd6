//! Histories made by hand, of results that nothing has trained.

use super::*;
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::{DataManifest, Labels, Scaling, Targets},
    position::Position,
    spec::{
        Architecture, Loss, MergeSpec, Optimizer, OptimizerMerge, OptimizerName, RuleSpec,
        TrainingConfig, TrialConfig,
    },
    unit::{Flush, TrialContext},
};

/// A merged result: base, staleness, units in flight, whether flushed.
type Course = [(u32, u64, u32, Flush)];

const COURSE: &Course = &[
    (0, 0, 2, Flush::ByRule),
    (0, 1, 3, Flush::ByRule),
    (2, 0, 3, Flush::Now),
    (1, 2, 3, Flush::ByRule),
    (4, 0, 1, Flush::ByRule),
];

fn context() -> TrialContext {
    let optimizer = Optimizer::new(OptimizerName::Adam, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model: Architecture::mlp([3]), training },
        columns: Vec::new(),
        shape: vec![2],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 30,
        pinned_threads: Some(1),
    }
}

/// A checkpoint that stands for one that was trained.
fn checkpoint(seed: u64, position: Position) -> Vec<u8> {
    let lineage = Lineage { hop_seed: seed, trial: TrialId(0), position };
    initial_checkpoint(&context(), seed, lineage).unwrap()
}

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

/// A history, all versions of its trial from 0 on, and its results: as a server made them, merge after merge.
fn merged(course: &Course) -> (TrialHistory, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let spec =
        MergeSpec { rule: RuleSpec::FEDBUFF, optimizer: OptimizerMerge::Average, canary: None };
    let merger = Merger::new(&spec, CheckpointLayout::of(&context()).unwrap()).unwrap();
    let start = Position { epoch: Epoch(1), shard: ShardId(0), batch: 0, step: 0 };
    let mut versions = vec![checkpoint(1, start)];
    let (mut hops, mut results, mut state) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    for (number, (base, staleness, in_flight, flush)) in (1u32..).zip(course.iter().copied()) {
        let end = Position { batch: 3, step: u64::from(number) * 3, ..start };
        let result = checkpoint(10 + u64::from(number), end);
        let update = Update {
            base: &versions[base as usize],
            current: versions.last().unwrap(),
            returned: &result,
            state: state.as_deref(),
            version: Version(number - 1),
            arrival: Arrival { staleness, epoch: 2, in_flight, flush },
            position: end,
        };
        let made = merger.merge(&update).unwrap().made;
        let from = state.as_deref().map(blob);
        let record = MergeRecord {
            base: Version(base),
            staleness,
            in_flight,
            flush,
            from,
            state: blob(&made.state),
        };
        hops.push(HopRecord {
            version: made.version,
            lease: LeaseId(u64::from(number)),
            host: HostId(1),
            start,
            end,
            checkpoint: blob(&made.checkpoint),
            then: Vec::new(),
            merged: Some(record),
            verified: None,
        });
        versions.push(made.checkpoint);
        results.push(result);
        state = Some(made.state);
    }
    let history = TrialHistory {
        job: JobId(1),
        trial: TrialId(0),
        job_seed: 1,
        context: context().into(),
        former: Vec::new(),
        data: DataManifest {
            columns: Vec::new(),
            shape: vec![2],
            features: Vec::new(),
            labels: Labels::Classes(Vec::new()),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train: Vec::new(),
            valid: Vec::new(),
            test: Vec::new(),
        },
        numeric_class: None,
        initial_weights: None,
        origin: None,
        merge: Some(spec),
        hops,
    };
    (history, versions, results)
}

/// Merges the record at `at` of the history again.
fn again(
    merging: &mut Merging,
    history: &TrialHistory,
    versions: &[Vec<u8>],
    results: &[Vec<u8>],
    at: usize,
) -> Result<Made, Failure> {
    let record = &history.hops[at];
    let merged = record.merged.unwrap();
    let current = match at {
        0 => history.first_base(),
        at => Base::Checkpoint {
            version: Version(u32::try_from(at).unwrap()),
            blob: blob(&versions[at]),
        },
    };
    let files = [&versions[merged.base.0 as usize], &versions[at], &results[at]];
    merging.merge(record, &merged, current, files.map(Vec::as_slice))
}

#[test]
fn repeated_merges_equal_the_recorded_ones() {
    let (history, versions, results) = merged(COURSE);
    let mut merging = Merging::new(&history).unwrap();
    for (at, record) in history.hops.iter().enumerate() {
        let made = again(&mut merging, &history, &versions, &results, at).unwrap();
        assert_eq!(blob(&made.checkpoint), record.checkpoint);
        assert_eq!(made.state, record.merged.unwrap().state);
    }
}

#[test]
fn a_repeated_merge_uses_the_recorded_inputs() {
    let (history, versions, results) = merged(COURSE);
    let alter: [fn(&mut MergeRecord); 3] = [
        |merged| merged.staleness += 5,
        |merged| merged.in_flight = 1,
        |merged| merged.flush = Flush::Now,
    ];
    for alter in alter {
        let mut other = history.clone();
        alter(other.hops[0].merged.as_mut().unwrap());
        let mut merging = Merging::new(&other).unwrap();
        let made = again(&mut merging, &other, &versions, &results, 0).unwrap();
        assert_ne!(made.state, history.hops[0].merged.unwrap().state);
    }
}

#[test]
fn a_state_is_that_of_the_version_before_or_none() {
    let (history, versions, results) = merged(COURSE);
    let mut merging = Merging::new(&history).unwrap();
    let first = again(&mut merging, &history, &versions, &results, 0).unwrap();
    // A result that replaced the version came in between.
    merging.replaced();
    let failure = again(&mut merging, &history, &versions, &results, 1).err().unwrap();
    let text = failure.messages().concat();
    let expected = format!("version 2 was merged with the state {}", first.state.sha256.short());
    assert!(text.starts_with(&expected), "{text}");

    let mut fresh = history.clone();
    fresh.hops[1].merged.as_mut().unwrap().from = None;
    let mut merging = Merging::new(&fresh).unwrap();
    again(&mut merging, &fresh, &versions, &results, 0).unwrap();
    let made = again(&mut merging, &fresh, &versions, &results, 1).unwrap();
    assert_ne!(made.state, history.hops[1].merged.unwrap().state);

    let ruleless = TrialHistory { merge: None, ..history };
    let mut merging = Merging::new(&ruleless).unwrap();
    let failure = again(&mut merging, &ruleless, &versions, &results, 0).err().unwrap();
    assert!(failure.messages().concat().contains("doesn't say how version 1 was merged"));
}
