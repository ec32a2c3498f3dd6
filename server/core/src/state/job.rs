//! One job: its trials and its counts.

use super::{
    AtEnd, ExtraEvaluation, FoldFault, Lease, Merging, RequestedEvaluation,
    open::Open,
    trial::{Best, Trial, TrialEnd, is_better},
};
use crate::event::UnitKey;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId},
    manifest::{DataManifest, DataSplit},
    quantity::to_u64,
    report::Sums,
    seeds,
    spec::{JobSpec, OrderChoice, TrialConfig},
    time::{Millis, UnixMillis},
    unit::TrialContext,
};
use sojourn_workgen::Chain;
use std::collections::{BTreeMap, BTreeSet};

/// A job's durable state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// What was submitted.
    pub spec: JobSpec,
    /// Its data.
    pub data: DataManifest,
    /// The digest of both.
    pub key: Digest,
    /// When it was submitted.
    pub submitted_at: UnixMillis,
    /// How and when it ended.
    pub end: Option<(JobEnd, UnixMillis)>,
    /// Since when it is paused, where it is; a job that has ended isn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<UnixMillis>,
    /// How long it has stood still before: paused, or ended until it was extended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stood: Millis,
    /// What it does when its search has ended.
    #[serde(default)]
    pub at_end: AtEnd,
    /// Its trials; a [`TrialId`] is an index here.
    pub trials: Vec<Trial>,
    /// Evaluations outside the search that are to be done, in the order in which they were asked for.
    #[serde(default)]
    pub extras: Vec<ExtraEvaluation>,
    /// Units that could be granted now.
    #[serde(skip)]
    pub open: Open,
    /// Hosts with live leases, and how many each has.
    #[serde(skip)]
    pub hosts: BTreeMap<HostId, u32>,
    /// Visits that each shard still gets, from all running trials.
    pub load: Vec<u64>,
    /// Counts.
    pub counters: Counters,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// Every trial ended and at least one finished.
    Finished,
    /// Every trial failed.
    Failed,
    /// Its user ended it.
    Cancelled,
}

/// What is counted for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "see the fields of `JobView`")]
pub struct Counters {
    pub leases_live: u64,
    pub leases_expired: u64,
    pub leases_returned: u64,
    pub superseded: u64,
    pub rejected: u64,
    pub evaluations: u64,
    pub train_micros: u64,
    #[serde(default)]
    pub copies: u64,
    /// Work that second copies repeat, counted as [`Job::work_of`] does.
    #[serde(default)]
    pub copied: u64,
}

impl Job {
    /// A new job. `spec` has been checked: its space isn't empty and its models fit the data.
    pub(crate) fn new(
        id: JobId,
        spec: JobSpec,
        data: DataManifest,
        key: Digest,
        at_end: AtEnd,
        at: UnixMillis,
    ) -> Self {
        let trials = sojourn_workgen::trials(&spec).unwrap_or_default();
        let trials: Vec<Trial> = (0u32..)
            .zip(trials)
            .map(|(n, trial)| new_trial(&spec, &data, TrialId(n), trial))
            .collect();
        let visits = to_u64(trials.len()) * u64::from(spec.training.epochs);
        let load = vec![visits; data.train.len()];
        let counters = Counters::default();
        Self {
            id,
            spec,
            data,
            key,
            submitted_at: at,
            end: None,
            paused_at: None,
            stood: Millis(0),
            at_end,
            open: Open::of(&trials),
            trials,
            extras: Vec::new(),
            hosts: BTreeMap::new(),
            load,
            counters,
        }
    }

    /// A trial by id.
    #[must_use]
    pub fn trial(&self, trial: TrialId) -> Option<&Trial> {
        self.trials.get(usize::try_from(trial.0).ok()?)
    }

    pub(super) fn trial_mut(&mut self, trial: TrialId) -> Option<&mut Trial> {
        self.trials.get_mut(usize::try_from(trial.0).ok()?)
    }

