//! A trial that is added to a job, as its event says it.

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::TrialId,
    spec::{Architecture, Choices, ExportedGraph, TrialConfig},
};

/// A trial that a running search adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AddedTrial {
    /// The `[[model]]` table, counted from 0.
    pub model: u32,
    /// The trial's configuration. Of an exported graph it has only the file's name: the job's space has the rest.
    pub config: TrialConfig,
    /// The values of the dimensions that vary.
    #[serde(with = "sojourn_protocol::decimal::choices")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, serde_json::Value>))]
    pub choices: Choices,
    /// The seed of its weights, row order and dropout, where that is a dimension of the search.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "sojourn_protocol::decimal::optional"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<sojourn_protocol::decimal::Seed>))]
    pub seed: Option<u64>,
    /// The number of the fold that it is trained without, where there are folds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<u32>,
    /// The first trial of the configuration that it trains on all folds, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<TrialId>,
    /// Where it goes on from, if it doesn't begin anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<CloneOf>,
    /// The trial whose place in the population it takes, in population-based training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<TrialId>,
    /// Epochs in all that it may train at first, where that isn't what the job's rule of early stopping says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<u32>,
}

/// The state of another trial of the job, from which one goes on: after so many epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CloneOf {
    /// The other trial.
    pub trial: TrialId,
    /// Epochs that it had trained.
    pub epochs: u32,
}

impl AddedTrial {
    /// A trial that begins anew.
    #[must_use]
    pub fn new(trial: sojourn_workgen::Trial) -> Self {
        let sojourn_workgen::Trial { model, mut config, choices, seed, fold } = trial;
        if let Architecture::Graph(graph) = &mut config.model {
            graph.exported = graph.exported.as_ref().map(ExportedGraph::name_only);
        }
        let (refit, from, replaces, allowed) = (None, None, None, None);
        Self { model, config, choices, seed, fold, refit, from, replaces, allowed }
    }
}
