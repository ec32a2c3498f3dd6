//! A trial's model, built in or exported as a graph: its tensors and costs.

use crate::{error::ModelError, layer::Parameter, network::Network, step::MAX_PARAMETERS};
use sojourn_codec::{Dtype, TensorSpec};
use sojourn_protocol::{
    bounds::MAX_GRAPH_TENSORS,
    quantity::to_u64,
    spec::{Architecture, ExportedGraph, Graph, GraphRole, GraphTensor, Start},
};
use std::collections::BTreeSet;

/// The most tensors that a graph may have.
pub const MAX_TENSORS: usize = MAX_GRAPH_TENSORS;
/// The most bytes in a tensor's name.
pub const MAX_TENSOR_NAME: usize = 200;

/// Prefix of every tensor of an optimiser's state.
pub(crate) const OPTIMIZER: &str = "optimizer.";
/// Prefixes of names that other tensors of checkpoints and of model files have.
const RESERVED: [&str; 3] = [OPTIMIZER, "scaling.", "sojourn."];
/// Name of the tensor that holds a [`crate::Lineage`].
pub const LINEAGE: &str = "lineage";

/// The tensors and costs of a model over given data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialModel {
    computation: Computation,
    parameters: Vec<Parameter>,
    buffers: Vec<Parameter>,
}

/// How a model computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Computation {
    /// By the steps of a built-in architecture.
    Network(Network),
    /// By the nodes of a graph, which are in its file.
    Graph(ExportedGraph),
}

impl TrialModel {
    /// The model of `architecture` for rows of `shape` and this many outputs. A graph says itself what rows it takes.
    ///
    /// # Errors
    /// As [`crate::validate`].
    pub fn of(
        architecture: &Architecture,
        shape: &[u32],
        outputs: u32,
    ) -> Result<Self, ModelError> {
        if let Architecture::Graph(graph) = architecture {
            return Self::of_graph(graph);
        }
        let network = Network::of(architecture, shape, outputs)?;
        Ok(Self {
            parameters: network.parameters().collect(),
            buffers: network.buffers().collect(),
            computation: Computation::Network(network),
        })
    }

    fn of_graph(graph: &Graph) -> Result<Self, ModelError> {
        let exported =
            graph.exported.as_ref().ok_or_else(|| ModelError::NotExported(graph.entry.clone()))?;
        check_tensors(exported.tensors.iter())?;
        let of = |role| {
            let tensors = exported.tensors.iter().filter(move |tensor| tensor.role == role);
            tensors.map(parameter).collect()
        };
        Ok(Self {
            parameters: of(GraphRole::Parameter),
            buffers: of(GraphRole::Buffer),
            computation: Computation::Graph(exported.clone()),
        })
    }

    /// How it computes.
    #[must_use]
    pub const fn computation(&self) -> &Computation {
        &self.computation
    }

    /// The trained tensors: in order of computation, each layer's weight before its bias; of a graph in its own order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The buffers, which are kept with the parameters but not trained, in the same order.
    #[must_use]
    pub fn buffers(&self) -> &[Parameter] {
        &self.buffers
    }

    /// Numbers in all its parameters and buffers.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        count(&self.parameters).saturating_add(count(&self.buffers))
    }

    /// Numbers in its parameters: those that are trained.
    #[must_use]
    pub fn trainable_count(&self) -> u64 {
        count(&self.parameters)
    }

    /// Floating-point operations of one row's forward pass: two for each multiply-add.
    #[must_use]
    pub fn flops_per_row(&self) -> u64 {
        match &self.computation {
            Computation::Network(network) => network.flops_per_row(),
            Computation::Graph(graph) => graph.flops_per_row,
        }
    }

    /// Numbers of the widest value that one row has in it.
    #[must_use]
    pub fn widest(&self) -> u64 {
        match &self.computation {
            Computation::Network(network) => network.widest(),
            Computation::Graph(graph) => graph.widest,
        }
    }
}

fn count(tensors: &[Parameter]) -> u64 {
    let numbers =
        |tensor: &Parameter| tensor.shape.iter().fold(1, |all: u64, n| all.saturating_mul(*n));
    tensors.iter().map(numbers).fold(0, u64::saturating_add)
}

fn parameter(tensor: &GraphTensor) -> Parameter {
    let GraphTensor { name, dtype, shape, start, .. } = tensor.clone();
    Parameter { name, dtype, shape, start: start.unwrap_or(Start::Given) }
}

/// Can checkpoints have these tensors?
///
/// # Errors
/// Names and types that checkpoints don't have, constants, too many numbers, no parameter.
pub fn check_tensors<'a>(
    tensors: impl IntoIterator<Item = &'a GraphTensor>,
) -> Result<(), ModelError> {
    let (mut names, mut numbers) = (BTreeSet::new(), 0u64);
    let mut has_parameter = false;
    for tensor in tensors {
        check_tensor(tensor)?;
        if !names.insert(tensor.name.as_str()) {
            return Err(ModelError::Tensor { name: tensor.name.clone(), fault: "is there twice" });
        }
        let elements = TensorSpec::new("", tensor.dtype, tensor.shape.clone()).elements()?;
        numbers = numbers.saturating_add(elements);
        has_parameter |= tensor.role == GraphRole::Parameter;
        if names.len() > MAX_TENSORS {
            return Err(ModelError::TooManyTensors { limit: MAX_TENSORS });
        }
    }
    if numbers > MAX_PARAMETERS {
        return Err(ModelError::TooLarge { limit: MAX_PARAMETERS });
    }
    if has_parameter { Ok(()) } else { Err(ModelError::NoParameters) }
}

fn check_tensor(tensor: &GraphTensor) -> Result<(), ModelError> {
    let name = tensor.name.as_str();
    let is_reserved =
        name.is_empty() || name == LINEAGE || RESERVED.iter().any(|of| name.starts_with(of));
    let is_plain =
        !name.chars().any(char::is_control) && to_u64(name.len()) <= to_u64(MAX_TENSOR_NAME);
    let fault = match tensor.role {
        _ if is_reserved || !is_plain => "has a name that a checkpoint's tensor can't have",
        GraphRole::Constant => "is a constant, which no checkpoint has",
        GraphRole::Parameter if tensor.dtype != Dtype::F32 => {
            "is a parameter, but not in single precision"
        }
        // Merges and deltas take tensors as words of four bytes.
        GraphRole::Buffer if !matches!(tensor.dtype, Dtype::F32 | Dtype::I32 | Dtype::I64) => {
            "is a buffer, but not F32, I32 or I64"
        }
        _ if !is_sound(tensor.start) => "begins with numbers that aren't finite, or in no order",
        _ => return Ok(()),
    };
    let name = name.chars().take(MAX_TENSOR_NAME).collect();
    Err(ModelError::Tensor { name, fault })
}

fn is_sound(start: Option<Start>) -> bool {
    match start {
        None => false,
        Some(Start::Zeros | Start::Ones | Start::Given) => true,
        Some(Start::Constant(value)) => value.0.is_finite(),
        Some(Start::FanIn(inputs)) => inputs > 0,
        Some(Start::Uniform([low, high])) => {
            low.0.is_finite() && high.0.is_finite() && low.0 <= high.0
        }
        Some(Start::Normal([mean, std])) => mean.0.is_finite() && std.0.is_finite() && std.0 >= 0.0,
    }
}

#[cfg(test)]
#[path = "trial_model_tests.rs"]
mod tests;