    /// Every blob that its trials train on or start from.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.data.blobs().chain(self.spec.blobs())
    }

    /// A host has got a lease of the job.
    pub(super) fn employs(&mut self, host: HostId) {
        *self.hosts.entry(host).or_default() += 1;
    }

    /// A lease of the job lives no more.
    pub(super) fn dismisses(&mut self, host: HostId) {
        if let Some(leases) = self.hosts.get_mut(&host) {
            *leases = leases.saturating_sub(1);
            if *leases == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Something has happened to a trial's hop or evaluation in this epoch.
    pub(super) fn renew_open(&mut self, trial: TrialId, epoch: Epoch) {
        let trial = usize::try_from(trial.0).ok().and_then(|index| self.trials.get(index));
        if let Some(trial) = trial {
            self.open.renew(trial, epoch);
        }
    }

    /// Not finished, failed or cancelled.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// Running and not paused: its units may be granted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_running() && self.paused_at.is_none()
    }

    /// Units of it that could be granted to somebody.
    #[must_use]
    pub fn supply(&self) -> usize {
        let of_trials = if self.is_open() { self.open.count() } else { 0 };
        let extras: &[ExtraEvaluation] = if self.has_open_extras() { &self.extras } else { &[] };
        of_trials + extras.iter().filter(|extra| extra.live.is_empty()).count()
    }

    /// Thousands of operations that a lease's hops take, forward alone.
    #[must_use]
    pub fn work_of(&self, lease: &Lease) -> u64 {
        let UnitKey::Train { trial, shard, .. } = lease.unit else { return 0 };
        let Some(trial) = self.trial(trial) else { return 0 };
        let way = std::iter::once(shard).chain(lease.then.iter().copied());
        let batches = way.map(|shard| u64::from(trial.chain.remaining_in(shard))).sum();
        trial.work_of(batches)
    }

    /// The same of all that its trials are to be trained in all.
    #[must_use]
    pub fn work(&self) -> u64 {
        let of_trials = self.trials.iter().map(|trial| trial.work_of(trial.context.total_steps));
        of_trials.fold(0, u64::saturating_add)
    }

    /// The visits that are left after these shards have had one of theirs each.
    pub(super) fn load_after(
        &self,
        visited: impl IntoIterator<Item = ShardId>,
    ) -> Result<Vec<u64>, FoldFault> {
        let below_zero = FoldFault::CountBelowZero("visits to a shard");
        let mut load = self.load.clone();
        for shard in visited {
            let left = load.get_mut(sojourn_protocol::unit::shard_index(shard));
            let left = left.ok_or_else(|| below_zero.clone())?;
            *left = left.checked_sub(1).ok_or_else(|| below_zero.clone())?;
        }
        Ok(load)
    }

    /// The best trial, ties to the lower id.
    #[must_use]
    pub fn best(&self) -> Option<(TrialId, Best)> {
        let mut best: Option<(TrialId, Best)> = None;
        for trial in &self.trials {
            if let Some(candidate) = trial.best
                && is_better(self.spec.search.goal, candidate.value, best.map(|(_, b)| b.value))
            {
                best = Some((trial.id, candidate));
            }
        }
        best
    }

    /// Counts anew the visits that running trials still owe each shard.
    pub(super) fn recount_load(&mut self) {
        let running = self.trials.iter().filter(|trial| trial.is_running());
        let mut load = vec![0; self.load.len()];
        for trial in running {
            let later =
                u64::from(trial.epochs()).saturating_sub(u64::from(trial.chain.epoch().0) + 1);
            for (load, shard) in load.iter_mut().zip((0u32..).map(ShardId)) {
                *load += later + u64::from(trial.chain.next(shard).is_some());
            }
        }
        self.load = load;
    }

    /// Has every trial ended?
    #[must_use]
    pub fn search_ended(&self) -> bool {
        !self.trials.iter().any(Trial::is_running)
    }

    /// The evaluation of the best trial on the test data.
    #[must_use]
    pub fn test_of_best(&self) -> Option<RequestedEvaluation> {
        let (trial, best) = self.best()?;
        Some(RequestedEvaluation { trial, split: DataSplit::Test, epoch: best.epoch })
    }

    /// Ends the job where all its trials have, and where its best trial was tested if it is to be. Opens
    /// that test and gives its checkpoint, which is referred to from now on, where it is the time for it.
    pub(super) fn settle(&mut self, at: UnixMillis) -> Option<BlobRef> {
        if self.end.is_some() || !self.search_ended() {
            return None;
        }
        let finished = self.trials.iter().any(|trial| trial.end == Some(TrialEnd::Finished));
        if finished
            && self.at_end == AtEnd::Test
            && let Some(test) = self.test_of_best()
        {
            if self.extra(&test).is_some() {
                return None;
            }
            if self.extra_result(&test).is_none()
                && let Some(checkpoint) = self.open_extra(test)
            {
                return Some(checkpoint);
            }
        }
        self.end_as(if finished { JobEnd::Finished } else { JobEnd::Failed }, at);
        None
    }

    /// Has these trials go on to `epochs` epochs; the job runs again where it had ended. Leases up to
    /// `until` have been granted before.
    pub(super) fn extend(
        &mut self,
        trials: &[TrialId],
        epochs: u32,
        until: LeaseId,
        at: UnixMillis,
    ) {
        for trial in self.trials.iter_mut().filter(|trial| trials.contains(&trial.id)) {
            let batch_size = trial.context.config.training.batch_size;
            trial.extend(epochs, self.data.steps_per_epoch(batch_size), until);
        }
        if let Some((_, ended)) = self.end.take_if(|_| !trials.is_empty()) {
            self.stood_since(ended, at);
        }
        self.recount_load();
    }

    pub(super) fn end_as(&mut self, end: JobEnd, at: UnixMillis) {
        self.end = Some((end, at));
        self.resume(at);
    }

    /// It is paused no more.
    pub(super) fn resume(&mut self, at: UnixMillis) {
        if let Some(since) = self.paused_at.take() {
            self.stood_since(since, at);
        }
    }

    /// Not paused, and evaluations outside the search are to be done.
    #[must_use]
    pub fn has_open_extras(&self) -> bool {
        self.paused_at.is_none() && !self.extras.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(length: &Millis) -> bool {
    length.0 == 0
}

/// What the units of a trial with this configuration have in common.
pub(crate) fn context(spec: &JobSpec, data: &DataManifest, config: TrialConfig) -> TrialContext {
    let training = config.training;
    TrialContext {
        config,
        shape: data.shape.clone(),
        outputs: data.labels.outputs(),
        scaling: data.scaling,
        total_steps: u64::from(training.epochs) * data.steps_per_epoch(training.batch_size),
        pinned_threads: spec.placement.reproducible.then_some(spec.placement.threads),
    }
}

fn new_trial(
    spec: &JobSpec,
    data: &DataManifest,
    id: TrialId,
    trial: sojourn_workgen::Trial,
) -> Trial {
    let training = trial.config.training;
    let context = context(spec, data, trial.config);
    let checkpoint_bytes =
        sojourn_model::CheckpointLayout::of(&context).map_or(0, |layout| layout.file_bytes());
    let flops_per_row =
        sojourn_model::flops_per_row(&context.config.model, &context.shape, context.outputs)
            .unwrap_or(1);
    let chain = Chain::new(training.epochs, training.batch_size, &data.train);
    Trial {
        id,
        choices: trial.choices,
        initial_seed: seeds::initial_weights(spec.seed, id),
        given: spec.initial_weights(trial.model),
        checkpoint_bytes,
        flops_per_row,
        context: context.into(),
        former: Vec::new(),
        version: sojourn_protocol::ids::Version(0),
        checkpoint: None,
        end: None,
        stopped: None,
        class: None,
        mixed: false,
        history: Vec::new(),
        train_sums: Sums::default(),
        curve: Vec::new(),
        best: None,
        extras: Vec::new(),
        evaluations: BTreeMap::new(),
        live: BTreeSet::new(),
        awaiting: std::collections::VecDeque::new(),
        failures: BTreeMap::new(),
        merging: (spec.placement.order == OrderChoice::Merge).then(|| Merging::new(&chain)),
        chain,
        check: None,
        verdicts: BTreeMap::new(),
        kept: BTreeMap::new(),
        void_until: LeaseId(0),
    }
}
