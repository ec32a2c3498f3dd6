//! One trial: its chain, its version, its evaluations, and the results that wait for it.

use super::{
    ExtraResult, Merging, PendingVerification, RequestedEvaluation, Residence, Stopped, is_default,
};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    cross_validation::Fold,
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, LeaseId, TrialId, Version},
    manifest::DataSplit,
    report::{Failure, Sums},
    spec::{Choices, Goal},
    trial_name::trial_name,
    unit::{Base, FormerLength, Origin, TrialContext},
    view::{CurvePoint, HopRecord, Verification},
};
use sojourn_workgen::Chain;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// A trial's durable state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The trial's id.
    pub id: TrialId,
    /// The context that its units share.
    pub context: Arc<TrialContext>,
    /// The trial's lengths before each of its extensions, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<FormerLength>,
    /// The values of the dimensions that vary.
    pub choices: Choices,
    /// Seed of the initial weights.
    pub initial_seed: u64,
    /// The seed of its weights, row order and dropout, where that is a dimension of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The fold that it is trained without and evaluated on, where there are folds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// The first trial of the configuration that it trains on all folds, where it does: such a trial isn't evaluated by the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<TrialId>,
    /// The initial weights, where the job file names some.
    #[serde(rename = "given", default, skip_serializing_if = "Option::is_none")]
    pub initial_weights: Option<BlobRef>,
    /// Where it goes on from, where it is a clone of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The trial whose place in the population it has taken, in population-based training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<TrialId>,
    /// The `[[model]]` table that it is of, counted from 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub model: u32,
    /// Exact bytes of its checkpoints.
    pub checkpoint_bytes: u64,
    /// Floating-point operations of one row, forward.
    pub flops_per_row: u64,
    /// The trial's progress over the shards.
    pub chain: Chain,
    /// The trial's version.
    pub version: Version,
    /// The version's checkpoint; none for version 0.
    pub checkpoint: Option<BlobRef>,
    /// How it ended, once it has.
    pub end: Option<TrialEnd>,
    /// Why it finished early, or failed for want of time, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Whether nothing more of the trial is trained, though it runs: its job's time is up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub training_over: bool,
    /// Whether its user has let it go on by its name: no rule of early stopping ends it any more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_exempt: bool,
    /// The numeric class of the host that made its first version.
    pub class: Option<Digest>,
    /// Hosts of several numeric classes (or of unknown ones) made its versions.
    pub mixed: bool,
    /// The record of each version, oldest first.
    pub history: Vec<HopRecord>,
    /// Training sums of the epoch that is being trained.
    pub train_sums: Sums,
    /// Evaluated epochs, in order.
    pub curve: Vec<CurvePoint>,
    /// The best of them.
    pub best: Option<Best>,
    /// Evaluations outside the search that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<ExtraResult>,
    /// Evaluations to do.
    pub evaluations: BTreeMap<Epoch, PendingEvaluation>,
    /// Evaluations that were left when its job's time was up: to do if it is extended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unevaluated: BTreeMap<Epoch, PendingEvaluation>,
    /// In hop order: live leases of the next hop.
    pub live: BTreeSet<LeaseId>,
    /// Acknowledged results that wait; the first one is being assimilated.
    pub awaiting: VecDeque<LeaseId>,
    /// In hop order: trainer errors at the next hop, by host.
    pub failures: BTreeMap<HostId, FailedBy>,
    /// While results are merged: its units in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merging: Option<Merging>,
    /// Where it stays, in jobs whose trials stay on hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residence: Option<Residence>,
    /// In hop order: the verification that its next version waits for.
    #[serde(rename = "check", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<PendingVerification>,
    /// How the verification of waiting results ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<LeaseId, Verification>,
    /// The checkpoints that epochs of it ended with, to which it can be taken back: the last ones where its results are checked, those
    /// of the last generations in population-based training.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<Epoch, BlobRef>,
    /// Results of leases up to this one were rolled back, or would be.
    #[serde(default)]
    pub void_until: LeaseId,
    /// Which of its checkpoints are kept, once its job has been thinned.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stored: StoredCheckpoints,
}

/// Which checkpoints of a trial are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredCheckpoints {
    /// All that it needs.
    #[default]
    Needed,
    /// The best one.
    Best,
    /// No checkpoint.
    Nothing,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialEnd {
    /// Trained and evaluated to the end.
    Finished,
    /// By errors.
    Failed(String),
    /// With its job.
    Cancelled,
}

