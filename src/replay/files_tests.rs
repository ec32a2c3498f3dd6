//! Which files a replay keeps.

use super::*;
use sojourn_protocol::{
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId},
    manifest::{DataManifest, Labels, Targets},
    position::Position,
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    unit::{Flush, TrialContext},
    view::MergeRecord,
};

/// A history whose versions 1, 2, ... were trained from these; `None` in hop order.
fn history(bases: &[Option<u32>]) -> TrialHistory {
    let position = Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 };
    let blob = BlobRef { sha256: Digest::of(b"any"), bytes: 3 };
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::CrossEntropy, optimizer);
    let record = |version, base: Option<u32>| HopRecord {
        version,
        lease: LeaseId(1),
        host: HostId(1),
        start: position,
        end: position,
        checkpoint: blob,
        then: Vec::new(),
        merged: base.map(|base| MergeRecord {
            base: Version(base),
            staleness: 0,
            in_flight: 1,
            flush: Flush::ByRule,
            from: None,
            state: blob,
        }),
        verified: None,
    };
    TrialHistory {
        job: JobId(1),
        trial: TrialId(0),
        job_seed: 1,
        context: TrialContext {
            config: TrialConfig { model: Architecture::mlp([3]), training },
            columns: Vec::new(),
            shape: vec![2],
            outputs: 2,
            scaling: Scaling::None,
            targets: Targets::Plain,
            total_steps: 30,
            pinned_threads: Some(1),
        }
        .into(),
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
        merge: None,
        hops: (1..).map(Version).zip(bases).map(|(version, base)| record(version, *base)).collect(),
    }
}

#[test]
fn a_version_is_kept_until_the_last_that_is_made_from_it() {
    let folder = tempfile::tempdir().unwrap();
    // 1 is the base of 2 and of 4; 2 and 3 only of what comes next.
    let history = history(&[None, Some(1), Some(0), Some(1), None]);
    let mut files = Files::new(&history, folder.path(), BTreeMap::new());
    let there = [&[1][..], &[1, 2], &[1, 3], &[4], &[5]];
    for (record, there) in history.hops.iter().zip(there) {
        let number = record.version.0;
        files.write(record.version, &number.to_le_bytes()).unwrap();
        for version in 1..=number {
            let base = files.version(Version(version), record);
            assert_eq!(base.is_ok(), there.contains(&version), "{version} after {number}");
            if let Ok(base) = base {
                assert_eq!(files.checkpoint(base).unwrap(), version.to_le_bytes());
            }
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), there.len());
        assert_eq!(files.known().len(), there.len());
    }
    // Version 0 is made whenever it is asked for.
    let first = files.version(Version(0), &history.hops[2]).unwrap();
    assert_eq!(first, history.first_base());
    assert!(files.checkpoint(first).is_ok());
}

#[test]
fn equal_versions_share_a_blob() {
    let folder = tempfile::tempdir().unwrap();
    let history = history(&[None, None, None]);
    let mut files = Files::new(&history, folder.path(), BTreeMap::new());
    for record in &history.hops {
        files.write(record.version, b"the same").unwrap();
        let base = files.version(record.version, record).unwrap();
        assert_eq!(files.checkpoint(base).unwrap(), b"the same");
    }
}

#[test]
fn a_missing_base_is_named() {
    let history = history(&[Some(7)]);
    let files = Files::new(&history, Path::new("nowhere"), BTreeMap::new());
    let failure = files.version(Version(7), &history.hops[0]).unwrap_err();
    let said = failure.messages().concat();
    assert!(said.starts_with("version 1 was trained from version 7"), "{said}");
}
