//! The four efficiencies of a job, each beside its limit, from what a server says of its trials and its journal. Pure.
//!
//! The four are the desiderata of the Cerebro paper (Nakandala, Zhang, Kumar: "Cerebro: A Data System for Optimized Deep
//! Learning Model Selection", PVLDB 13(11), 2020, section 1): per-epoch, convergence, memory and storage, and communication
//! efficiency. `docs/report.md` says what each is.

use crate::cli::model::export::answers::{AcceptedHop, Answers};
use serde::Serialize;
use sojourn_protocol::{
    ids::{HostId, ShardId, TrialId, Version},
    quantity::{SaturatingFrom as _, to_u64},
    time::Millis,
    unit::shard_index,
    view::HopRecord,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The four of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Efficiencies {
    pub(super) per_epoch: PerEpoch,
    pub(super) convergence: Convergence,
    pub(super) storage: Storage,
    pub(super) communication: Communication,
}

/// How long training took, beside the least that it can take on the slots that took part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct PerEpoch {
    /// Slots of the hosts that trained for the job.
    pub(super) slots: u64,
    /// Epochs of the trial that trained longest.
    pub(super) epochs: u32,
    /// The training that is in the trials' models, without transfers and evaluations.
    pub(super) training: Millis,
    /// The training of the longest trial whose hops follow each other.
    pub(super) longest_trial: Millis,
    /// From the first lease that is in a model to the last result.
    pub(super) took: Option<Millis>,
    /// Shared out over the slots, and no less than the longest trial.
    pub(super) least: Option<Millis>,
    #[serde(rename = "share")]
    pub(super) ratio: Option<f64>,
}

/// How far models are those that one machine would have trained, shard after shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Convergence {
    /// Results in models.
    pub(super) results: u64,
    /// Results that were merged with others.
    pub(super) merged: u64,
    /// Epochs up to the best value, counted from 1.
    pub(super) best_epoch: Option<u32>,
    /// Epochs that the best trial has trained.
    pub(super) best_trial_epochs: Option<u32>,
    /// Epochs of all trials.
    pub(super) epochs: u64,
    #[serde(rename = "share")]
    pub(super) ratio: Option<f64>,
}

/// How much training data lay on hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Storage {
    /// Hosts that trained.
    pub(super) hosts: u64,
    /// Training data, once.
    pub(super) data_bytes: u64,
    /// Each shard once for each host that trained on it.
    pub(super) held_bytes: u64,
    /// Bytes of the job in the server's store.
    pub(super) store_bytes: u64,
    #[serde(rename = "share")]
    pub(super) ratio: Option<f64>,
}

/// How many bytes of checkpoints moved between hosts and store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Communication {
    /// Visits of shards.
    pub(super) hops: u64,
    /// Checkpoints that became versions.
    pub(super) uploaded_bytes: u64,
    /// Versions that a host trained on without having made them.
    pub(super) downloaded_bytes: u64,
    /// One checkpoint for each hop.
    pub(super) least_bytes: u64,
    /// Results that came and were of no use; their bytes aren't known.
    pub(super) unused_results: u64,
    #[serde(rename = "share")]
    pub(super) ratio: Option<f64>,
}

impl Efficiencies {
    /// `slots`: of each host, as far as the server knows it.
    pub(super) fn of(answers: &Answers, slots: &BTreeMap<HostId, u32>) -> Self {
        Self {
            per_epoch: PerEpoch::of(answers, slots),
            convergence: Convergence::of(answers),
            storage: Storage::of(answers),
            communication: Communication::of(answers),
        }
    }
}

/// The results that are in models.
fn hops(answers: &Answers) -> impl Iterator<Item = (TrialId, &AcceptedHop)> {
    let of_trial = |(trial, record): (&TrialId, _)| (*trial, record);
    let records = answers.records.iter().map(of_trial);
    records.flat_map(|(trial, record)| record.hops.iter().map(move |hop| (trial, hop)))
}

fn hosts(answers: &Answers) -> BTreeSet<HostId> {
    hops(answers).map(|(_, hop)| hop.record.host).collect()
}