/// The best evaluated epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The epoch.
    pub epoch: Epoch,
    /// The metric.
    pub value: f64,
    /// The checkpoint.
    pub checkpoint: BlobRef,
}

impl Best {
    /// The evaluation of its checkpoint on the test data, where it is the best of this trial.
    #[must_use]
    pub const fn test_of(&self, trial: TrialId) -> RequestedEvaluation {
        RequestedEvaluation { trial, split: DataSplit::Test, epoch: self.epoch }
    }
}

/// An evaluation to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingEvaluation {
    /// The version that the epoch ended with.
    pub version: Version,
    /// The version's checkpoint.
    pub checkpoint: BlobRef,
    /// Training sums of the epoch.
    pub train: Sums,
    /// Live leases.
    pub live: BTreeSet<LeaseId>,
    /// Trainer errors, by host.
    pub failures: BTreeMap<HostId, FailedBy>,
    /// The verification that its result waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<PendingVerification>,
}

impl PendingEvaluation {
    /// Is a host to be found for it: none is at it, and no result of it is verified?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.live.is_empty() && self.verification.is_none()
    }
}

/// Trainer errors of one host at one unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedBy {
    /// How many.
    pub count: u32,
    /// The last.
    pub last: Failure,
}

impl Trial {
    /// The trial's name, for people.
    #[must_use]
    pub fn name(&self) -> String {
        trial_name(self.context.config.model.name(), &self.choices)
    }

    /// Neither finished, failed nor cancelled.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// All its epochs are trained. One that waits for the search to let it go on has more.
    #[must_use]
    pub fn is_trained(&self) -> bool {
        self.chain.is_done() && self.chain.epochs() >= self.epochs()
    }

    /// Epochs that it has trained where it has ended early by the search, else all that it is to train.
    #[must_use]
    pub fn length(&self) -> u32 {
        match self.stopped {
            Some(Stopped::Search { epochs, .. }) => epochs,
            Some(Stopped::Target { .. } | Stopped::WallTime | Stopped::UsedUp(_)) | None => {
                self.epochs()
            }
        }
    }

