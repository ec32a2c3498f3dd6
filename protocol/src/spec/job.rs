//! A whole job, as its user means it.

use super::{
    Architecture, CombinationRule, Constraint, DataSpec, ExportedGraph, Metric, ModelSpace,
    OwnMetric, PastJob, PlacementSpec, SearchMethod, Split, Stopping, TrainingSpace, TrialConfig,
    conditional::{Passes, Unclosed},
    data::DEFAULT_DATA_SEED,
    dimension::Chooser,
};
use crate::{
    cross_validation::{Fold, MAX_FOLDS, MIN_FOLDS},
    digest::BlobRef,
    manifest::DataManifest,
    money::MicroUsd,
    quantity::to_usize,
    time::Millis,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Sums of a graph that a message names.
const SHOWN_SUMS: usize = 10;

/// A job: data, models, training, search, placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// For people; not unique.
    pub name: String,
    /// Everything random in the job follows from it, but where `data.seed` says otherwise how rows are dealt to shards.
    #[serde(with = "crate::decimal")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::decimal::Seed))]
    pub seed: u64,
    /// Where `seed` is a dimension of the search, its values: each configuration is trained once with each. The first is
    /// `seed` too, from which the shards and sampled configurations follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::decimal::list")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::decimal::Seed>))]
    pub seeds: Vec<u64>,
    /// Where the data is and how it is cut.
    pub data: DataSpec,
    /// One entry per `[[model]]` table, at least one.
    pub models: Vec<ModelSpace>,
    /// Initial weights of some of these tables' trials. The others start from random weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<Init>,
    /// How trials are trained.
    pub training: TrainingSpace,
    /// How the space is searched.
    pub search: SearchSpec,
    /// On which machines and in which order.
    pub placement: PlacementSpec,
}

impl JobSpec {
    /// The configuration of a `[[model]]` table that `chooser` takes; `None` if there is none.
    pub fn close(&self, model: usize, chooser: &mut dyn Chooser) -> Option<TrialConfig> {
        self.try_close(model, chooser).ok()
    }

