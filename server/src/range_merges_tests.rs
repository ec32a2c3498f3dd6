//! Ranges are given to one at a time, come again, and end with their leader.

use super::*;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{ClaimId, Epoch, JobId, ShardId, TrialId, Version},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    ranges::RangeDecision,
    report::{Sums, Trained},
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    time::Millis,
    unit::{Base, Hop, TrialContext},
};

const LEASE: LeaseId = LeaseId(3);

fn unit(claim: u64) -> AssimilationUnit {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::mlp([3]), training },
        columns: Vec::new(),
        shape: vec![2],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 3,
        pinned_threads: None,
    };
    let blob = BlobRef { sha256: Digest::of(b"blob"), bytes: 5 };
    let start = Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 };
    let hop = Hop {
        job: JobId(1),
        trial: TrialId(0),
        base: Base::Initial { seed: 1 },
        start,
        shard: Shard { blob, rows: 10 },
        seed: 9,
        context: context.into(),
        then: Vec::new(),
        until: None,
    };
    let base = Version(0);
    let trained =
        Trained { base, checkpoint: blob, end: start, sums: Sums::default(), train_micros: 1 };
    AssimilationUnit {
        lease: LEASE,
        claim: ClaimId(claim),
        term: Millis::from_secs(60),
        hop,
        trained,
        expected_end: start,
        version: Version(1),
        merge: None,
    }
}

fn merging() -> RangeTask {
    RangeTask::Merge(RangeDecision { gathered: 0, scale: 1, overlap: None, lineage: vec![0; 6] })
}

fn request(claim: u64, task: RangeTask, left: &[u32]) -> LeadRequest {
    let left =
        left.iter().map(|range| RemainingRange { range: *range, upload: Digest::of(b"bytes") });
    LeadRequest { unit: unit(claim), least: 7, task, left: left.collect(), wait: Millis(0) }
}

fn made(claim: u64, range: u32) -> RangeResultRequest {
    let done = RangeDone { range, result: RangeResult::Squares(vec![u64::from(range)]) };
    RangeResultRequest { claim: ClaimId(claim), done }
}

/// The answer to a leader of the first round: ranges that were made, and its own.
fn leads(merges: &RangeMerges, left: &[u32], now: Instant) -> (Vec<u32>, Option<u32>) {
    let (answer, _) = merges.lead(&request(1, RangeTask::Squares, left), now);
    (answer.done.iter().map(|done| done.range).collect(), answer.own)
}

fn taken(merges: &RangeMerges, now: Instant) -> Option<u32> {
    merges.take(now).map(|work| work.left.range)
}

#[test]
fn each_range_has_one_worker() {
    let (merges, now) = (RangeMerges::default(), Instant::now());
    assert_eq!(merges.take(now), None);
    let (answer, news) = merges.lead(&request(1, RangeTask::Squares, &[0, 1, 2]), now);
    assert_eq!((answer.own, answer.done.len(), news), (Some(0), 0, News::Ranges));
    let work = merges.take(now).unwrap();
    assert_eq!((work.left.range, work.least, work.task), (1, 7, RangeTask::Squares));
    assert_eq!(taken(&merges, now), Some(2));
    assert_eq!(taken(&merges, now), None, "all are being done");
    assert_eq!(merges.made(LEASE, made(1, 2), now), Offer::Taken);
    assert_eq!(merges.made(LEASE, made(1, 2), now), Offer::Stale, "it is done");
    let (answer, news) = merges.lead(&request(1, RangeTask::Squares, &[1, 2]), now);
    assert_eq!(answer.done, [made(1, 2).done]);
    assert_eq!((answer.own, news), (None, News::None));
    assert_eq!(merges.made(LEASE, made(1, 1), now), Offer::Taken);
    // An answer that was lost on its way: what it said is left is done again.
    assert_eq!(leads(&merges, &[1, 2], now), (vec![1], Some(2)));
    assert_eq!(leads(&merges, &[], now), (vec![], None));
    assert_eq!(merges.made(LEASE, made(1, 2), now), Offer::Stale);
    assert_eq!(taken(&merges, now), None);
}

#[test]
fn a_range_is_assigned_again_if_its_worker_is_silent() {
    let (merges, now) = (RangeMerges::default(), Instant::now());
    assert_eq!(leads(&merges, &[0, 1], now), (vec![], Some(0)));
    assert_eq!(taken(&merges, now), Some(1));
    let soon = now + LEADER_TAKEOVER_TIMEOUT;
    assert_eq!(taken(&merges, soon), None);
    assert_eq!(leads(&merges, &[1], soon), (vec![], Some(1)), "its leader has nothing to do");
    assert_eq!(leads(&merges, &[1], soon), (vec![], None), "it is at it");
    let later = soon + RANGE_TIMEOUT;
    assert_eq!(taken(&merges, later), Some(1));
    // Whoever is first.
    assert_eq!(merges.made(LEASE, made(1, 1), later), Offer::Taken);
    assert_eq!(merges.made(LEASE, made(1, 1), later), Offer::Stale);
}

#[test]
fn a_range_merge_ends_with_its_round_its_claim_and_its_leader() {
    let (merges, now) = (RangeMerges::default(), Instant::now());
    assert_eq!(leads(&merges, &[0, 1], now), (vec![], Some(0)));
    assert_eq!(taken(&merges, now), Some(1));
    let (answer, news) = merges.lead(&request(1, merging(), &[0, 1]), now);
    assert_eq!((answer.own, news), (Some(0), News::Ranges), "all anew");
    assert_eq!(merges.made(LEASE, made(1, 1), now), Offer::Stale, "of the round before");

    // Another has taken the unit: the one before is left to itself.
    let (answer, _) = merges.lead(&request(2, RangeTask::Squares, &[0, 1]), now);
    assert_eq!(answer.own, Some(0));
    let (answer, news) = merges.lead(&request(1, merging(), &[1]), now);
    assert_eq!((answer.own, news), (Some(1), News::None));
    assert_eq!(merges.made(LEASE, made(1, 1), now), Offer::Stale);
    assert_eq!(merges.take(now).unwrap().unit.claim, ClaimId(2));

    let gone = now + LEADER_TIMEOUT;
    assert_eq!(taken(&merges, gone), None);
    assert_eq!(merges.made(LEASE, made(2, 1), gone), Offer::Stale);
}