    /// Whether the trial waits for the search to let it go on or to stop it: what it was allowed is trained and evaluated.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_running()
            && self.chain.is_done()
            && !self.is_trained()
            && self.evaluations.is_empty()
    }

    /// Whether the trial has begun, and there is something of it to train or to evaluate.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.is_running() && !self.is_held() && self.chain.epochs() > 0
    }

    /// Whether the trial runs, and has something left to train.
    #[must_use]
    pub fn trains(&self) -> bool {
        self.is_running() && !self.training_over && !self.chain.is_done()
    }

    /// Epochs in all.
    #[must_use]
    pub fn epochs(&self) -> u32 {
        self.context.config.training.epochs
    }

    /// Thousands of operations that so many batches take, forward alone.
    #[must_use]
    pub fn work_of(&self, batches: u64) -> u64 {
        let rows = batches.saturating_mul(u64::from(self.context.config.training.batch_size));
        rows.saturating_mul(self.flops_per_row.div_ceil(1000))
    }

    /// The seed that its hops follow from.
    #[must_use]
    pub fn seed_in(&self, job: &super::Job) -> u64 {
        self.seed.unwrap_or(job.spec.seed)
    }

    /// The context of a lease's unit: the one of the time when it was granted.
    #[must_use]
    pub fn context_of(&self, lease: LeaseId) -> Arc<TrialContext> {
        self.context.as_of(lease, &self.former)
    }

    /// Could a hop of it be granted now?
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.open_hops() > 0
    }

    /// Evaluations that a host is to be found for.
    pub fn open_evaluations(&self) -> impl Iterator<Item = (Epoch, &PendingEvaluation)> {
        let running = self.is_running();
        let open = self.evaluations.iter().filter(move |(_, e)| running && e.is_open());
        open.map(|(epoch, evaluation)| (*epoch, evaluation))
    }

    /// The version that an epoch ended with.
    #[must_use]
    pub fn version_after(&self, epoch: Epoch) -> Option<Version> {
        let mut of_epoch = self.history.iter().rev().filter(|record| record.epoch() == epoch);
        of_epoch.next().map(|record| record.version)
    }

    /// Has an epoch ended with this checkpoint? Those that a clone has of another trial have.
    #[must_use]
    pub fn has_ended_with(&self, epoch: Epoch, checkpoint: BlobRef) -> bool {
        let inherited = self.origin.is_some_and(|origin| epoch.0 < origin.epochs);
        let mut of_epoch = self.history.iter().rev().filter(|record| record.epoch() == epoch);
        inherited || of_epoch.next().is_some_and(|record| record.checkpoint == checkpoint)
    }

    /// The trial's evaluation outside the search of this name, once it has ended. The result of a checkpoint which was rolled
    /// back says nothing of the one that is the epoch's now.
    #[must_use]
    pub fn extra_result(&self, name: &RequestedEvaluation) -> Option<&ExtraResult> {
        let best = self.best.filter(|best| best.epoch == name.epoch);
        let is_current = |of: BlobRef| best.is_none_or(|best| best.checkpoint == of);
        self.extras.iter().find(|result| result.name == *name && is_current(result.checkpoint))
    }

    /// Where its first hop starts from.
    #[must_use]
    pub fn first_base(&self) -> Base {
        match &self.origin {
            Some(origin) => origin.base(),
            None => Base::first(self.initial_seed, self.initial_weights),
        }
    }

    /// The checkpoint that its next hop starts from.
    #[must_use]
    pub fn base(&self) -> Base {
        match self.checkpoint {
            Some(blob) => Base::Checkpoint { version: self.version, blob },
            None => self.first_base(),
        }
    }

    /// Trainer errors at its hops, by host: the most at one of them.
    #[must_use]
    pub fn hop_failures(&self) -> Cow<'_, BTreeMap<HostId, FailedBy>> {
        match &self.merging {
            None => Cow::Borrowed(&self.failures),
            Some(merging) => Cow::Owned(marks(merging.units.values().map(|unit| &unit.failures))),
        }
    }

    /// Trainer errors at all its open units that count against their hosts, by host.
    #[must_use]
    pub fn all_failures(&self) -> BTreeMap<HostId, FailedBy> {
        let evaluations = self.evaluations.values().map(|evaluation| &evaluation.failures);
        let merging = self.merging.iter().flat_map(|merging| merging.units.values());
        let shards = merging.map(|unit| &unit.failures);
        marks(std::iter::once(&self.failures).chain(shards).chain(evaluations))
    }

    /// Live leases of its hops and of its evaluations.
    #[must_use]
    pub fn live_leases(&self) -> Vec<LeaseId> {
        let evaluations = self.evaluations.values().flat_map(|e| e.live.iter().copied());
        self.live_hops().chain(evaluations).collect()
    }

    /// Live leases of its hops.
    pub fn live_hops(&self) -> impl Iterator<Item = LeaseId> + '_ {
        let merging = self.merging.iter().flat_map(Merging::live);
        self.live.iter().copied().chain(merging)
    }

    /// Every blob that it needs: its version and those that its leases refer to, its rule's state, its best, and what
    /// is to be evaluated.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let (has_last, has_best) = match self.stored {
            StoredCheckpoints::Needed => (true, true),
            StoredCheckpoints::Best => (false, true),
            StoredCheckpoints::Nothing => (false, false),
        };
        let best = self.best.filter(|_| has_best).map(|best| best.checkpoint);
        let origin = self.origin.filter(|_| has_last).map(|origin| origin.checkpoint);
        let evaluations = self.evaluations.values().chain(self.unevaluated.values());
        let evaluations = evaluations.map(|evaluation| evaluation.checkpoint);
        let merging = self.merging.iter().flat_map(Merging::blobs);
        let own = self.checkpoint.filter(|_| has_last).into_iter().chain(best);
        let kept = self.kept.values().copied();
        own.chain(evaluations).chain(merging).chain(kept).chain(origin)
    }
}

/// Trainer errors that count against hosts, the most at one unit.
#[must_use]
pub fn marks<'a>(
    units: impl IntoIterator<Item = &'a BTreeMap<HostId, FailedBy>>,
) -> BTreeMap<HostId, FailedBy> {
    let mut all: BTreeMap<HostId, FailedBy> = BTreeMap::new();
    for (host, failed) in units.into_iter().flatten() {
        if failed.last.kind.blames_host() {
            let entry = all.entry(*host).or_insert_with(|| failed.clone());
            entry.count = entry.count.max(failed.count);
        }
    }
    all
}

/// Is `value` better than `other`? Nothing that isn't finite is better than anything.
#[must_use]
pub(super) fn is_better(goal: Goal, value: f64, other: Option<f64>) -> bool {
    value.is_finite()
        && other.is_none_or(|other| match goal {
            Goal::Min => value < other,
            Goal::Max => value > other,
        })
}
