//! One job: its trials and its counts.

use super::{
    AskedRollback, AtEnd, DataSizes, ExtraEvaluation, FoldFault, Lease, Merging,
    RequestedEvaluation, SearchProgress, Spent,
    disk::KeptBytes,
    is_default,
    load::load_of,
    open::Open,
    trial::{StoredCheckpoints, Trial, TrialEnd},
};
use crate::event::{By, UnitKey};
use serde::{Deserialize, Serialize};
use sojourn_model::{CheckpointLayout, ModelError};
use sojourn_protocol::{
    api::Space,
    cross_validation::Fold,
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId},
    manifest::{DataManifest, DataSplit, Scaling, Shard},
    metrics::Counting,
    quantity::SaturatingFrom as _,
    report::Sums,
    seeds,
    spec::{JobSpec, OrderChoice, SearchBudget},
    time::{Millis, UnixMillis},
    unit::{TrialContext, shard_index},
};
use sojourn_workgen::Chain;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// A job's durable state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The job's id.
    pub id: JobId,
    /// The submitted job file; with another space, where that was changed.
    pub spec: JobSpec,
    /// The space that was submitted, where it was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<Box<Space>>,
    /// The job's data.
    pub data: DataManifest,
    /// The sizes of the data.
    #[serde(skip)]
    pub sizes: DataSizes,
    /// Bytes of the blobs that are kept because of it.
    #[serde(skip)]
    pub(super) kept: KeptBytes,
    /// The digest of both: the same submission again gets the same job.
    pub key: Digest,
    /// The user who submitted the job; `None` where that was before jobs had owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<By>,
    /// When it was submitted.
    pub submitted_at: UnixMillis,
    /// How and when it ended.
    pub end: Option<(JobEnd, UnixMillis)>,
    /// Whether the job has ended, and lost its data and all its checkpoints but the best model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thinned: bool,
    /// The user's note about the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Rollbacks after a refutation that wait for the user's word, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<HostId, AskedRollback>,
    /// Since when it is paused. A job that has ended isn't paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<UnixMillis>,
    /// How long it was paused before, or had ended until it was extended.
    #[serde(default, rename = "stood", skip_serializing_if = "is_zero")]
    pub paused_for: Millis,
    /// The time is up: nothing more is trained, and for so long what is trained is still evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Millis>,
    /// The budget that its trials have used up together, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_up: Option<(SearchBudget, UnixMillis)>,
    /// The epochs and money that its trials had used up together when its budgets last began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spent,
    /// The step after the end of its search.
    #[serde(default)]
    pub at_end: AtEnd,
    /// How far its search has got; [`Job::search_progress`] says it of every job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub search: SearchProgress,
    /// Trials whose turn comes before or after that of others, which have 0: a higher one comes first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub priorities: BTreeMap<TrialId, i32>,
    /// The job's trials; a [`TrialId`] is an index here.
    pub trials: Vec<Trial>,
    /// The trials that train a configuration on all folds, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refits: Vec<TrialId>,
    /// Requested evaluations that are open, in the order of the requests.
    #[serde(default)]
    pub extras: Vec<ExtraEvaluation>,
    /// Units that could be granted now.
    #[serde(skip)]
    pub open: Open,
    /// Hosts with live leases, and how many each has.
    #[serde(skip)]
    pub hosts: BTreeMap<HostId, u32>,
    /// For each shard, how many times running trials will still train on it.
    pub load: Vec<u64>,
    /// The job's counts.
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
    /// The job's user ended it.
    Cancelled,
}

/// Counts for views.
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
    #[serde(rename = "copies", default)]
    pub speculative_leases: u64,
    /// Work that speculative leases repeat, as [`Job::work_of`] counts it.
    #[serde(rename = "copied", default)]
    pub speculative_work: u64,
}