    /// The configuration of a `[[model]]` table that `chooser` takes.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_close(
        &self,
        model: usize,
        chooser: &mut dyn Chooser,
    ) -> Result<TrialConfig, Unclosed> {
        let space = self.models.get(model).ok_or(Unclosed::Empty)?;
        let prefix = format!("model[{model}]");
        Passes::new(chooser).run(|chooser| {
            Some(TrialConfig {
                model: space.close(&prefix, chooser)?,
                training: self.training.close(chooser)?,
            })
        })
    }

    /// Gives a configuration back what its exported graph is, of which only the file is named.
    pub fn restore_graph(&self, model: u32, config: &mut TrialConfig) {
        let Architecture::Graph(graph) = &mut config.model else { return };
        let Some(named) = &graph.exported else { return };
        let table = usize::try_from(model).ok().and_then(|at| self.models.get(at));
        let mut exported = table.into_iter().flat_map(ModelSpace::exported);
        if let Some(whole) = exported.find(|exported| exported.file == named.file) {
            graph.exported = Some(whole.clone());
        }
    }

    /// The initial weights of a `[[model]]` table's trials, where it names a model file.
    #[must_use]
    pub fn initial_weights(&self, model: u32) -> Option<BlobRef> {
        self.init.iter().find(|init| init.model == model).map(|init| init.parameters)
    }

    /// Are its seeds possible: different ones, and the first the job's own?
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_seeds(&self) -> Result<(), String> {
        if self.seeds.first().is_some_and(|first| *first != self.seed) {
            return Err("`seed` isn't the first of `seeds`".into());
        }
        let distinct: BTreeSet<u64> = self.seeds.iter().copied().collect();
        if distinct.len() == self.seeds.len() {
            Ok(())
        } else {
            Err("`seeds` has one twice".into())
        }
    }

    /// How many trials each configuration has: one for each seed and fold.
    #[must_use]
    pub fn trials_per_configuration(&self) -> usize {
        self.seeds.len().max(1).saturating_mul(to_usize(self.search.folds.unwrap_or(1).max(1)))
    }

    /// The fold of this number.
    #[must_use]
    pub fn fold(&self, number: u32) -> Option<Fold> {
        self.search.folds.map(|of| Fold { number, of })
    }

    /// Can it have folds of this data, if it has any?
    ///
    /// # Errors
    /// The reason why not.
    pub fn check_folds(&self, data: &DataManifest) -> Result<(), String> {
        let Some(folds) = self.search.folds else {
            if self.search.refit {
                return Err("`search.refit` needs `search.folds`".into());
            }
            return match self.data.valid {
                Split::Folds => {
                    Err("the data has no validation rows, and `search.folds` isn't given".into())
                }
                Split::Ratio(_) | Split::File(_) | Split::Source(_) => Ok(()),
            };
        };
        if !(MIN_FOLDS..=MAX_FOLDS).contains(&folds) {
            return Err(format!("`search.folds` is {folds}; {MIN_FOLDS} to {MAX_FOLDS} is wanted"));
        }
        if self.data.valid != Split::Folds || !data.valid.is_empty() {
            return Err("`search.folds` needs data without validation rows of its own".into());
        }
        if let Some(cut) = self.data.group_folds.filter(|cut| !cut.is_multiple_of(folds)) {
            return Err(format!(
                "`search.folds` is {folds}, and the data was cut so that groups of rows are together in {cut} folds: {cut}, or a divisor of it, is wanted"
            ));
        }
        let shards = data.train.len();
        if shards < to_usize(folds) {
            return Err(format!("{shards} training shards are too few for {folds} folds"));
        }
        self.search.method.check_folds().map_err(|why| format!("`search.folds` {why}"))
    }

    /// The seed by which rows are dealt to shards and splits.
    #[must_use]
    pub fn data_seed(&self) -> u64 {
        self.data.seed.unwrap_or(self.seed)
    }

    /// Writes that seed down for a job file that says none: the same for every seed of the job, so that jobs that differ in
    /// their seeds alone have the same shards. A seed that is the job's own is left out, as in jobs from before there was the
    /// key.
    pub fn name_data_seed(&mut self) {
        let seed = self.data.seed.unwrap_or(DEFAULT_DATA_SEED);
        self.data.seed = Some(seed).filter(|seed| *seed != self.seed);
    }

    /// Every blob that the job needs besides its data.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.init.iter().map(|init| init.parameters).chain(self.graphs())
    }

    /// Are users' own models among its models?
    #[must_use]
    pub fn has_graphs(&self) -> bool {
        self.models.iter().any(|space| matches!(space, ModelSpace::Graph(_)))
    }

    /// Does every model give the metric by which trials are compared? To be asked once all graphs are exported.
    ///
    /// # Errors
    /// What is missing, and what there is.
    pub fn check_metric_of_graphs(&self) -> Result<(), String> {
        if !self.has_graphs() {
            return Ok(());
        }
        self.check_rules()?;
        let (metric, search) = (self.search.metric.name(), &self.search);
        let sum = match (&search.metric, search.own_sum()) {
            (_, Some(sum)) => sum,
            (Metric::Loss, _) => return Ok(()),
            (Metric::Accuracy, _) => "accuracy",
            (Metric::TopK | Metric::F1 | Metric::Rmse | Metric::Own(_), _) => {
                let given = self.models.iter().flat_map(ModelSpace::exported).next();
                let given = given.map_or_else(String::new, |graph| {
                    format!(": the model's `evaluate` gives {}", listed(&graph.sums))
                });
                return Err(format!("metric `{metric}` is none of a graph's{given}"));
            }
        };
        for space in &self.models {
            if !matches!(space, ModelSpace::Graph(_)) {
                if search.metric == Metric::Accuracy {
                    continue;
                }
                return Err(format!("metric `{metric}` is none of built-in models"));
            }
            let lacks = |graph: &&ExportedGraph| graph.sums.iter().all(|given| given != sum);
            if let Some(graph) = space.exported().find(lacks) {
                let given = listed(&graph.sums);
                return Err(format!(
                    "metric `{metric}` needs the sum `{sum}`, which the model's `evaluate` doesn't give: it gives {given}"
                ));
            }
            let is_array = |graph: &&ExportedGraph| graph.arrays.contains_key(sum);
            if search.own().is_some_and(|own| !search.metrics.contains_key(own))
                && space.exported().any(|graph| is_array(&graph))
            {
                return Err(format!(
                    "metric `{metric}` is an array, and no number to compare by: `[metrics]` makes numbers of arrays"
                ));
            }
        }
        Ok(())
    }

    /// Do the graphs' sums have the shapes that the rules of `[metrics]` take?
    fn check_rules(&self) -> Result<(), String> {
        let graphs = || self.models.iter().flat_map(ModelSpace::exported);
        for graph in graphs() {
            graph.check_arrays()?;
        }
        for (name, OwnMetric { of, rule }) in &self.search.metrics {
            let mut giving = graphs().filter(|graph| graph.sums.contains(of)).peekable();
            if giving.peek().is_none() && graphs().next().is_some() {
                return Err(format!(
                    "`metrics.{name}` needs the sum `{of}`, which no model's `evaluate` gives"
                ));
            }
            let shapes = giving.map(|graph| graph.arrays.get(of));
            let faults =
                shapes.filter_map(|shape| Some((rule.fault_of(shape.map(Vec::as_slice))?, shape)));
            if let Some((fault, shape)) = faults.into_iter().next() {
                let is = shape.map_or_else(|| "a number".into(), |shape| format!("{shape:?}"));
                return Err(format!("`metrics.{name}` {fault}; `{of}` is {is}"));
            }
        }
        Ok(())
    }

    /// The files of all exported graphs, each once.
    pub fn graphs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let exported = self.models.iter().flat_map(ModelSpace::exported);
        exported.map(|graph| graph.file).collect::<BTreeSet<_>>().into_iter()
    }
}

