//! The disk that jobs take.

use crate::support::{Bench, HOST, JOB, hop};
use sojourn_core::Core;
use sojourn_protocol::ids::JobId;
use std::collections::BTreeSet;

/// Bytes of the blobs that something refers to, as the state counts references; each counted once.
fn kept(bench: &Bench) -> u64 {
    let state = bench.core.state();
    let jobs = state.jobs.values();
    let blobs: BTreeSet<_> = jobs
        .flat_map(|job| job.blobs().chain(job.trials.iter().flat_map(|trial| trial.blobs())))
        .map(|blob| (blob.sha256, blob.bytes))
        .collect();
    assert_eq!(blobs.len(), state.blobs.referenced().count());
    blobs.into_iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn a_job_takes_the_disk_of_its_data_and_of_what_its_trials_keep() {
    let mut bench = Bench::with_job(2, 2);
    assert_eq!(bench.job().disk_bytes, 400, "four shards");
    let lease = bench.lease(HOST);
    let checkpoint = lease.upload_bytes;
    assert!(checkpoint > 0 && hop(&lease).start.batch == 0);
    bench.finish(HOST, &lease);
    assert_eq!(bench.job().disk_bytes, 400 + checkpoint);
    while bench.job().ended_at.is_none() {
        bench.work_once(&[HOST]);
        assert_eq!(bench.job().disk_bytes, kept(&bench));
    }
    let ended = bench.job().disk_bytes;
    // The last epoch of each trial, and its best one: here they may be the same.
    assert!((400 + 2 * checkpoint..=400 + 4 * checkpoint).contains(&ended), "{ended}");
    // It is known again after a start.
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    assert_eq!(bench.job().disk_bytes, ended);
    // Another job on the same data: the shards count for both.
    bench.submit(1, 1, true).unwrap();
    assert_eq!(bench.core.state().jobs[&JobId(2)].disk(), 400);
    assert_eq!(bench.core.state().jobs[&JOB].disk(), ended);
}