impl Job {
    /// A new job. A submission is checked before it is journalled, so this fails only where a journal is damaged.
    ///
    /// # Errors
    /// [`FoldFault::InvalidSpec`] where its search has no trials, [`FoldFault::InvalidModel`] where one of its models doesn't
    /// fit the data.
    pub fn new(
        id: JobId,
        spec: JobSpec,
        data: DataManifest,
        key: Digest,
        at_end: AtEnd,
        at: UnixMillis,
    ) -> Result<Self, FoldFault> {
        let all = sojourn_workgen::trials(&spec);
        let all = all.map_err(|source| FoldFault::InvalidSpec { job: id, source })?;
        let wanted = sojourn_workgen::search::wanted(&spec, &all);
        let suggested =
            wanted.min(u32::saturating_from(all.len() / spec.trials_per_configuration()));
        let is_whole = suggested == wanted;
        let search = SearchProgress { suggested, wanted, ..SearchProgress::default() };
        let search = if is_whole { SearchProgress::default() } else { search };
        let of_each = spec.search.folds.unwrap_or(1).max(1);
        let trials = (0u32..).zip(all).map(|(n, trial)| {
            let trial_id = TrialId(n);
            let new = new_trial(&spec, &data, trial_id, n / of_each, trial);
            new.map_err(|source| FoldFault::InvalidModel { job: id, trial: trial_id, source })
        });
        let trials: Vec<Trial> = trials.collect::<Result<_, _>>()?;
        let load = match spec.search.folds {
            Some(_) => load_of(&trials, data.train.len()),
            // All visit the same shards: jobs may have very many trials.
            None => {
                let epochs = trials.iter().map(|trial| u64::from(trial.chain.epochs()));
                vec![epochs.sum(); data.train.len()]
            }
        };
        let counters = Counters::default();
        let mut job = Self {
            id,
            sizes: DataSizes::of(&data, spec.search.folds),
            kept: KeptBytes::default(),
            spec,
            submitted: None,
            data,
            key,
            owner: None,
            submitted_at: at,
            end: None,
            thinned: false,
            note: String::new(),
            asked: BTreeMap::new(),
            paused_at: None,
            paused_for: Millis(0),
            grace: None,
            used_up: None,
            spent: Spent::default(),
            at_end,
            search,
            priorities: BTreeMap::new(),
            open: Open::of(&trials),
            trials,
            refits: Vec::new(),
            extras: Vec::new(),
            hosts: BTreeMap::new(),
            load,
            counters,
        };
        job.kept = job.count_kept();
        Ok(job)
    }

    /// A trial by id.
    #[must_use]
    pub fn trial(&self, trial: TrialId) -> Option<&Trial> {
        self.trials.get(usize::try_from(trial.0).ok()?)
    }

    /// Rows that a whole hop over a shard trains on; 0 of none.
    #[must_use]
    pub fn rows_of_hop(&self, shard: ShardId) -> u64 {
        let rows = self.data.train.get(shard_index(shard)).map_or(0, |shard| shard.rows);
        u64::from(rows) * u64::from(self.spec.training.local_epochs)
    }