/// The names of sums for a message, the first ones of many.
fn listed(sums: &[String]) -> String {
    let shown: Vec<String> = sums.iter().take(SHOWN_SUMS).map(|sum| format!("`{sum}`")).collect();
    let more = match sums.len().saturating_sub(SHOWN_SUMS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// `init` of a `[[model]]` table: its trials start from an exported model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Init {
    /// The table, counted from 0.
    pub model: u32,
    /// The model file, relative to the job file; for people.
    pub file: String,
    /// The canonical file of its parameters and buffers.
    pub parameters: BlobRef,
}

/// `[search]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchSpec {
    /// The procedure.
    pub method: SearchMethod,
    /// The combinations that are trials.
    #[serde(default, skip_serializing_if = "CombinationRule::is_default")]
    pub combinations: CombinationRule,
    /// Folds of cross-validation: each configuration is trained so many times, each time without another of the folds, on which it is
    /// evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<u32>,
    /// Whether the best configuration is trained on all folds in the end, for as many epochs as its folds' best had in the mean.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
    /// Constraints that every trial satisfies: combinations that don't are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub constraints: Vec<Constraint>,
    /// The metric that trials are compared by.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub metric: Metric,
    /// Is more better?
    pub goal: Goal,
    /// How the metrics of users' own models follow from their sums, by name; a name that isn't here is the mean of the sum
    /// that it names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, OwnMetric>,
    /// k of top-k accuracy; `None` is [`DEFAULT_TOP_K`] where there are more classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// A trial ends once its metric is as good as this after an epoch; the others go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The search ends when it has gone on for so long; what is trained by then is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<Millis>,
    /// Epochs that all trials together may train.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_epochs: Option<u64>,
    /// The most that all trials together may cost on bought machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost: Option<MicroUsd>,
    /// The results of an earlier job, which count as tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Box<PastJob>>,
    /// The trials whose epochs come first where there are more trials than slots.
    #[serde(default, skip_serializing_if = "Spread::is_default")]
    pub spread: Spread,
    /// Which trials end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
}

/// A budget of all trials of a search together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchBudget {
    /// Epochs that are trained.
    Epochs(u64),
    /// The cost of bought machines.
    Cost(MicroUsd),
}

impl fmt::Display for SearchBudget {
    /// As in "stopped after": `7 epochs`, `a cost of $2.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epochs(1) => write!(f, "1 epoch"),
            Self::Epochs(epochs) => write!(f, "{epochs} epochs"),
            Self::Cost(cost) => write!(f, "a cost of {cost}"),
        }
    }
}

/// `search.spread`: whose epochs come first where there are more trials than slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Trials that are behind: all can be compared early.
    #[default]
    Breadth,
    /// Trials that were begun: some have ended early.
    Depth,
}

impl Spread {
    /// Is it what a specification leaves out?
    #[must_use]
    pub const fn is_default(&self) -> bool {
        matches!(self, Self::Breadth)
    }
}

/// k of top-k accuracy where a job doesn't say: ImageNet's.
pub const DEFAULT_TOP_K: u32 = 5;

/// The direction of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Less is better.
    Min,
    /// More is better.
    Max,
}
