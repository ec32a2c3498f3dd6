//! A job of a scenario: what the core is told of it, and what is true of it.

use super::{quantity::float, surrogate::Surrogate};
use sojourn_model::ModelError;
use sojourn_protocol::{
    manifest::{DataManifest, Labels},
    quantity::{to_u64, to_usize},
    spec::{Architecture, JobSpec, TrialConfig},
    unit::Lease,
};
use sojourn_workgen::shards::ShardHost;
use std::sync::Arc;

/// Training takes about three forward passes: what a table says of a row is all three.
pub(crate) const PASSES: f64 = 3.0;

/// The cost of training on one row, by the name of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    pub(crate) name: String,
    /// Floating-point operations.
    pub(crate) flops: f64,
}

/// A job as it is.
#[derive(Debug, Clone)]
pub(crate) struct SimJob {
    pub(crate) name: String,
    pub(crate) spec: JobSpec,
    pub(crate) data: DataManifest,
    /// The different costs.
    pub(crate) costs: Vec<Cost>,
    /// Each trial's, as an index.
    pub(crate) trials: Vec<usize>,
    /// Of every checkpoint; `None`: as large as the core says.
    pub(crate) checkpoint_bytes: Option<u64>,
    /// Rows that an evaluation is of; 0: evaluations take no time.
    pub(crate) valid_rows: u64,
    /// The metric of so many results' version and of each multiple's is asked for.
    pub(crate) curve: Option<u32>,
    /// Do its hops really train?
    pub(crate) is_trained: bool,
    /// Where the losses of its evaluations come from, if nothing is trained.
    pub(crate) surrogate: Option<Arc<Surrogate>>,
    /// When it is submitted.
    pub(crate) at: u64,
    pub(crate) epochs: u32,
    /// On so many hosts is each shard; 0: on any.
    pub(crate) holders: u32,
}

impl SimJob {
    /// Floating-point operations of a trial's row; 0 of one that the search adds as it runs.
    pub(crate) fn flops(&self, trial: usize) -> f64 {
        self.cost(trial).map_or(0.0, |cost| cost.flops)
    }

    /// Floating-point operations of a row of a trial with this configuration, also where the search has added it.
    pub(crate) fn flops_of(&self, trial: usize, config: &TrialConfig) -> f64 {
        let known = self.cost(trial).map(|cost| cost.flops);
        let outputs = self.data.labels.outputs();
        known.or_else(|| flops(&config.model, &self.data.shape, outputs).ok()).unwrap_or(0.0)
    }

    /// The cost of training on one of a trial's rows.
    pub(crate) fn cost(&self, trial: usize) -> Option<&Cost> {
        self.trials.get(trial).and_then(|cost| self.costs.get(*cost))
    }

    /// Do its metrics say anything of its trials?
    pub(crate) const fn has_metrics(&self) -> bool {
        self.is_trained || self.surrogate.is_some()
    }

    /// Passes over the training data in all epochs.
    pub(crate) fn passes(&self) -> f64 {
        f64::from(self.epochs) * f64::from(self.spec.training.local_epochs)
    }

    /// Hops of the whole job.
    pub(crate) fn hops(&self) -> u64 {
        count(self.trials.len()) * u64::from(self.epochs) * count(self.data.train.len())
    }
}

/// Of a machine's hosts, what a job's shards depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fleet<'a> {
    /// Each host.
    pub(crate) hosts: &'a [ShardHost],
}

/// A job's specification, its costs, each trial's cost as an index, the shape of a row, and what labels are.
pub(crate) type Made = (JobSpec, Vec<Cost>, Vec<usize>, Vec<u32>, Labels);

/// Floating-point operations of training on one row.
pub(crate) fn flops(model: &Architecture, shape: &[u32], outputs: u32) -> Result<f64, ModelError> {
    Ok(float(sojourn_model::flops_per_row(model, shape, outputs)?) * PASSES)
}

/// The core counts jobs from 1, in the order in which they were submitted.
pub(crate) fn job_index(lease: &Lease) -> usize {
    to_usize(lease.unit.job().0.saturating_sub(1))
}

pub(crate) fn index(number: u32) -> usize {
    to_usize(number)
}

pub(crate) fn count(number: usize) -> u64 {
    to_u64(number)
}