    /// The shards of a split that a trial is evaluated on.
    #[must_use]
    pub fn evaluated_shards(&self, trial: &Trial, split: DataSplit) -> Cow<'_, [Shard]> {
        self.data.split_of(trial.fold, split)
    }

    /// The counts of the search's own evaluations of a trial. A user's own model counts what its code says.
    #[must_use]
    pub fn counting(&self, trial: &Trial) -> Counting {
        match trial.context.config.model.exported() {
            Some(_) => Counting::default(),
            None => self.spec.search.counting(&self.data.labels),
        }
    }

    /// The same of evaluations outside the search.
    #[must_use]
    pub fn full_counting(&self, trial: &Trial) -> Counting {
        match trial.context.config.model.exported() {
            Some(_) => Counting::default(),
            None => self.spec.search.full_counting(&self.data.labels),
        }
    }

    pub(super) fn trial_mut(&mut self, trial: TrialId) -> Option<&mut Trial> {
        self.trials.get_mut(usize::try_from(trial.0).ok()?)
    }

    /// Every blob that its trials train on or start from; of a job that was thinned, what its models need to be used.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let scaling = match self.data.scaling {
            Scaling::Standard(blob) => Some(blob),
            Scaling::None | Scaling::Constant(_) => None,
        };
        let graphs: BTreeSet<BlobRef> = self.spec.graphs().collect();
        let all = self.data.blobs().chain(self.spec.blobs());
        all.filter(move |blob| !self.thinned || Some(*blob) == scaling || graphs.contains(blob))
    }

    /// A host was granted a lease of the job.
    pub(super) fn add_host(&mut self, host: HostId) {
        *self.hosts.entry(host).or_default() += 1;
    }

    /// A lease of the job has ended.
    pub(super) fn remove_host(&mut self, host: HostId) {
        if let Some(leases) = self.hosts.get_mut(&host) {
            *leases = leases.saturating_sub(1);
            if *leases == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Updates the index of open units: a trial's hops, and its evaluation of an epoch.
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

    /// The priority of a trial among those of the job: 0 for most; a higher one comes first.
    #[must_use]
    pub fn priority_of(&self, trial: TrialId) -> i32 {
        self.priorities.get(&trial).copied().unwrap_or_default()
    }

    /// Running and not paused: its units may be granted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_running() && self.paused_at.is_none()
    }

    /// How many of its units could be granted.
    #[must_use]
    pub fn supply(&self) -> usize {
        let of_trials = if self.is_open() { self.open.count() } else { 0 };
        let extras: &[ExtraEvaluation] = if self.has_open_extras() { &self.extras } else { &[] };
        of_trials + extras.iter().filter(|extra| extra.live.is_empty()).count()
    }

    /// The forward passes of a lease's hops, in thousands of operations.
    #[must_use]
    pub fn work_of(&self, lease: &Lease) -> u64 {
        let UnitKey::Train { trial, shard, .. } = lease.unit else { return 0 };
        let Some(trial) = self.trial(trial) else { return 0 };
        let way = std::iter::once(shard).chain(lease.then.iter().copied());
        let batches = way.map(|shard| u64::from(trial.chain.remaining_in(shard))).sum();
        trial.work_of(batches)
    }

    /// The same of all epochs of all trials.
    #[must_use]
    pub fn work(&self) -> u64 {
        let of_trials = self.trials.iter().map(|trial| trial.work_of(trial.context.total_steps));
        of_trials.fold(0, u64::saturating_add)
    }

    /// Has every trial ended, and are there no more to come?
    #[must_use]
    pub fn search_ended(&self) -> bool {
        !self.search.is_open() && !self.trials.iter().any(Trial::is_running)
    }

    /// The evaluation of the best trial on the test data.
    #[must_use]
    pub fn test_of_best(&self) -> Option<RequestedEvaluation> {
        let (trial, best) = self.best()?;
        Some(best.test_of(trial))
    }

    /// Ends the job where all its trials have ended, and its best trial was tested if that is wanted. Where that test
    /// is due, it is opened: then the checkpoint is given, to which the job refers from now on.
    pub(super) fn settle(&mut self, at: UnixMillis) -> Option<BlobRef> {
        if self.end.is_some() || !self.search_ended() || self.refit_due().is_some() {
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

    pub(super) fn end_as(&mut self, end: JobEnd, at: UnixMillis) {
        self.end = Some((end, at));
        self.resume(at);
    }

    /// Ends a pause.
    pub(super) fn resume(&mut self, at: UnixMillis) {
        if let Some(since) = self.paused_at.take() {
            self.was_paused_since(since, at);
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

impl Job {
    /// The chain of a trial that has trained nothing yet, and is to train so many epochs in all.
    pub(super) fn new_chain(&self, trial: &Trial, epochs: u32) -> Chain {
        let chain = new_chain(&self.spec, &self.data, trial.id, trial.fold, epochs, &trial.context);
        match trial.origin {
            None => chain,
            Some(origin) => chain.after(origin.epochs, origin.step),
        }
    }
}

fn new_chain(
    spec: &JobSpec,
    data: &DataManifest,
    trial: TrialId,
    fold: Option<Fold>,
    epochs: u32,
    context: &TrialContext,
) -> Chain {
    let chain = Chain::new(epochs, context.config.training.minibatches(), &data.train);
    let chain = chain.without_fold(fold);
    if spec.placement.has_fixed_visits() {
        chain.with_fixed_visits(spec.seed, trial)
    } else {
        chain
    }
}

/// A trial that has trained nothing; `configuration` is the number of its configuration, as [`Job::configurations`] counts them.
pub(super) fn new_trial(
    spec: &JobSpec,
    data: &DataManifest,
    id: TrialId,
    configuration: u32,
    trial: sojourn_workgen::Trial,
) -> Result<Trial, ModelError> {
    let training = trial.config.training;
    let fold = trial.fold.and_then(|number| spec.fold(number));
    let context = TrialContext::of(spec, data, trial.config, fold);
    let checkpoint_bytes = CheckpointLayout::of(&context)?.file_bytes();
    let flops_per_row =
        sojourn_model::flops_per_row(&context.config.model, &context.shape, context.outputs)?;
    let configuration = TrialId(configuration);
    let epochs =
        sojourn_workgen::search::first_epochs(&spec.search, configuration, training.epochs);
    let chain = new_chain(spec, data, id, fold, epochs, &context);
    Ok(Trial {
        id,
        choices: trial.choices,
        seed: trial.seed,
        fold,
        refit: None,
        initial_seed: seeds::initial_weights(trial.seed.unwrap_or(spec.seed), id),
        initial_weights: spec.initial_weights(trial.model),
        origin: None,
        replaces: None,
        model: trial.model,
        checkpoint_bytes,
        flops_per_row,
        context: context.into(),
        former: Vec::new(),
        version: sojourn_protocol::ids::Version(0),
        checkpoint: None,
        end: None,
        stopped: None,
        training_over: false,
        is_exempt: false,
        class: None,
        mixed: false,
        history: Vec::new(),
        train_sums: Sums::default(),
        curve: Vec::new(),
        best: None,
        extras: Vec::new(),
        evaluations: BTreeMap::new(),
        unevaluated: BTreeMap::new(),
        live: BTreeSet::new(),
        awaiting: std::collections::VecDeque::new(),
        failures: BTreeMap::new(),
        merging: (spec.placement.order == OrderChoice::Merge)
            .then(|| Merging::new(&chain, spec.placement.merge_in_flight)),
        chain,
        residence: None,
        verification: None,
        verdicts: BTreeMap::new(),
        kept: BTreeMap::new(),
        void_until: LeaseId(0),
        stored: StoredCheckpoints::Needed,
    })
}