impl PerEpoch {
    fn of(answers: &Answers, slots: &BTreeMap<HostId, u32>) -> Self {
        // A host that has left may be forgotten: it had a slot at least.
        let slots_of = |host| u64::from(slots.get(&host).copied().unwrap_or(0).max(1));
        let slots: u64 = hosts(answers).into_iter().map(slots_of).sum();
        let mut by_trial: BTreeMap<TrialId, Duration> = BTreeMap::new();
        let mut merging = BTreeSet::new();
        let (mut first, mut last) = (None, None);
        for (trial, hop) in hops(answers) {
            if hop.record.merged.is_some() {
                merging.insert(trial);
            }
            let Some(lease) = answers.journal.training(hop.record.lease) else { continue };
            let Some(report) = lease.reported else { continue };
            *by_trial.entry(trial).or_default() += report.time;
            first = first.into_iter().chain([lease.granted_at]).min();
            last = last.into_iter().chain([report.at]).max();
        }
        let training: Duration = by_trial.values().sum();
        // Results that are merged are trained at once: their trial may be shorter than their sum.
        let one_by_one = by_trial.iter().filter(|(trial, _)| !merging.contains(trial));
        let longest = one_by_one.map(|(_, time)| *time).max().unwrap_or_default();
        let took = first.zip(last).map(|(first, last)| last - first);
        let shared = training / u32::try_from(slots.max(1)).unwrap_or(u32::MAX);
        let least = took.map(|_| millis(shared.max(longest)));
        Self {
            slots,
            epochs: answers.trials.iter().map(|trial| trial.epoch.0).max().unwrap_or(0),
            training: millis(training),
            longest_trial: millis(longest),
            took,
            least,
            ratio: least.zip(took).and_then(|(least, took)| ratio(least.0, took.0)),
        }
    }
}

impl Convergence {
    fn of(answers: &Answers) -> Self {
        let results = to_u64(hops(answers).count());
        let merged = to_u64(hops(answers).filter(|(_, hop)| hop.record.merged.is_some()).count());
        let best = answers.detail.summary.best.as_ref();
        let trial =
            best.and_then(|best| answers.trials.iter().find(|trial| trial.trial == best.trial));
        Self {
            results,
            merged,
            best_epoch: best.map(|best| best.epoch.next().0),
            best_trial_epochs: trial.map(|trial| trial.epoch.0),
            epochs: answers.trials.iter().map(|trial| u64::from(trial.epoch.0)).sum(),
            ratio: ratio(results - merged, results),
        }
    }
}

impl Storage {
    fn of(answers: &Answers) -> Self {
        let train = &answers.detail.data.train;
        let bytes =
            |shard: ShardId| train.get(shard_index(shard)).map_or(0, |shard| shard.blob.bytes);
        let of_hop = |hop: &AcceptedHop| {
            let host = hop.record.host;
            hop.record.shards().map(move |shard| (host, shard)).collect::<Vec<_>>()
        };
        let held: BTreeSet<_> = hops(answers).flat_map(|(_, hop)| of_hop(hop)).collect();
        let data_bytes = train.iter().map(|shard| shard.blob.bytes).sum();
        let held_bytes = held.into_iter().map(|(_, shard)| bytes(shard)).sum();
        Self {
            hosts: to_u64(hosts(answers).len()),
            data_bytes,
            held_bytes,
            store_bytes: answers.detail.summary.disk_bytes,
            ratio: ratio(data_bytes, held_bytes),
        }
    }
}

impl Communication {
    fn of(answers: &Answers) -> Self {
        let mut found = Self {
            unused_results: answers.detail.summary.superseded + answers.detail.summary.rejected,
            ..Self::default()
        };
        for (trial, record) in &answers.records {
            let origin = answers.trials.iter().find(|view| view.trial == *trial);
            let origin =
                origin.and_then(|view| view.origin).map_or(0, |origin| origin.checkpoint.bytes);
            found.add(origin, &record.hops);
        }
        let moved = found.uploaded_bytes + found.downloaded_bytes;
        Self { ratio: ratio(found.least_bytes, moved), ..found }
    }

    /// Adds a trial, which begins with a checkpoint of so many bytes.
    fn add(&mut self, origin: u64, hops: &[AcceptedHop]) {
        let made: BTreeMap<Version, &HopRecord> =
            hops.iter().map(|hop| (hop.record.version, &hop.record)).collect();
        let mut before: Option<&HopRecord> = None;
        for AcceptedHop { record, .. } in hops {
            let base = match &record.merged {
                None => before,
                Some(merged) => made.get(&merged.base).copied(),
            };
            self.downloaded_bytes += match base {
                None => origin,
                // What was merged was made by the server.
                Some(base) if base.host == record.host && base.merged.is_none() => 0,
                Some(base) => base.checkpoint.bytes,
            };
            // A hop that ended early is counted where it began.
            let began = u64::from(record.start.batch == 0) + to_u64(record.then.len());
            self.hops += began;
            self.uploaded_bytes += record.checkpoint.bytes;
            self.least_bytes += began * record.checkpoint.bytes;
            before = Some(record);
        }
    }
}

fn millis(time: Duration) -> Millis {
    Millis(u64::saturating_from(time.as_millis()))
}

/// The part of `of` that `part` is.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::model::export::samples::{Sample, answers};
    use sojourn_protocol::{
        digest::{BlobRef, Digest},
        unit::{Flush, Origin},
        view::MergeRecord,
    };

    /// Trials of as many epochs, each of two hops of 1,000 bytes and 1.5 seconds of training, all on host 1.
    fn job(epochs: &[u32]) -> Answers {
        let sample =
            |(number, epochs): (usize, &u32)| Sample { name: number.to_string(), epochs: *epochs };
        answers(&epochs.iter().enumerate().map(sample).collect::<Vec<_>>())
    }

    fn of(answers: &Answers, slots: &[(u64, u32)]) -> Efficiencies {
        let slots = slots.iter().map(|(host, slots)| (HostId(*host), *slots)).collect();
        Efficiencies::of(answers, &slots)
    }

    fn record(answers: &mut Answers, trial: u32, hop: usize) -> &mut HopRecord {
        &mut answers.records.get_mut(&TrialId(trial)).unwrap().hops[hop].record
    }

    #[test]
    fn the_least_time_is_the_work_over_the_slots_or_the_longest_trial() {
        let job = job(&[2, 1]);
        let one = of(&job, &[(1, 1)]).per_epoch;
        assert_eq!((one.slots, one.epochs, one.training), (1, 2, Millis(9_000)));
        // An event a second: three for a hop, two for an evaluation, from the first grant to the last report.
        assert_eq!((one.took, one.least), (Some(Millis(21_000)), Some(Millis(9_000))));
        assert!((one.ratio.unwrap() - 9.0 / 21.0).abs() < 1e-9);
        let four = of(&job, &[(1, 4)]).per_epoch;
        assert_eq!((four.slots, four.least), (4, Some(Millis(6_000))), "no trial is in two places");
    }

    #[test]
    fn a_trial_whose_results_are_merged_may_be_in_many_places() {
        let mut job = job(&[2]);
        merge(&mut job, 3, 1);
        let of = of(&job, &[(1, 4)]);
        assert_eq!(of.per_epoch.least, Some(Millis(1_500)));
        assert_eq!((of.convergence.results, of.convergence.merged), (4, 1));
        assert_eq!(of.convergence.ratio, Some(0.75));
    }

    fn merge(job: &mut Answers, hop: usize, base: u32) {
        let state = BlobRef { sha256: Digest::of(b"state"), bytes: 1 };
        let flush = Flush::default();
        let merged = MergeRecord {
            base: Version(base),
            staleness: 1,
            in_flight: 2,
            flush,
            from: None,
            state,
        };
        record(job, 0, hop).merged = Some(merged);
    }

    #[test]
    fn a_shard_counts_once_for_each_host_that_trained_on_it() {
        let mut job = job(&[3]);
        let one = of(&job, &[]).storage;
        assert_eq!(
            (one.hosts, one.data_bytes, one.held_bytes, one.ratio),
            (1, 2_000, 2_000, Some(1.0))
        );
        record(&mut job, 0, 2).host = HostId(2);
        let two = of(&job, &[]).storage;
        assert_eq!((two.hosts, two.held_bytes), (2, 3_000), "one shard lies on both");
    }

    #[test]
    fn a_version_moves_down_only_where_its_host_lacks_it() {
        let mut job = job(&[2]);
        let at_home = of(&job, &[]).communication;
        assert_eq!((at_home.hops, at_home.uploaded_bytes, at_home.downloaded_bytes), (4, 4_000, 0));
        assert_eq!((at_home.least_bytes, at_home.ratio), (4_000, Some(1.0)));
        record(&mut job, 0, 1).host = HostId(2);
        let away = of(&job, &[]).communication;
        assert_eq!(away.downloaded_bytes, 2_000, "there and back");
        merge(&mut job, 3, 1);
        let merged = of(&job, &[]).communication;
        assert_eq!(
            merged.downloaded_bytes, 2_000,
            "it was trained on version 1, which its host made"
        );
        merge(&mut job, 0, 0);
        assert_eq!(
            of(&job, &[]).communication.downloaded_bytes,
            3_000,
            "the server made version 1"
        );
    }

    #[test]
    fn hops_of_one_lease_move_one_checkpoint() {
        let mut job = job(&[1]);
        job.records.get_mut(&TrialId(0)).unwrap().hops.truncate(1);
        record(&mut job, 0, 0).then = vec![ShardId(1)];
        let found = of(&job, &[]).communication;
        assert_eq!((found.hops, found.uploaded_bytes, found.ratio), (2, 1_000, Some(2.0)));
        record(&mut job, 0, 0).start.batch = 1;
        assert_eq!(of(&job, &[]).communication.hops, 1, "the first began in another lease");
    }

    #[test]
    fn a_clone_moves_the_checkpoint_that_it_goes_on_from() {
        let mut job = job(&[1]);
        let checkpoint = BlobRef { sha256: Digest::of(b"origin"), bytes: 500 };
        let (trial, version) = (TrialId(9), Version(1));
        job.trials[0].origin = Some(Origin { trial, epochs: 1, version, checkpoint, step: 6 });
        assert_eq!(of(&job, &[]).communication.downloaded_bytes, 500);
    }

    #[test]
    fn a_job_that_has_not_begun_has_no_ratios() {
        let found = of(&job(&[0]), &[]);
        let ratios = [
            found.per_epoch.ratio,
            found.convergence.ratio,
            found.storage.ratio,
            found.communication.ratio,
        ];
        assert_eq!(ratios, [None; 4]);
    }
}
